// Every pointwise record against a scalar reference in double, over dtypes, layouts, devices and
// forms of the call.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "support/samples.h"

namespace tessera {
namespace {

using namespace test;

// s: sources in order (numbers too), k: scalars, form: the first string argument.
using Reference = double (*)(const double* s, const double* k, std::string_view form);

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double gelu_tanh_inner(double x) { return std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x); }

const std::map<std::string, Reference>& references() {
  static const std::map<std::string, Reference> all = {
      {"add",
       [](const double* s, const double* k, std::string_view) { return s[0] + k[0] * s[1]; }},
      {"sub",
       [](const double* s, const double* k, std::string_view) { return s[0] - k[0] * s[1]; }},
      {"mul", [](const double* s, const double*, std::string_view) { return s[0] * s[1]; }},
      {"div", [](const double* s, const double*, std::string_view) { return s[0] / s[1]; }},
      {"eq", [](const double* s, const double*, std::string_view) { return double(s[0] == s[1]); }},
      {"exp", [](const double* s, const double*, std::string_view) { return std::exp(s[0]); }},
      {"neg", [](const double* s, const double*, std::string_view) { return -s[0]; }},
      {"relu",
       [](const double* s, const double*, std::string_view) { return std::max(s[0], 0.0); }},
      {"sigmoid",
       [](const double* s, const double*, std::string_view) { return 1 / (1 + std::exp(-s[0])); }},
      {"_relu_backward",
       [](const double* s, const double*, std::string_view) { return s[1] > 0 ? s[0] : 0.0; }},
      {"gelu",
       [](const double* s, const double*, std::string_view form) {
         if (form == "tanh") return 0.5 * s[0] * (1 + std::tanh(gelu_tanh_inner(s[0])));
         return s[0] * normal_cdf(s[0]);
       }},
      {"_gelu_backward",
       [](const double* s, const double*, std::string_view form) {
         double x = s[1];
         if (form == "tanh") {
           double t = std::tanh(gelu_tanh_inner(x));
           double slope = std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
           return s[0] * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope);
         }
         return s[0] * (normal_cdf(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI));
       }},
  };
  return all;
}

struct Expected {
  Dims shape;
  DType dtype;
  std::vector<double> values;
};

// A number that may stand where a tensor does.
bool is_source(const ArgSpec& a) {
  return a.type == ArgSpec::Type::kTensorOrScalar || a.type == ArgSpec::Type::kNumber;
}

// The dtype by PyTorch's rules for tensors of one dtype and numbers.
DType result_dtype(const Op& op, DType dtype, const Arguments& a) {
  DType common = dtype;
  for (size_t i = 0; i < a.values.size(); ++i) {
    if (!is_source(op.args[i]) || !a.values[i].is_scalar()) continue;
    if (a.values[i].scalar.is_double() && !is_floating(common))
      common = DType::kFloat32;
    else if (common == DType::kBool)
      common = DType::kInt64;
  }
  switch (op.record->types) {
    case TypeRule::kPromote:
      return common;
    case TypeRule::kPromoteFloat:
      return is_floating(common) ? common : DType::kFloat32;
    case TypeRule::kSame:
      return dtype;
    default:
      return DType::kBool;
  }
}

Expected expect(const Op& op, Reference reference, DType dtype, const Arguments& a) {
  std::vector<std::vector<double>> sources;
  std::vector<Dims> shapes;
  std::vector<double> scalars;
  std::string_view form;
  Expected e;
  e.dtype = result_dtype(op, dtype, a);
  for (size_t i = 0; i < a.values.size(); ++i) {
    const Value& v = a.values[i];
    if (v.is_tensor()) {
      sources.push_back(values(*v.tensor));
      shapes.push_back(v.tensor->sizes());
      e.shape = broadcast_shapes(e.shape, v.tensor->sizes());
    } else if (is_source(op.args[i])) {
      sources.push_back({v.scalar.to_double()});
      shapes.push_back({});
    } else if (v.is_scalar()) {
      scalars.push_back(v.scalar.to_double());
    } else if (v.tag == Value::Tag::kString) {
      form = v.string;
    }
  }
  int64_t n = checked_numel(e.shape, e.dtype);
  Dims steps = contiguous_strides(e.shape);
  for (int64_t i = 0; i < n; ++i) {
    std::vector<double> s;
    for (size_t k = 0; k < sources.size(); ++k) {
      Dims from = broadcast_strides(shapes[k], contiguous_strides(shapes[k]), e.shape);
      int64_t at = 0;
      for (size_t d = 0; d < from.size(); ++d) at += i / steps[d] % e.shape[d] * from[d];
      s.push_back(sources[k][static_cast<size_t>(at)]);
    }
    e.values.push_back(rounded(reference(s.data(), scalars.data(), form), e.dtype));
  }
  return e;
}

constexpr DType kDTypes[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16,
                             DType::kFloat64, DType::kInt64,   DType::kBool};

// Calls `f` for every sample of every pointwise record in every dtype it is defined on.
template <class F>
void for_each_case(Device device, F f) {
  for (const Op* op : all_ops()) {
    if (op->kind != Kind::kPointwise) continue;
    auto it = references().find(op->name);
    Reference reference = it == references().end() ? nullptr : it->second;
    // Where there is none here, values are compared by the Python tests (PyTorch's answers, the
    // record's NumPy reference, the conformance cases); what follows holds of any operator.
    for (const std::string& text : samples_of(*op)) {
      for (DType dtype : kDTypes) {
        for (Layout layout : kLayouts) {
          SCOPED_TRACE(cat(op->name, "(", text, ") ", dtype, " ", layout_name(layout)));
          auto build = [&] { return read_sample(*op, text, dtype, device, layout); };
          if (!build()) continue;
          auto a = build();
          Tensor result;
          try {
            result = Tensor(dispatch(*op, a->values).take());
          } catch (const Error& e) {
            // Without a body for the dtype, or refused as PyTorch refuses it; the layout without
            // elements also gives a shape to what must have none.
            bool plain = dtype == DType::kFloat32 || dtype == DType::kFloat64;
            EXPECT_TRUE(!plain || layout == Layout::kEmpty) << e.what();
            continue;
          }
          f(*op, reference, dtype, layout, *a, result, build);
        }
      }
    }
  }
}

class PointwiseTest : public ::testing::TestWithParam<std::tuple<bool, bool>> {
 protected:
  void SetUp() override {
    if (std::get<0>(GetParam())) device_ = test_gpu();
    fuse::set_mode(std::get<1>(GetParam()) ? fuse::Mode::kOn : fuse::Mode::kOff);
  }
  void TearDown() override {
    fuse::set_mode(fuse::Mode::kOff);
    clear_gpu();
  }
  Device device_;
};
INSTANTIATE_TEST_SUITE_P(Everywhere, PointwiseTest,
                         ::testing::Combine(::testing::Bool(), ::testing::Bool()),
                         [](const auto& i) {
                           return cat(std::get<0>(i.param) ? "gpu" : "cpu",
                                      std::get<1>(i.param) ? "_deferred" : "");
                         });

TEST_P(PointwiseTest, ValuesMatchTheReference) {
  int cases = 0;
  for_each_case(device_, [&](const Op& op, Reference reference, DType dtype, Layout,
                             const Arguments& a, const Tensor& result, auto) {
    if (!reference) return;
    Expected e = expect(op, reference, dtype, a);
    EXPECT_EQ(result.sizes(), e.shape);
    EXPECT_EQ(result.dtype(), e.dtype);
    EXPECT_TRUE(close(values(result), e.values, tolerance_of(e.dtype)));
    ++cases;
  });
  EXPECT_GT(cases, 500);
}

TEST_P(PointwiseTest, InPlaceAndOutGiveTheSame) {
  int in_place = 0, out_forms = 0;
  for_each_case(device_, [&](const Op& op, Reference, DType, Layout layout, const Arguments&,
                             const Tensor& result, auto build) {
    if (op.record->forms & kOut) {
      for (Dims size : {result.sizes(), Dims{0}, Dims{2, 2}}) {
        auto b = build();
        Tensor out(new_empty(size, result.dtype(), device_));
        TensorBase back = dispatch_out(op, b->values, out);
        EXPECT_TRUE(back.is_same(out));
        EXPECT_EQ(bytes(out), bytes(result));
        ++out_forms;
      }
    }
    if (!(op.record->forms & kInplace) || layout == Layout::kExpanded) return;
    auto b = build();
    const Tensor& self = b->tensor(op.self_index);
    std::string before = bytes(self);
    if (!(self.sizes() == result.sizes()) || !can_cast(result.dtype(), self.dtype())) {
      EXPECT_NE(error_of([&] { dispatch_inplace(op, b->values); }), "");
      EXPECT_EQ(bytes(self), before);
      return;
    }
    TensorBase back = dispatch_inplace(op, b->values);
    EXPECT_TRUE(back.is_same(self));
    EXPECT_EQ(values(self), values(result.to(self.dtype())));
    ++in_place;
  });
  EXPECT_GT(in_place, 100);
  EXPECT_GT(out_forms, 100);
}

}  // namespace
}  // namespace tessera
