// The skeleton of scans.
//
// Note [The tree of a scan]
// A tile of a line is scanned by one block: runs in threads, threads in warps, warps in the block.
// Many lines: a block goes along its lines tile by tile. Few long lines: every tile has a block of
// its own, which publishes what its tile comes to and looks back at what lies before. Blocks that
// add up whatever has been published so far would make the result a matter of timing, so what is
// joined is fixed: the totals of the tiles before in a group of 32, those of the groups before in
// 32 groups, and the total of all such before. Only the last waits for a chain, a link for every
// 1024 tiles. Tiles are handed out in order, so that what a block waits for is always under way.
#include "scan.h"

#include "lines.h"

namespace tessera::cuda {
namespace {

constexpr const char* kScan = R"(
struct Params {
  char* at[4];
  int64_t stride[4];
  int64_t n, lines, tiles;
  unsigned* ticket;
  unsigned* flags[3];
  char* totals[3];
  Walk<4> walk;
};
constexpr int64_t kTile = (int64_t)kSeg * kRun * kRuns * kWarps;

TS_FN void publish(const Params& p, int level, int64_t at, const State& s) {
  if (seg_of() == 0) ((State*)p.totals[level])[at * kLines + line_of()] = s;
  __threadfence();
  __syncwarp();
  if (lane_of() == 0) *(volatile unsigned*)(p.flags[level] + at) = 1;
}
// Up to 32 totals of a level, those before a tile.
struct Before { int level; int64_t first; int count; };
TS_FN bool ready(const Params& p, const Before& b) {
  return lane_of() >= b.count ||
         *(const volatile unsigned*)(p.flags[b.level] + b.first + lane_of()) != 0;
}
TS_FN State sum_of(const Params& p, const Before& b) {
  State sum = none();
  #pragma unroll 8
  for (int i = 0; i < kLines; ++i) {
    const int j = seg_of() * kLines + i;
    if (j >= b.count) break;
    const volatile unsigned* from = (const volatile unsigned*)(
        (const State*)p.totals[b.level] + (b.first + j) * kLines + line_of());
    Words<State> w;
    #pragma unroll
    for (int n = 0; n < (int)sizeof(State) / 4; ++n) w.w[n] = from[n];
    sum = join(sum, __builtin_bit_cast(State, w));
  }
  #pragma unroll
  for (int d = 1; d < kSeg; d *= 2) {
    const State below = from_below(sum, d * kUnit);
    if (seg_of() >= d) sum = join(below, sum);
  }
  return from_lane(sum, lane_at(kSeg - 1));
}
// What lies before a tile that comes to `total`; a warp.
TS_FN State look_back(const Params& p, int64_t chunk, int64_t tile, const State& total) {
  const int64_t groups = (p.tiles + 31) / 32, supers = (groups + 31) / 32;
  const int64_t group = tile / 32, super = group / 32;
  const bool ends_group = tile % 32 == 31, ends_super = ends_group && group % 32 == 31;
  const Before tiles = {0, chunk * p.tiles + group * 32, (int)(tile % 32)};
  const Before near = {1, chunk * groups + super * 32, (int)(group % 32)};
  const Before far = {2, chunk * supers + super - 1, super > 0 ? 1 : 0};
  publish(p, 0, chunk * p.tiles + tile, total);
  // All are asked for at once; what ends a group must not wait for groups before it.
  bool rest = false;
  for (bool here = false; !here;) {
    const bool own = ready(p, tiles), others = ready(p, near) && ready(p, far);
    here = __all_sync(kAll, own);
    rest = __all_sync(kAll, others);
  }
  __threadfence();
  __syncwarp();
  const State in_group = sum_of(p, tiles);
  if (ends_group) publish(p, 1, chunk * groups + group, join(in_group, total));
  if (!rest) {
    while (!__all_sync(kAll, ready(p, near) && ready(p, far))) {}
    __threadfence();
    __syncwarp();
  }
  const State before = join(sum_of(p, far), sum_of(p, near));
  if (ends_super) publish(p, 2, chunk * supers + super, join(before, join(in_group, total)));
  return join(before, in_group);
}

extern "C" __global__ void __launch_bounds__(256) ENTRY(const __grid_constant__ Params p) {
  __shared__ State parts[2][kGroups][kWarps][kLines];
  __shared__ State carries[kLines];
  __shared__ unsigned ticket;
  const int seg = seg_of(), row = line_of();
  const int part = threadIdx.x / 32 % kWarps, group = threadIdx.x / 32 / kWarps;
  int64_t chunk = blockIdx.x, tile = 0;
  if constexpr (LOOK_BACK) {
    if (threadIdx.x == 0) ticket = atomicAdd(p.ticket, 1u);
    __syncthreads();
    chunk = ticket / p.tiles;
    tile = ticket - chunk * p.tiles;
  }
  const int64_t line = (chunk * kGroups + group) * kLines + row;
  const int64_t n = line < p.lines ? p.n : 0;
  int64_t o[4];
  offsets(p.walk, n > 0 ? line : 0, o);
  const T::S* in[2];
  in[0] = (const T::S*)p.at[0] + o[0];
  in[1] = (const T::S*)p.at[1] + o[1];
  T::S* const out = (T::S*)p.at[2] + o[2];
  int64_t* const where = (int64_t*)p.at[3] + o[3];
  State carry = none();
  for (int turn = 0;; turn ^= 1) {
    const int64_t first = tile * kTile + part * (kRuns * kSeg * kRun) + seg * kRun;
    Vec<T::S, V> x[INPUTS][K];
    #pragma unroll
    for (int i = 0; i < INPUTS; ++i) load_runs(in[i], p.stride[i], first, n, x[i]);
    State s[K][V], lead[K], run = none();
    #pragma unroll
    for (int k = 0; k < kRuns; ++k) {
      #pragma unroll
      for (int i = 0; i < kRun; ++i) {
        const int64_t j = first + k * (kSeg * kRun) + i;
        s[k][i] = none();
        if (j < n) {
          T::A a[INPUTS];
          #pragma unroll
          for (int m = 0; m < INPUTS; ++m) a[m] = T::ld(x[m][k].v[in_run(i)]);
          s[k][i] = make(a, j);
        }
        if (i > 0) s[k][i] = join(s[k][i > 0 ? i - 1 : 0], s[k][i]);
      }
      State sum = s[k][kRun - 1];
      #pragma unroll
      for (int d = 1; d < kSeg; d *= 2) {
        const State below = from_below(sum, d * kUnit);
        if (seg >= d) sum = join(below, sum);
      }
      lead[k] = run;
      if constexpr (kSeg > 1) {
        const State below = from_below(sum, kUnit);
        if (seg > 0) lead[k] = join(run, below);
        sum = from_lane(sum, lane_at(kSeg - 1));
      }
      run = join(run, sum);
    }
    State before = none(), all = run;
    if constexpr (kWarps > 1) {
      if (seg == 0) parts[turn][group][part][row] = run;
      __syncthreads();
      all = none();
      #pragma unroll
      for (int w = 0; w < kWarps; ++w) {
        if (w == part) before = all;
        all = join(all, parts[turn][group][w][row]);
      }
    }
    if constexpr (LOOK_BACK) {
      if (threadIdx.x < 32) {
        const State c = look_back(p, chunk, tile, all);
        if (seg == 0) carries[row] = c;
      }
      __syncthreads();
      carry = carries[row];
    }
    before = join(carry, before);
    #pragma unroll
    for (int k = 0; k < kRuns; ++k) {
      const State from = join(before, lead[k]);
      Vec<T::S, V> y;
      Vec<int64_t, V> z;
      #pragma unroll
      for (int i = 0; i < kRun; ++i) put(join(from, s[k][i]), y.v[in_run(i)], z.v[in_run(i)]);
      const int64_t j = first + k * (kSeg * kRun);
      store_run(out, p.stride[2], j, n, y);
      if constexpr (OUTPUTS > 1) store_run(where, p.stride[3], j, n, z);
    }
    if constexpr (!TILES) break;
    carry = join(carry, all);
    if (++tile >= p.tiles) break;
  }
}
)";

struct Params {
  char* at[4];
  int64_t stride[4];
  int64_t n, lines, tiles;
  CUdeviceptr ticket, flags[3], totals[3];
  Walk<4> walk;
};

// Blocks below which tiles are spread over blocks. A constant: the tree must not depend on the
// device.
constexpr int64_t kManyBlocks = 1024;
constexpr int64_t kManyElements = 1 << 22;

}  // namespace

ScanOp make_scan(const char* entry, const std::string& text, bool large, int inputs, int outputs) {
  std::string body = kScan;
  body.replace(body.find("ENTRY"), 5, entry);
  return {entry, std::string(kLinesText) + text + body, large, inputs, outputs};
}

Status run_scan(Device& d, CUstream stream, const ScanOp& op, const KernelArgs& args, int64_t dim,
                bool reverse, int64_t option) {
  const KernelTensor& x = args.inputs[0];
  if (x.numel == 0) return ok();
  const KernelTensor* operands[4] = {&x, op.inputs > 1 ? &args.inputs[1] : &x, &args.outputs[0],
                                     op.outputs > 1 ? &args.outputs[1] : &args.outputs[0]};
  Params p{};
  p.n = x.ndim > 0 ? x.sizes[dim] : 1;
  p.lines = x.numel / p.n;
  TS_TRY(make_walk(
      &p.walk, x.ndim, x.sizes,
      {operands[0]->strides, operands[1]->strides, operands[2]->strides, operands[3]->strides},
      static_cast<int>(dim)));
  bool dense = true;
  for (int i = 0; i < 4; ++i) {
    p.stride[i] = x.ndim > 0 && p.n > 1 ? operands[i]->strides[dim] : 1;
    dense &= p.stride[i] == 1;
  }
  const int64_t bytes = static_cast<int64_t>(itemsize(x.dtype));
  const int64_t items = bytes <= 4 && !op.large ? 16 : 8;
  const int64_t last = p.walk.nd - 1;
  int64_t run = dense ? vector_of(bytes) : 1;
  bool aligned = true;
  if (p.n % run != 0) run = 1;
  for (int i = 0; i < 4; ++i) {
    aligned &= reinterpret_cast<uintptr_t>(operands[i]->data) % 16 == 0;
    for (int k = 0; k < p.walk.nd; ++k)
      if (p.walk.strides[i][k] % run != 0) run = 1;
  }
  Spread s = spread_lines(p.n, p.lines, run, items, dense || last < 0 ? 0 : p.walk.sizes[last]);
  s.vector = run > 1 && aligned;
  for (int i = 0; i < 4; ++i) {
    p.at[i] = static_cast<char*>(operands[i]->data);
    if (!reverse || s.vector) continue;
    p.at[i] += (p.n - 1) * p.stride[i] * static_cast<int64_t>(itemsize(operands[i]->dtype));
    p.stride[i] = -p.stride[i];
  }
  auto blocks_of = [&] { return (p.lines + s.block_lines() - 1) / s.block_lines(); };
  const bool look_back = p.n > s.tile() && blocks_of() < kManyBlocks;
  // Larger tiles wait less often, where there are enough of them.
  if (look_back && !s.across && !op.large && x.numel >= kManyElements) s.k *= 2;
  const int64_t blocks = blocks_of();
  p.tiles = (p.n + s.tile() - 1) / s.tile();
  Scratch scratch(d, stream);
  if (look_back) {
    int64_t counts[3] = {p.tiles, 0, 0}, flags = 1, totals = 0;
    for (int i = 0; i < 3; ++i) {
      if (i > 0) counts[i] = (counts[i - 1] + 31) / 32;
      flags += blocks * counts[i];
      totals += blocks * counts[i] * s.lines();
    }
    const int64_t head = (flags * 4 + 15) / 16 * 16;
    TS_TRY(scratch.take(static_cast<size_t>(head + totals * kMostStateBytes)));
    TS_TRY(check(d,
                 driver().cuMemsetD8Async(scratch.address(), 0, static_cast<size_t>(head), stream),
                 op.entry));
    p.ticket = scratch.address();
    CUdeviceptr flag = p.ticket + 4, total = p.ticket + static_cast<uint64_t>(head);
    for (int i = 0; i < 3; ++i) {
      p.flags[i] = flag;
      p.totals[i] = total;
      flag += static_cast<uint64_t>(blocks * counts[i] * 4);
      total += static_cast<uint64_t>(blocks * counts[i] * s.lines() * kMostStateBytes);
    }
  }
  const TextKernel kernel{op.entry, op.text.c_str()};
  return launch_text(
      d, stream, kernel,
      {def("T", x.dtype), def("THREADS", s.threads()), def("SEG", s.seg), def("V", s.v),
       def("K", s.k), def("W", s.w), def("ACROSS", s.across), def("VECTOR", s.vector),
       def("REVERSE", reverse && s.vector), def("INPUTS", op.inputs), def("OUTPUTS", op.outputs),
       def("LOOK_BACK", look_back), def("TILES", p.tiles > 1 && !look_back), def("OPTION", option)},
      {look_back ? blocks * p.tiles : blocks, s.threads()}, &p);
}

}  // namespace tessera::cuda
