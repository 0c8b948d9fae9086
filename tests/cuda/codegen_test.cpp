// The text the CUDA backend generates, compiled for real where NVRTC can be opened. Needs no GPU.
#include "codegen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "compile.h"
#include "kernel_texts.h"
#include "nvrtc_api.h"
#include "prelude.h"
#include "reduce_text.h"

namespace tessera::cuda {
namespace {

// Compiles for Hopper, and every fourth text for Turing too; nothing to compile with is no failure.
void expect_compiles(const std::string& text) {
  if (!nvrtc_api(nullptr)) return;
  static int count = 0;
  for (int arch : {90, 75}) {
    if (arch == 75 && count++ % 4 != 0) continue;
    std::vector<char> image;
    std::string error;
    EXPECT_TRUE(compile_text(text, arch, &image, &error)) << error << "\n" << text;
  }
}

const PointwiseBody kAdd{"add", "return a + b;", "tt", 't', 0, {}};
const PointwiseBody kScale{"scale", "return a * s0 + s1;", "t", 't', 2, {}};
const PointwiseBody kLess{"lt", "return a < b;", "tt", 'b', 0, {}};
const PointwiseBody kWhere{"where", "return select(a, b, c);", "btt", 't', 0, {}};

// A program with owned arrays.
struct Program {
  std::vector<int64_t> sizes;
  std::vector<std::vector<int64_t>> strides;
  std::vector<Operand> inputs;
  std::vector<GroupOutput> outputs;
  std::vector<Instr> instrs;
  std::vector<Imm> imms;
  std::vector<RegClass> imm_cls;

  explicit Program(std::vector<int64_t> s) : sizes(std::move(s)) { strides.reserve(64); }

  std::vector<int64_t> dense() const {
    std::vector<int64_t> out(sizes.size());
    int64_t run = 1;
    for (size_t i = sizes.size(); i-- > 0; run *= sizes[i]) out[i] = run;
    return out;
  }
  Source input(DType t, std::vector<int64_t> s, uintptr_t address = 0x1000) {
    strides.push_back(std::move(s));
    inputs.push_back({reinterpret_cast<void*>(address), t, strides.back().data()});
    return {SourceKind::kInput, static_cast<uint16_t>(inputs.size() - 1)};
  }
  Source input(DType t) { return input(t, dense()); }
  Source body(const PointwiseBody& b, RegClass cls, DType to, std::vector<Source> from,
              std::vector<float> scalars = {}) {
    Instr in{};
    in.kind = Instr::Kind::kBody;
    in.cls = cls;
    in.result_cls = reg_class(to);
    in.round_to = to;
    in.body = &b;
    in.first_scalar = static_cast<uint16_t>(imms.size());
    in.num_scalars = static_cast<uint8_t>(scalars.size());
    for (float v : scalars) {
      Imm imm{};
      imm.f32 = v;
      imms.push_back(imm);
      imm_cls.push_back(cls);
    }
    return finish(in, from);
  }
  Source convert(RegClass from_cls, DType to, Source from) {
    Instr in{};
    in.kind = Instr::Kind::kConvert;
    in.cls = from_cls;
    in.result_cls = reg_class(to);
    in.round_to = to;
    return finish(in, {from});
  }
  Source finish(Instr in, const std::vector<Source>& from) {
    in.num_sources = static_cast<uint8_t>(from.size());
    for (size_t i = 0; i < from.size(); ++i) in.sources[i] = from[i];
    instrs.push_back(in);
    return {SourceKind::kValue, static_cast<uint16_t>(instrs.size() - 1)};
  }
  void store(Source value, std::vector<int64_t> s = {}) {
    strides.push_back(s.empty() ? dense() : std::move(s));
    DType t = instrs[value.index].round_to;
    outputs.push_back({{reinterpret_cast<void*>(0x2000), t, strides.back().data()}, value.index});
  }
  GroupProgram get() const {
    GroupProgram g{};
    g.ndim = static_cast<int>(sizes.size());
    g.sizes = sizes.data();
    g.numel = 1;
    for (int64_t s : sizes) g.numel *= s;
    g.num_inputs = static_cast<int>(inputs.size());
    g.inputs = inputs.data();
    g.num_instrs = static_cast<int>(instrs.size());
    g.instrs = instrs.data();
    g.num_outputs = static_cast<int>(outputs.size());
    g.outputs = outputs.data();
    g.num_immediates = static_cast<int>(imms.size());
    g.immediates = imms.data();
    g.immediate_cls = imm_cls.data();
    return g;
  }
};

GroupPlan plan_of(const Program& p) {
  GroupPlan plan{};
  EXPECT_TRUE(plan_group(p.get(), &plan));
  uint64_t words[kMaxParamWords];
  EXPECT_GT(group_params(p.get(), plan, words), 0);
  return plan;
}

Program add_of(std::vector<int64_t> sizes, DType t, std::vector<int64_t> a, std::vector<int64_t> b,
               uintptr_t address = 0x1000) {
  Program p(std::move(sizes));
  Source x = p.input(t, std::move(a), address), y = p.input(t, std::move(b), address);
  p.store(p.body(kAdd, reg_class(t), t, {x, y}));
  return p;
}

TEST(CudaCodegen, DenseGroupsAreVectorised) {
  for (DType t : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kInt8,
                  DType::kInt64}) {
    Program p = add_of({1000}, t, {1}, {1});
    GroupPlan plan = plan_of(p);
    EXPECT_EQ(plan.mode, GroupMode::kLinear);
    EXPECT_EQ(plan.vec, std::min<size_t>(16 / itemsize(t), 8));
    expect_compiles(group_text(p.get(), plan));
  }
}

TEST(CudaCodegen, UnalignedGroupsAreNot) {
  Program p = add_of({1000}, DType::kFloat32, {1}, {1}, 0x1004);
  GroupPlan plan = plan_of(p);
  EXPECT_EQ(plan.vec, 1);
  EXPECT_FALSE(plan.wide);
  expect_compiles(group_text(p.get(), plan));
}

TEST(CudaCodegen, BiasRunsInVectorsAlongRows) {
  Program p = add_of({64, 128}, DType::kFloat16, {128, 1}, {0, 1});
  GroupPlan plan = plan_of(p);
  EXPECT_EQ(plan.mode, GroupMode::kInner);
  EXPECT_EQ(plan.vec, 8);
  expect_compiles(group_text(p.get(), plan));
  // A column for every row, and rows that are no multiple of a vector.
  Program column = add_of({64, 128}, DType::kFloat32, {128, 1}, {1, 0});
  EXPECT_EQ(plan_of(column).mode, GroupMode::kInner);
  expect_compiles(group_text(column.get(), plan_of(column)));
  Program odd = add_of({64, 127}, DType::kFloat32, {127, 1}, {0, 1});
  EXPECT_EQ(plan_of(odd).mode, GroupMode::kPoint);
  expect_compiles(group_text(odd.get(), plan_of(odd)));
}

TEST(CudaCodegen, TransposedInputsGoThroughTiles) {
  for (DType t : {DType::kInt8, DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    Program p({100, 60});
    p.store(p.convert(reg_class(t), t, p.input(t, {1, 100})));
    GroupPlan plan = plan_of(p);
    EXPECT_EQ(plan.mode, GroupMode::kTile);
    EXPECT_EQ(plan.tile, itemsize(t) <= 2 ? 64 : 32);
    expect_compiles(group_text(p.get(), plan));
  }
  Program batched = add_of({4, 100, 60}, DType::kFloat32, {6000, 1, 100}, {0, 0, 1});
  EXPECT_EQ(plan_of(batched).mode, GroupMode::kTile);
  expect_compiles(group_text(batched.get(), plan_of(batched)));
}

TEST(CudaCodegen, TilesAreOfVectorsWhereTheyFit) {
  struct {
    DType dtype;
    int vec, tile;
  } cases[] = {{DType::kInt8, 8, 64},
               {DType::kFloat16, 8, 64},
               {DType::kFloat32, 4, 64},
               {DType::kFloat64, 2, 32},
               {DType::kComplex128, 2, 32}};
  auto copy = [](std::vector<int64_t> sizes, DType t, std::vector<int64_t> strides,
                 uintptr_t address = 0x1000) {
    Program p(std::move(sizes));
    p.store(p.convert(reg_class(t), t, p.input(t, std::move(strides), address)));
    return p;
  };
  for (auto [t, vec, tile] : cases) {
    Program p = copy({4096, 2048}, t, {1, 4096});
    GroupPlan plan = plan_of(p);
    EXPECT_EQ(plan.mode, GroupMode::kTile);
    EXPECT_EQ(plan.vec, vec);
    EXPECT_EQ(plan.tile, tile);
    expect_compiles(group_text(p.get(), plan));
  }
  // Rows or memory that vectors do not fit.
  Program odd = copy({4095, 2048}, DType::kFloat32, {1, 4095});
  Program gap = copy({4096, 2048}, DType::kFloat32, {1, 4097});
  Program off = copy({4096, 2048}, DType::kFloat32, {1, 4096}, 0x1004);
  for (const Program* p : {&odd, &gap, &off}) {
    EXPECT_EQ(plan_of(*p).vec, 1);
    EXPECT_EQ(plan_of(*p).tile, 32);
  }
  // What caches hold goes through small tiles, where their vectors are enough for all threads.
  Program small = copy({512, 512}, DType::kFloat32, {1, 512});
  EXPECT_EQ(plan_of(small).vec, 4);
  EXPECT_EQ(plan_of(small).tile, 32);
  Program halves = copy({512, 512}, DType::kFloat16, {1, 512});
  EXPECT_EQ(plan_of(halves).vec, 8);
  EXPECT_EQ(plan_of(halves).tile, 64);
  // Two floats are 33 KB of shared memory; more take smaller tiles.
  Program two = add_of({4096, 2048}, DType::kFloat32, {1, 4096}, {1, 4096});
  EXPECT_EQ(plan_of(two).tile, 64);
  Program three({4096, 2048});
  Source x = three.input(DType::kFloat32, {1, 4096}), y = three.input(DType::kFloat32, {1, 4096});
  Source z = three.input(DType::kFloat32, {1, 4096});
  Source sum = three.body(kAdd, RegClass::kF32, DType::kFloat32, {x, y});
  three.store(three.body(kAdd, RegClass::kF32, DType::kFloat32, {sum, z}));
  EXPECT_EQ(plan_of(three).tile, 32);
  EXPECT_EQ(plan_of(three).vec, 4);
  expect_compiles(group_text(three.get(), plan_of(three)));
}

TEST(CudaCodegen, StridedOutputsAndManyDimensions) {
  Program p({3, 4, 5, 6});
  Source x = p.input(DType::kInt32, {7, 100, 1000, 3}), y = p.input(DType::kInt32, {0, 0, 0, 0});
  p.store(p.body(kAdd, RegClass::kI64, DType::kInt32, {x, y}), {1, 3, 12, 60});
  GroupPlan plan = plan_of(p);
  EXPECT_EQ(plan.mode, GroupMode::kPoint);
  EXPECT_EQ(plan.layouts[1], Layout::kScalar);
  expect_compiles(group_text(p.get(), plan));
}

TEST(CudaCodegen, SixtyFourBitIndicesWhereNeeded) {
  Program p = add_of({int64_t{1} << 20, 4096}, DType::kFloat32, {4096, 1}, {0, 1});
  EXPECT_TRUE(plan_of(p).wide);
  expect_compiles(group_text(p.get(), plan_of(p)));
  Program far = add_of({16, 16}, DType::kFloat32, {int64_t{1} << 30, 3}, {16, 1});
  EXPECT_TRUE(plan_of(far).wide);
  expect_compiles(group_text(far.get(), plan_of(far)));
}

TEST(CudaCodegen, SeveralOutputsScalarsAndConversions) {
  Program p({4096});
  Source a = p.input(DType::kFloat16), b = p.input(DType::kBFloat16), c = p.input(DType::kInt32);
  Source scaled = p.body(kScale, RegClass::kF32, DType::kFloat16, {a}, {0.5f, 2.0f});
  Source sum = p.body(kAdd, RegClass::kF32, DType::kFloat32, {scaled, b});
  Source less = p.body(kLess, RegClass::kF32, DType::kBool, {sum, scaled});
  Source wide = p.convert(RegClass::kI64, DType::kFloat32, c);
  Source chosen = p.body(kWhere, RegClass::kF32, DType::kFloat32, {less, sum, wide});
  p.store(less);
  p.store(scaled);
  p.store(p.convert(RegClass::kF32, DType::kUInt8, chosen));
  p.store(p.convert(RegClass::kF32, DType::kFloat64, chosen));
  p.store(p.convert(RegClass::kB8, DType::kInt16, less));
  p.store(p.convert(RegClass::kF32, DType::kBool, chosen));
  GroupPlan plan = plan_of(p);
  std::string text = group_text(p.get(), plan);
  expect_compiles(text);
  // A body in use twice is written once.
  EXPECT_EQ(text.find("op0_scale_f32(float a"), text.rfind("op0_scale_f32(float a"));
}

// The assembler would work functions of a constant out by other means than the GPU's.
TEST(CudaCodegen, ConstantsAreHidden) {
  const PointwiseBody one{"one", "return T(1);", "tt", 't', 0, {}};
  const PointwiseBody scalar{"scalar", "return s0;", "t", 't', 1, {}};
  const PointwiseBody tanh{"tanh", "return tanh(a);", "t", 't', 0, {}};
  for (DType t : {DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kComplex64,
                  DType::kComplex128, DType::kInt64}) {
    Program p({100});
    Source x = p.input(t);
    Source made = p.body(one, reg_class(t), t, {x, x});
    p.store(p.body(kAdd, reg_class(t), t, {made, x}));
    std::string text = group_text(p.get(), plan_of(p));
    EXPECT_NE(text.find("hidden(op0_one_"), std::string::npos) << text;
    EXPECT_EQ(text.find("hidden(op1_add_"), std::string::npos);
    expect_compiles(text);
  }
  Program p({100});
  Source given =
      p.body(scalar, RegClass::kF32, DType::kFloat32, {p.input(DType::kFloat32)}, {2.0f});
  p.store(p.body(tanh, RegClass::kF32, DType::kFloat32, {given}));
  EXPECT_EQ(group_text(p.get(), plan_of(p)).find("hidden(op"), std::string::npos);
}

TEST(CudaCodegen, KeyIsTheStructureAlone) {
  Program a = add_of({1024}, DType::kFloat32, {1}, {1});
  Program b = add_of({2048}, DType::kFloat32, {1}, {1}, 0x4000);
  Program c = add_of({1024}, DType::kFloat16, {1}, {1});
  auto key = [](const Program& p) { return group_key(p.get(), plan_of(p), 0); };
  EXPECT_EQ(key(a), key(b));
  EXPECT_NE(key(a), key(c));
  EXPECT_EQ(group_text(a.get(), plan_of(a)), group_text(b.get(), plan_of(b)));
  Program s1({8}), s2({8});
  s1.store(s1.body(kScale, RegClass::kF32, DType::kFloat32, {s1.input(DType::kFloat32)}, {1, 2}));
  s2.store(s2.body(kScale, RegClass::kF32, DType::kFloat32, {s2.input(DType::kFloat32)}, {3, 4}));
  EXPECT_EQ(key(s1), key(s2));
}

TEST(CudaCodegen, DividersAreExact) {
  // Through the parameters of a strided group, as the kernel computes with them.
  for (int64_t size : {1, 2, 3, 5, 7, 10, 31, 64, 127, 1000, 65535, 65536, 12345677, 1 << 28}) {
    Program p = add_of({2, size}, DType::kInt8, {size * 3, 3}, {1, 2});
    GroupPlan plan = plan_of(p);
    if (plan.wide || plan.ndim != 2) continue;
    uint64_t words[kMaxParamWords];
    group_params(p.get(), plan, words);
    int at = 1 + plan.num_operands;
    ASSERT_EQ(words[at], static_cast<uint64_t>(size));
    uint64_t magic = words[at + 1] & 0xffffffffu, shift = words[at + 1] >> 32;
    for (uint64_t q : {uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{77}}) {
      for (int64_t delta : {-1, 0, 1}) {
        uint64_t i = q * static_cast<uint64_t>(size) + static_cast<uint64_t>(delta);
        if (i >= (uint64_t{1} << 31)) continue;
        EXPECT_EQ(((i * magic >> 32) + i) >> shift, i / static_cast<uint64_t>(size))
            << i << "/" << size;
      }
    }
  }
}

// Every function of tessera/ops/math.h that a body may call, on each type it has there.
TEST(CudaCodegen, BodiesMayCallTheElementaryFunctions) {
  std::string floats;
  for (const char* f :
       {"exp",   "log",   "tanh", "erf",   "sqrt", "abs",   "fabs",  "floor", "ceil",   "trunc",
        "rint",  "sin",   "cos",  "tan",   "asin", "acos",  "atan",  "sinh",  "cosh",   "asinh",
        "acosh", "atanh", "exp2", "expm1", "log2", "log10", "log1p", "erfc",  "lgamma", "cbrt"})
    floats += std::string("r = r + ") + f + "(a); ";
  for (const char* f :
       {"pow", "fmod", "atan2", "hypot", "copysign", "min", "max", "min_nan", "max_nan"})
    floats += std::string("r = r + ") + f + "(a, r); ";
  std::string text = "T r = T(0); " + floats +
                     "if (isnan(a) || isinf(a) || isfinite(a) || is_nan(r)) r = select(a < r, a, "
                     "std::numeric_limits<T>::infinity()); return r;";
  std::string ints =
      "T r = abs(a) + floor(a) + ceil(a) + trunc(a) + rint(a) + pow(a, a) + min(a, a) + max_nan(a, "
      "a);"
      " if (isnan(a) || isinf(a) || isfinite(a)) r = select(a < r, a, "
      "std::numeric_limits<T>::max());"
      " return static_cast<T>(r % T(3));";
  PointwiseBody all{"all", text.c_str(), "t", 't', 0, {}};
  PointwiseBody integer{"integer", ints.c_str(), "t", 't', 0, {}};
  Program p({100});
  p.store(p.body(all, RegClass::kF32, DType::kFloat32, {p.input(DType::kFloat32)}));
  p.store(p.body(all, RegClass::kF64, DType::kFloat64, {p.input(DType::kFloat64)}));
  p.store(p.body(integer, RegClass::kI64, DType::kInt64, {p.input(DType::kInt64)}));
  expect_compiles(group_text(p.get(), plan_of(p)));
}

ReduceBody sum_body() { return {"sum", "a", "x + y", "x", "T(0)", {}}; }

ReducePass plan_of(const ReduceBody& body, RegClass cls, DType in, DType out,
                   std::vector<int64_t> kept, std::vector<int64_t> kept_strides,
                   std::vector<int64_t> reduced, std::vector<int64_t> reduced_strides) {
  ReduceProgram r{};
  r.body = &body;
  r.cls = cls;
  r.kept_ndim = static_cast<int>(kept.size());
  r.kept_sizes = kept.data();
  r.reduced_ndim = static_cast<int>(reduced.size());
  r.reduced_sizes = reduced.data();
  r.kept_numel = r.reduced_numel = 1;
  for (int64_t s : kept) r.kept_numel *= s;
  for (int64_t s : reduced) r.reduced_numel *= s;
  r.in = reinterpret_cast<void*>(0x1000);
  r.in_dtype = in;
  r.in_kept_strides = kept_strides.data();
  r.in_reduced_strides = reduced_strides.data();
  r.out_dtype = out;
  ReducePass p;
  EXPECT_TRUE(plan_reduce(r, &p));
  return p;
}

void expect_passes_compile(const ReducePass& p) {
  expect_compiles(reduce_text(p));
  if (p.splits > 1) expect_compiles(reduce_text(second_pass(p)));
}

TEST(CudaReduce, ShapesGetTheirKernels) {
  ReduceBody sum = sum_body();
  auto f32 = DType::kFloat32;
  // All of it: split, then combined.
  ReducePass all = plan_of(sum, RegClass::kF32, f32, f32, {}, {}, {16384, 4096}, {4096, 1});
  EXPECT_FALSE(all.columns);
  EXPECT_EQ(all.vec, 4);
  EXPECT_GT(all.splits, 512);
  EXPECT_GE(all.chunk * all.splits, int64_t{16384} * 4096);
  EXPECT_EQ(second_pass(all).splits, 1);
  expect_passes_compile(all);
  // Rows: a block each.
  ReducePass rows = plan_of(sum, RegClass::kF32, f32, f32, {16384}, {4096}, {4096}, {1});
  EXPECT_EQ(rows.group, kReduceThreads);
  EXPECT_EQ(rows.splits, 1);
  expect_passes_compile(rows);
  // Columns.
  ReducePass columns = plan_of(sum, RegClass::kF32, f32, f32, {4096}, {1}, {16384}, {4096});
  EXPECT_TRUE(columns.columns);
  EXPECT_EQ(columns.vec, 4);
  EXPECT_GT(columns.splits, 1);
  expect_passes_compile(columns);
  // Short rows share a warp; strided ones take single elements.
  EXPECT_LT(plan_of(sum, RegClass::kF32, f32, f32, {1000}, {10}, {10}, {1}).group, 32);
  expect_passes_compile(plan_of(sum, RegClass::kF32, f32, f32, {1000}, {10}, {10}, {1}));
  expect_passes_compile(plan_of(sum, RegClass::kF32, DType::kFloat16, DType::kFloat16, {64}, {49},
                                {32, 49}, {3136, 1}));
  expect_passes_compile(plan_of(sum, RegClass::kF64, DType::kFloat64, DType::kFloat64, {5, 7},
                                {1000, 3}, {11, 13}, {90, 7}));
}

TEST(CudaReduce, TreeDoesNotDependOnTheAddress) {
  ReduceBody sum = sum_body();
  ReducePass p =
      plan_of(sum, RegClass::kF32, DType::kFloat32, DType::kFloat32, {}, {}, {1 << 22}, {1});
  ReducePass rows =
      plan_of(sum, RegClass::kF32, DType::kFloat32, DType::kFloat32, {8}, {4099}, {4099}, {1});
  EXPECT_TRUE(p.vector_loads);
  EXPECT_FALSE(rows.vector_loads);
  EXPECT_EQ(rows.vec, 4);
}

TEST(CudaReduce, AllClasses) {
  ReduceBody sum = sum_body();
  ReduceBody mean{"mean", "a", "x + y", "x / n", "T(0)", {}};
  ReduceBody largest{"amax", "a", "max_nan(x, y)", "x", "-std::numeric_limits<T>::infinity()", {}};
  ReduceBody any{"any", "a", "x || y", "x", "false", {}};
  expect_passes_compile(
      plan_of(mean, RegClass::kF32, DType::kBFloat16, DType::kBFloat16, {64}, {1024}, {1024}, {1}));
  expect_passes_compile(
      plan_of(largest, RegClass::kF64, DType::kFloat64, DType::kFloat64, {}, {}, {1 << 20}, {1}));
  expect_passes_compile(
      plan_of(sum, RegClass::kI64, DType::kBool, DType::kInt64, {100}, {1}, {5000}, {100}));
  expect_passes_compile(
      plan_of(sum, RegClass::kI64, DType::kInt32, DType::kInt64, {}, {}, {1 << 20}, {1}));
  expect_passes_compile(
      plan_of(any, RegClass::kB8, DType::kBool, DType::kBool, {}, {}, {1 << 20}, {1}));
  expect_passes_compile(
      plan_of(any, RegClass::kB8, DType::kFloat32, DType::kBool, {10}, {1}, {1 << 20}, {10}));
}

TEST(CudaKernels, Softmax) {
  for (DType t : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16})
    for (bool log : {false, true}) {
      int vec = std::min<int>(static_cast<int>(16 / itemsize(t)), 8);
      expect_compiles(softmax_text({t, log, false, 32, vec, 4, true}));
      expect_compiles(softmax_text({t, log, false, 1024, 1, 0, false}));
      expect_compiles(softmax_text({t, log, true, 256, 1, 0, false}));
    }
  expect_compiles(softmax_text({DType::kFloat32, false, false, 1024, 4, 8, true}));
}

TEST(CudaKernels, Random) {
  for (DType t : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    expect_compiles(random_text(Draw::kUniform, t, t == DType::kFloat64));
    expect_compiles(random_text(Draw::kNormal, t, t == DType::kFloat64));
  }
  for (DType t : {DType::kBool, DType::kUInt8, DType::kInt64, DType::kFloat32, DType::kFloat16}) {
    expect_compiles(random_text(Draw::kBernoulli, t, false));
    expect_compiles(random_text(Draw::kRandomInt, t, false));
    expect_compiles(random_text(Draw::kRandomInt, t, true));
  }
}

TEST(CudaKernels, Ranges) {
  for (DType t : {DType::kBool, DType::kUInt8, DType::kInt64, DType::kFloat64, DType::kFloat16})
    expect_compiles(arange_text(t));
}

TEST(CudaKernels, MatmulAndBias) {
  for (DType t : {DType::kInt64, DType::kInt32, DType::kUInt8, DType::kFloat32, DType::kFloat16}) {
    expect_compiles(matmul_text(t));
    expect_compiles(bias_add_text(t));
  }
}

TEST(CudaCompile, SecondTimeFromTheCacheAndErrorsWithTheirLog) {
  if (!nvrtc_api(nullptr)) GTEST_SKIP() << "NVRTC cannot be opened here";
  std::string text = "extern \"C\" __global__ void k(int* p) { *p = " +
                     std::to_string(std::random_device()() & 0xffffff) + "; }";
  std::vector<char> first, second;
  std::string error;
  int64_t compiled = 0, cached = 0, compiled_after = 0, cached_after = 0;
  ASSERT_TRUE(compile_text(text, 90, &first, &error)) << error;
  count_compilations(&compiled, &cached);
  ASSERT_TRUE(compile_text(text, 90, &second, &error)) << error;
  count_compilations(&compiled_after, &cached_after);
  EXPECT_EQ(compiled_after, compiled + 1);
  // A home that cannot be written has no cache: the text is compiled again, to the same code.
  EXPECT_LE(cached_after, cached + 1);
  EXPECT_EQ(is_compiled(text, 90, Effort::kFull), cached_after > cached);
  EXPECT_FALSE(is_compiled(text, 90, Effort::kQuick));
  EXPECT_EQ(first.size(), second.size());
  EXPECT_FALSE(compile_text("this is no kernel", 90, &first, &error));
  EXPECT_NE(error.find("error"), std::string::npos);
}

}  // namespace
}  // namespace tessera::cuda
