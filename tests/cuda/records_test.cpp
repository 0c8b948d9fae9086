// Every pointwise body that a record has is legal CUDA, on every class it is defined on.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "codegen.h"
#include "compile.h"
#include "nvrtc_api.h"
#include "tessera/ops/record.h"

namespace tessera::cuda {
namespace {

std::string text_of(const PointwiseBody& body, RegClass cls) {
  constexpr DType kTypes[kNumRegClasses] = {DType::kFloat32, DType::kFloat64,   DType::kInt64,
                                            DType::kBool,    DType::kComplex64, DType::kComplex128};
  DType t = kTypes[static_cast<int>(cls)];
  int64_t size = 100, stride = 1;
  int n = static_cast<int>(std::strlen(body.sources));
  Operand inputs[kMaxSources];
  Instr in{};
  in.kind = Instr::Kind::kBody;
  in.cls = cls;
  in.round_to = body.result == 'b' ? DType::kBool : t;
  in.result_cls = reg_class(in.round_to);
  in.num_sources = static_cast<uint8_t>(n);
  in.num_scalars = static_cast<uint8_t>(body.num_scalars);
  in.body = &body;
  for (int i = 0; i < n; ++i) {
    DType source = body.sources[i] == 'b' ? DType::kBool : t;
    inputs[i] = {reinterpret_cast<void*>(0x1000), source, &stride};
    in.sources[i] = {SourceKind::kInput, static_cast<uint16_t>(i)};
  }
  std::vector<Imm> imms(8);
  std::vector<RegClass> classes(8, cls);
  GroupOutput out{{reinterpret_cast<void*>(0x2000), in.round_to, &stride}, 0};
  GroupProgram g{1,           &size,         size, n, inputs, 1, &in, 1, &out, body.num_scalars,
                 imms.data(), classes.data()};
  GroupPlan plan;
  EXPECT_TRUE(plan_group(g, &plan));
  return group_text(g, plan);
}

// Not all do yet: functions of ops/math.h that the prelude lacks are named when the test runs, and
// the backend raises for them. The number only rises.
TEST(CudaRecords, BodiesCompile) {
  if (!nvrtc_api(nullptr)) GTEST_SKIP() << "NVRTC cannot be opened here";
  int compiled = 0;
  std::string lacking;
  for (const Op* op : all_ops()) {
    const PointwiseBody* body = op->record->body;
    if (!body || std::strstr(body->text, "special::")) continue;  // of the host alone
    for (int c = 0; c < static_cast<int>(RegClass::kC64); ++c) {
      if (!body->tiles[0][c]) continue;
      std::vector<char> image;
      std::string error;
      if (compile_text(text_of(*body, static_cast<RegClass>(c)), 90, &image, &error)) {
        ++compiled;
      } else {
        lacking += op->name + " ";
        break;
      }
    }
  }
  std::printf("bodies that do not compile for CUDA yet: %s\n", lacking.c_str());
  EXPECT_GE(compiled, 40);
}

}  // namespace
}  // namespace tessera::cuda
