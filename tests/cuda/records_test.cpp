// Every pointwise body that a record has is legal CUDA, on every class it is defined on.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "codegen.h"
#include "compile.h"
#include "nvrtc_api.h"
#include "support/samples.h"
#include "tessera/ops/record.h"

namespace tessera::cuda {
namespace {

constexpr DType kTypes[kNumRegClasses] = {DType::kFloat32, DType::kFloat64,   DType::kInt64,
                                          DType::kBool,    DType::kComplex64, DType::kComplex128};

// A body's own, and those it chooses for its samples.
std::vector<const PointwiseBody*> bodies_of(const Op& op, DType dtype) {
  if (op.record->body) return {op.record->body};
  std::vector<const PointwiseBody*> out;
  if (!op.record->choose) return out;
  for (const std::string& text : test::samples_of(op)) {
    DType real = is_complex(dtype) ? real_dtype(dtype) : dtype;
    auto a = test::read_sample(op, text, real, {}, test::Layout::kContiguous);
    if (!a) continue;
    try {
      out.push_back(op.record->choose(a->values));
    } catch (const Error&) {
    }
  }
  return out;
}

// All bodies that compute in a class, on the same elements: one kernel, as compiling is what costs.
class AllBodies {
 public:
  explicit AllBodies(RegClass cls) : cls_(cls), type_(kTypes[static_cast<int>(cls)]) {
    for (int i = 0; i < kMaxSources; ++i) add_input(type_);
    add_input(DType::kBool);
    add_input(real_dtype(type_));
    for (const Op* op : all_ops())
      for (const PointwiseBody* body : bodies_of(*op, type_))
        if (body->tiles[0][static_cast<int>(cls)] && seen_.insert(body).second) add(*body);
  }

  std::string text() {
    GroupOutput out{{reinterpret_cast<void*>(0x2000), instrs_[0].round_to, &kStride}, 0};
    GroupProgram g{1,
                   &kSize,
                   kSize,
                   static_cast<int>(inputs_.size()),
                   inputs_.data(),
                   static_cast<int>(instrs_.size()),
                   instrs_.data(),
                   1,
                   &out,
                   3,
                   immediates_,
                   classes_};
    GroupPlan plan;
    EXPECT_TRUE(plan_group(g, &plan));
    return group_text(g, plan);
  }
  size_t size() const { return instrs_.size(); }

 private:
  void add_input(DType t) { inputs_.push_back({reinterpret_cast<void*>(0x1000), t, &kStride}); }
  void add(const PointwiseBody& body) {
    Instr in{};
    in.kind = Instr::Kind::kBody;
    in.cls = cls_;
    in.round_to = body.result == 'b'   ? DType::kBool
                  : body.result == 'r' ? real_dtype(type_)
                  : body.result == 'c' ? complex_dtype(type_)
                                       : type_;
    in.result_cls = reg_class(in.round_to);
    in.num_sources = static_cast<uint8_t>(std::strlen(body.sources));
    in.num_scalars = static_cast<uint8_t>(body.num_scalars);
    in.body = &body;
    for (uint16_t i = 0; i < in.num_sources; ++i) {
      char letter = body.sources[i];
      uint16_t from = letter == 'b' ? kMaxSources : letter == 'r' ? kMaxSources + 1 : i;
      in.sources[i] = {SourceKind::kInput, from};
    }
    instrs_.push_back(in);
  }

  static constexpr int64_t kSize = 100, kStride = 1;
  RegClass cls_;
  DType type_;
  std::set<const PointwiseBody*> seen_;
  std::vector<Operand> inputs_;
  std::vector<Instr> instrs_;
  Imm immediates_[3] = {};
  RegClass classes_[3] = {cls_, cls_, cls_};
};

TEST(CudaRecords, BodiesCompile) {
  if (!nvrtc_api(nullptr)) GTEST_SKIP() << "NVRTC cannot be opened here";
  for (int c = 0; c < kNumRegClasses; ++c) {
    AllBodies all(static_cast<RegClass>(c));
    EXPECT_GT(all.size(), 5u);
    std::vector<char> image;
    std::string error;
    EXPECT_TRUE(compile_text(all.text(), 90, &image, &error))
        << dtype_name(kTypes[c]) << ": " << error;
  }
}

}  // namespace
}  // namespace tessera::cuda
