// The skeleton of folds. A thread folds runs as it comes by, then lanes, warps and, where lines are
// few, blocks are joined in an order that depends on sizes alone.
#include "fold.h"

#include "lines.h"

namespace tessera::cuda {
namespace {

constexpr const char* kParams = R"(
struct Params {
  const T::S* x;
  char* out[2];
  char* parts;
  int64_t n, lines, piece, splits;
  double number;
  Walk<1> kept, along;
};
constexpr int N = kRuns * kRun;
)";

constexpr const char* kFold = R"(
extern "C" __global__ void __launch_bounds__(256, sizeof(T::S) > 4 ? 2 : 4) ENTRY(const __grid_constant__ Params p) {
  __shared__ State parts[kGroups][kWarps][kLines];
  const int seg = seg_of(), row = line_of();
  const int part = threadIdx.x / 32 % kWarps, group = threadIdx.x / 32 / kWarps;
  const int64_t line = ((int64_t)blockIdx.x * kGroups + group) * kLines + row;
  const int64_t begin = blockIdx.y * p.piece;
  int64_t end = begin + p.piece < p.n ? begin + p.piece : p.n;
  if (line >= p.lines) end = begin;
  const T::S* x = p.x + offset(p.kept, line < p.lines ? line : 0);
  const T::A about = pivot(x, p.n);
  constexpr int64_t step = kWarps * kSeg * kRun;
  State s = none();
  #pragma unroll 1
  for (int64_t j = begin + (part * kSeg + seg) * kRun; j < end; j += step * kRuns) {
    Vec<T::S, V> raw[K];
    #pragma unroll
    for (int k = 0; k < kRuns; ++k) {
      const int64_t at = j + k * step;
      if (at < end) {
        const T::S* from = x + (FLAT ? at * p.along.strides[0][0] : offset(p.along, at));
        if constexpr (VECTOR) raw[k] = *(const Vec<T::S, V>*)from;
        else {
          #pragma unroll
          for (int i = 0; i < kRun; ++i) raw[k].v[i] = from[i];
        }
      }
    }
    T::A v[N];
    int count = 0;
    #pragma unroll
    for (int k = 0; k < kRuns; ++k) {
      const bool there = j + k * step < end;
      count += there ? kRun : 0;
      #pragma unroll
      for (int i = 0; i < kRun; ++i) v[k * kRun + i] = there ? T::ld(raw[k].v[i]) : T::A(0);
    }
    s = join(s, of(v, count, j, step, about));
  }
  // A join in the text once, not eight times: it may hold a division, which is a call.
  #pragma unroll 1
  for (int d = 1; d < kSeg; d *= 2) s = join(s, from_other(s, d * kUnit));
  #pragma unroll 1
  for (int d = 1; d < kWarps; d *= 2) {
    if (seg == 0) parts[group][part][row] = s;
    __syncthreads();
    if (part % (2 * d) == 0) s = join(s, parts[group][part + d][row]);
    __syncthreads();
  }
  if (part > 0 || seg > 0 || line >= p.lines) return;
  if constexpr (SPLIT) ((State*)p.parts)[line * p.splits + blockIdx.y] = s;
  else finish(p, line, s);
}
)";

constexpr const char* kMerge = R"(
extern "C" __global__ void __launch_bounds__(256) ENTRY(const __grid_constant__ Params p) {
  const int64_t line = (int64_t)blockIdx.x * 8 + threadIdx.x / 32;
  if (line >= p.lines) return;  // a whole warp
  State s = none();
  for (int64_t i = lane_of(); i < p.splits; i += 32)
    s = join(s, ((const State*)p.parts)[line * p.splits + i]);
  #pragma unroll
  for (int d = 1; d < 32; d *= 2) s = join(s, from_other(s, d));
  if (lane_of() == 0) finish(p, line, s);
}
)";

std::string named(std::string text, const char* entry) {
  return text.replace(text.find("ENTRY"), 5, entry);
}

// How many blocks are worth cutting lines for, and how many steps a block should have. Constants:
// the tree must not depend on the device.
constexpr int64_t kManyBlocks = 1024;
constexpr int64_t kSteps = 4;
// Of so many lines a warp takes one by itself: nobody waits at a barrier, and there is less to
// join.
constexpr int64_t kManyLines = 8192;

}  // namespace

FoldOp make_fold(const char* entry, const char* merge_entry, const char* text) {
  const std::string head = std::string(kLinesText) + kParams + text;
  return {entry, merge_entry, head + named(kFold, entry), head + named(kMerge, merge_entry)};
}

Status run_fold(Device& d, CUstream stream, const FoldOp& op, const KernelTensor& x, FoldParams& p,
                DType out, int outputs, int64_t option) {
  p.x = x.data;
  if (p.lines == 0) return ok();
  const int64_t bytes = static_cast<int64_t>(itemsize(x.dtype));
  const int64_t inner = p.along.nd > 0 ? p.along.sizes[p.along.nd - 1] : 1;
  const bool dense = p.along.nd == 0 || p.along.strides[0][p.along.nd - 1] == 1;
  const int64_t last = p.kept.nd - 1;
  const bool across = last >= 0 && !dense && p.kept.strides[0][last] == 1;
  int64_t run = dense ? vector_of(bytes) : 1;
  if (inner % run != 0) run = 1;
  for (int i = 0; i < p.kept.nd; ++i)
    if (p.kept.strides[0][i] % run != 0) run = 1;
  for (int i = 0; i + 1 < p.along.nd; ++i)
    if (p.along.strides[0][i] % run != 0) run = 1;
  Spread s = spread_lines(p.n, p.lines, run, bytes <= 4 ? 16 : 8, across ? p.kept.sizes[last] : 0,
                          p.lines >= kManyLines ? 1 : 8);
  if (s.across) {  // single elements, as many as the runs would have
    s.k *= s.v;
    s.v = 1;
  }
  // Addresses decide how elements are loaded, never how they are joined.
  s.vector = run > 1 && reinterpret_cast<uintptr_t>(x.data) % 16 == 0;
  const int64_t blocks = (p.lines + s.block_lines() - 1) / s.block_lines();
  p.piece = std::max<int64_t>(1, p.n);
  if (blocks < kManyBlocks && p.n > kSteps * s.tile()) {
    const int64_t pieces =
        std::min((p.n + kSteps * s.tile() - 1) / (kSteps * s.tile()), kManyBlocks / blocks);
    p.piece = ((p.n + pieces - 1) / pieces + s.tile() - 1) / s.tile() * s.tile();
  }
  p.splits = std::max<int64_t>(1, (p.n + p.piece - 1) / p.piece);
  Scratch parts(d, stream);
  if (p.splits > 1) {
    TS_TRY(parts.take(static_cast<size_t>(p.splits * p.lines) * 32));
    p.parts = parts.address();
  }
  const TextKernel fold{op.entry, op.text.c_str()};
  TS_TRY(
      launch_text(d, stream, fold,
                  {def("T", x.dtype), def("O", out), def("THREADS", s.threads()), def("SEG", s.seg),
                   def("V", s.v), def("K", s.k), def("W", s.w), def("ACROSS", s.across),
                   def("VECTOR", s.vector), def("REVERSE", false), def("OUTPUTS", outputs),
                   def("FLAT", p.along.nd <= 1), def("SPLIT", p.splits > 1), def("OPTION", option)},
                  {blocks, s.threads(), p.splits}, &p));
  if (p.splits == 1) return ok();
  const TextKernel merge{op.merge_entry, op.merge_text.c_str()};
  return launch_text(
      d, stream, merge,
      {def("T", x.dtype), def("O", out), def("THREADS", 256), def("SEG", 32), def("V", 1),
       def("K", 1), def("W", 1), def("ACROSS", false), def("VECTOR", false), def("REVERSE", false),
       def("OUTPUTS", outputs), def("OPTION", option)},
      {(p.lines + 7) / 8, 256}, &p);
}

}  // namespace tessera::cuda
