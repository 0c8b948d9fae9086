// What must hold of every record, whoever wrote it.
#include <gtest/gtest.h>

#include <set>

#include "support/gradcheck.h"
#include "support/samples.h"
#include "tessera/ops/schema.h"

namespace tessera {
namespace {

using namespace test;

bool internal(const Op& op) { return op.name[0] == '_'; }

bool has_tensor_argument(const Op& op) {
  for (const ArgSpec& a : op.args)
    if (a.type == ArgSpec::Type::kTensor || a.type == ArgSpec::Type::kTensorOrScalar) return true;
  return false;
}

TEST(RecordsTest, SchemasParseToWhatTheySay) {
  ASSERT_GT(all_ops().size(), 40u);
  for (const Op* op : all_ops()) {
    SCOPED_TRACE(op->record->schema);
    Op again;
    parse_schema(op->record->schema, again);
    EXPECT_EQ(again.name, op->name);
    EXPECT_FALSE(op->name.empty());
    std::set<std::string> names;
    for (const ArgSpec& a : op->args) EXPECT_TRUE(names.insert(a.name).second) << a.name;
    EXPECT_EQ(&get_op(op->name), find_ops(op->name)[0]);
    EXPECT_EQ(again.paths[0], op->paths[0]);
  }
  EXPECT_TRUE(find_ops("no_such_operator").empty());
  EXPECT_ERROR(get_op("no_such_operator"), kNotImplemented, "no_such_operator");
}

TEST(RecordsTest, EachHasItsDocumentation) {
  for (const Op* op : all_ops()) {
    if (internal(*op) || find_ops(op->name)[0] != op) continue;  // overloads share the first one's
    EXPECT_NE(std::string(op->record->doc), "") << op->name;
    EXPECT_NE(std::string(op->record->example), "") << op->name;
  }
}

TEST(RecordsTest, EachHasABodyOfItsKind) {
  for (const Op* op : all_ops()) {
    SCOPED_TRACE(op->name);
    const OpRecord& r = *op->record;
    bool pointwise = op->kind == Kind::kPointwise;
    EXPECT_EQ(pointwise, r.body || r.choose);
    EXPECT_EQ(!pointwise, r.run != nullptr);
    EXPECT_FALSE(op->name.back() == '_' && (r.forms & kInplace)) << "in place twice";
    EXPECT_TRUE(op->self_index >= 0 || !(r.forms & (kInplace | kMethod)));
  }
}

TEST(RecordsTest, EachHasAGradientOrAReason) {
  for (const Op* op : all_ops()) {
    const OpRecord& r = *op->record;
    // A composite's gradient is that of what it is made of; the generic gradient check below sees
    // it.
    bool reason = r.backward || r.not_differentiable || r.random || op->kind == Kind::kComposite ||
                  !has_tensor_argument(*op);
    EXPECT_TRUE(reason) << op->name;
    EXPECT_FALSE(r.backward && r.not_differentiable) << op->name;
  }
}

// Every sample runs, fused and unfused to the same bits, in every layout.
TEST(RecordsTest, SamplesRunTheSameFusedAndUnfused) {
  for (Device device : {Device{}, test_gpu()}) {
    for (const Op* op : all_ops()) {
      if (op->writes_self || op->num_outputs != 1) continue;
      for (const std::string& text : samples_of(*op)) {
        for (Layout layout : {Layout::kContiguous, Layout::kTransposed, Layout::kStepped}) {
          SCOPED_TRACE(cat(op->name, "(", text, ") ", layout_name(layout), " ", device));
          if (op->name.starts_with("view") && layout != Layout::kContiguous)
            continue;  // may need a copy
          if (op->name.find("empty") != std::string::npos) continue;
          if (!read_sample(*op, text, DType::kFloat32, device, layout)) continue;
          same_fused(device, [&] {
            manual_seed(3);
            auto a = read_sample(*op, text, DType::kFloat32, device, layout);
            std::vector<Tensor> copies = {};
            for (int at : a->made) copies.push_back(a->tensor(at) + Value(1));
            for (size_t i = 0; i < copies.size(); ++i)
              a->values[static_cast<size_t>(a->made[i])] = Value(copies[i]);
            Tensor result(dispatch(*op, a->values).take());
            return std::vector<Tensor>{result, result * Value(2)};
          });
        }
      }
    }
  }
  clear_gpu();
}

bool differentiable(const Op& op) {
  const OpRecord& r = *op.record;
  if (r.not_differentiable || r.random || op.writes_self || !has_tensor_argument(op)) return false;
  if (op.num_outputs != 1 || op.result_type != ResultType::kTensor) return false;
  // Kernels and compositions may have kinks at these numbers: the Python tests check them at
  // samples that were chosen for it.
  if (op.kind == Kind::kKernel || op.kind == Kind::kComposite) return false;
  return r.backward || (op.kind == Kind::kComposite && op.family != "creation");
}

TEST(RecordsTest, GradientsMatchDifferences) {
  int checked = 0;
  for (const Op* op : all_ops()) {
    if (!differentiable(*op)) continue;
    for (const std::string& text : samples_of(*op)) {
      for (Layout layout : {Layout::kContiguous, Layout::kTransposed}) {
        if (op->name.starts_with("view") && layout != Layout::kContiguous) continue;
        SCOPED_TRACE(cat(op->name, "(", text, ") ", layout_name(layout)));
        auto a = read_sample(*op, text, DType::kFloat64, {}, layout);
        if (!a) continue;
        std::vector<int> at = a->made;
        // The second derivatives of these are not there: their second tensor is held fixed.
        if (op->name == "_gelu_backward" || op->name == "_relu_backward") at = {0};
        std::vector<Tensor> inputs;
        for (int i : at) inputs.push_back(a->tensor(i));
        if (inputs.empty()) continue;                                               // of integers
        if (is_complex(Tensor(dispatch(*op, a->values).take()).dtype())) continue;  // in Python
        auto call = [&](const std::vector<Tensor>& in) {
          std::vector<Value> args = a->values;
          for (size_t i = 0; i < in.size(); ++i) args[static_cast<size_t>(at[i])] = Value(in[i]);
          return Tensor(dispatch(*op, args).take());
        };
        try {
          EXPECT_TRUE(gradcheck(call, inputs));
        } catch (const Error& refused) {  // as PyTorch does
          EXPECT_NE(std::string(refused.what()).find("derivative for"), std::string::npos);
          continue;
        }
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 60);
}

}  // namespace
}  // namespace tessera
