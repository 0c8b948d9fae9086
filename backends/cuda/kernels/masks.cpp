// Elements that are not zero: counted in blocks of 8192, then positions written, or what lies at
// them moved. A block's truth values are kept as bits in shared memory, a word of 32 for a thread.
#include <algorithm>

#include "../kernels.h"
#include "../text.h"
#include "../walk.h"
#include "join.h"

namespace tessera::cuda {
namespace {

constexpr int64_t kBlock = 8192;

// Definitions T (of the mask), BYTES (dense bytes at an address that 16 divides), DENSE.
constexpr char kBitsText[] = R"(
__shared__ unsigned bits[256];
// Of four bytes which are not zero.
TS_FN unsigned four(unsigned w) {
  const unsigned set = (((w & 0x7f7f7f7fu) + 0x7f7f7f7fu) | w) & 0x80808080u;
  return (set >> 7 & 1u) | (set >> 14 & 2u) | (set >> 21 & 4u) | (set >> 28 & 8u);
}
TS_FN unsigned sixteen(uint4 x) {
  return four(x.x) | four(x.y) << 4 | four(x.z) << 8 | four(x.w) << 12;
}
TS_FN bool truth(const T::S* mask, const Walk<1>& walk, int64_t i) {
  return T::ld(mask[DENSE ? i : offset(walk, i)]) != T::A(0);
}
// Fills bits with those of elements [first, first + 8192) below n.
TS_FN void find(const T::S* mask, const Walk<1>& walk, int64_t first, int64_t n) {
  if (BYTES && first + 8192 <= n) {
    const uint4* at = (const uint4*)(mask + first) + 2 * threadIdx.x;
    const uint4 a = at[0], b = at[1];
    bits[threadIdx.x] = sixteen(a) | sixteen(b) << 16;
  } else {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    #pragma unroll 1
    for (int k = 0; k < 32; k += 8) {
      bool found[8];
      #pragma unroll
      for (int u = 0; u < 8; ++u) {
        const int64_t i = first + (warp * 32 + k + u) * 32 + lane;
        found[u] = i < n && truth(mask, walk, i);
      }
      #pragma unroll
      for (int u = 0; u < 8; ++u) {
        const unsigned word = __ballot_sync(0xffffffffu, found[u]);
        if (lane == 0) bits[warp * 32 + k + u] = word;
      }
    }
  }
  __syncthreads();
}
// The sum over the threads before this one; `all` is that over all of them.
TS_FN unsigned sum_before(unsigned x, unsigned& all) {
  __shared__ unsigned parts[8];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  unsigned sum = x;
  #pragma unroll
  for (int by = 1; by < 32; by *= 2) {
    const unsigned other = __shfl_up_sync(0xffffffffu, sum, by);
    if (lane >= by) sum += other;
  }
  if (lane == 31) parts[warp] = sum;
  __syncthreads();
  unsigned lower = 0;
  all = 0;
  #pragma unroll
  for (int w = 0; w < 8; ++w) {
    if (w < warp) lower += parts[w];
    all += parts[w];
  }
  return lower + sum - x;
}
)";

constexpr auto kCountText = join(kBitsText, R"(
struct Params { const T::S* mask; int64_t n; int64_t* starts; Walk<1> walk; };
extern "C" __global__ void __launch_bounds__(256) mask_count(const __grid_constant__ Params p) {
  find(p.mask, p.walk, (int64_t)blockIdx.x * 8192, p.n);
  unsigned all;
  sum_before(__popc(bits[threadIdx.x]), all);
  if (threadIdx.x == 0) p.starts[blockIdx.x + 1] = all;
})");
constexpr TextKernel kCount{"mask_count", kCountText.text};

// Counts at 1.. become sums, in one block.
constexpr TextKernel kSums{"mask_sums", R"(
struct Params { int64_t* starts; int64_t blocks; };
extern "C" __global__ void __launch_bounds__(1024) mask_sums(const __grid_constant__ Params p) {
  __shared__ int64_t parts[32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) p.starts[0] = 0;
  int64_t before = 0;
  for (int64_t base = 0; base < p.blocks; base += 1024) {
    const int64_t i = base + threadIdx.x;
    int64_t sum = i < p.blocks ? p.starts[i + 1] : 0;
    #pragma unroll
    for (int by = 1; by < 32; by *= 2) {
      const int64_t other = __shfl_up_sync(0xffffffffu, sum, by);
      if (lane >= by) sum += other;
    }
    if (lane == 31) parts[warp] = sum;
    __syncthreads();
    int64_t lower = 0, all = 0;
    for (int w = 0; w < 32; ++w) {
      if (w < warp) lower += parts[w];
      all += parts[w];
    }
    if (i < p.blocks) p.starts[i + 1] = before + lower + sum;
    before += all;
    __syncthreads();
  }
})"};

// WHAT: 0 numbers of the elements, 1 their coordinates, 2 packs what lies there, 3 unpacks.
constexpr auto kMoveText = join(kBitsText, R"(
struct Params {
  const T::S* mask; int64_t n; const int64_t* starts; Walk<1> walk;
  UNIT* packed; UNIT* tensor; int64_t* out; Walk<1> places; int64_t nd; int64_t sizes[64];
};
TS_FN void coordinates(const Params& p, int64_t i, int64_t* out) {
  #pragma unroll 1
  for (int d = (int)p.nd - 1; d >= 0; --d) {
    const int64_t size = p.sizes[d];
    const int64_t q = (i | size) >> 31 == 0 ? (int64_t)((unsigned)i / (unsigned)size) : i / size;
    out[d] = i - q * size;
    i = q;
  }
}
extern "C" __global__ void __launch_bounds__(256) mask_move(const __grid_constant__ Params p) {
  __shared__ unsigned before[256];
  const int64_t start = p.starts[blockIdx.x];
  if (p.starts[blockIdx.x + 1] == start) return;
  const int64_t first = (int64_t)blockIdx.x * 8192;
  find(p.mask, p.walk, first, p.n);
  unsigned all;
  before[threadIdx.x] = sum_before(__popc(bits[threadIdx.x]), all);
  __syncthreads();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  #pragma unroll 1
  for (int k = 0; k < 32; k += 4) {  // all loads, then all stores
    bool found[4];
    int64_t at[4], i[4];
    UNIT v[4];
    #pragma unroll
    for (int u = 0; u < 4; ++u) {
      const unsigned word = bits[warp * 32 + k + u];
      found[u] = word >> lane & 1u;
      at[u] = start + before[warp * 32 + k + u] + __popc(word & ((1u << lane) - 1u));
      i[u] = first + (warp * 32 + k + u) * 32 + lane;
      if constexpr (WHAT >= 2) {
        if (!found[u]) continue;
        if (!DENSE_PLACES) i[u] = offset(p.places, i[u]);
        v[u] = WHAT == 2 ? p.tensor[i[u]] : p.packed[at[u]];
      }
    }
    #pragma unroll
    for (int u = 0; u < 4; ++u) {
      if (!found[u]) continue;
      if constexpr (WHAT == 0) p.out[at[u]] = i[u];
      else if constexpr (WHAT == 1) coordinates(p, i[u], p.out + at[u] * p.nd);
      else if constexpr (WHAT == 2) p.packed[at[u]] = v[u];
      else p.tensor[i[u]] = v[u];
    }
  }
})");
constexpr TextKernel kMove{"mask_move", kMoveText.text};

bool is_dense(const Walk<1>& w) { return w.nd == 0 || (w.nd == 1 && w.strides[0][0] == 1); }
bool has_bytes(const KernelTensor& t, const Walk<1>& w) {
  return itemsize(t.dtype) == 1 && is_dense(w) && reinterpret_cast<uintptr_t>(t.data) % 16 == 0;
}

Status check_block(const KernelArgs& args) {
  if (args.num_ints > 0 && args.ints[0] == kBlock) return ok();
  return fail(Code::kUnsupported, "blocks of other sizes are not implemented for CUDA");
}

// outputs: starts of the blocks and the sum of all; ints: elements of a block.
Status run_count(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor& t = args.inputs[0];
  TS_TRY(check_block(args));
  const int64_t blocks = args.outputs[0].numel - 1;
  struct {
    const void* mask;
    int64_t n;
    void* starts;
    Walk<1> walk;
  } p{t.data, t.numel, args.outputs[0].data, {}};
  TS_TRY(make_walk(&p.walk, t.ndim, t.sizes, {t.strides}));
  if (blocks > 0)
    TS_TRY(launch_text(
        d, stream, kCount,
        {def("T", t.dtype), def("BYTES", has_bytes(t, p.walk)), def("DENSE", is_dense(p.walk))},
        {blocks, 256}, &p));
  struct {
    void* starts;
    int64_t blocks;
  } sums{p.starts, blocks};
  return launch_text(d, stream, kSums, {}, {1, 1024}, &sums);
}

struct Move {
  const KernelTensor& mask;
  const KernelTensor& starts;
  int what;
  const KernelTensor* tensor;  // what lies at the elements, or null
  void* packed;
  void* out;
};

Status move(Device& d, CUstream stream, const KernelArgs& args, const Move& m) {
  TS_TRY(check_block(args));
  const int64_t n = m.mask.numel, blocks = (n + kBlock - 1) / kBlock;
  if (n == 0) return ok();
  struct {
    const void* mask;
    int64_t n;
    const void* starts;
    Walk<1> walk;
    void *packed, *tensor, *out;
    Walk<1> places;
    int64_t nd, sizes[kMaxDims];
  } p{m.mask.data, n,  m.starts.data, {}, m.packed, m.tensor ? m.tensor->data : nullptr,
      m.out,       {}, m.mask.ndim,   {}};
  TS_TRY(make_walk(&p.walk, m.mask.ndim, m.mask.sizes, {m.mask.strides}));
  if (m.tensor) TS_TRY(make_walk(&p.places, m.tensor->ndim, m.tensor->sizes, {m.tensor->strides}));
  std::copy_n(m.mask.sizes, m.mask.ndim, p.sizes);
  const size_t unit = m.tensor ? itemsize(m.tensor->dtype) : 1;
  return launch_text(
      d, stream, kMove,
      {def("T", m.mask.dtype), def("BYTES", has_bytes(m.mask, p.walk)),
       def("DENSE", is_dense(p.walk)), def("WHAT", m.what),
       def_bytes("UNIT", static_cast<int64_t>(unit)), def("DENSE_PLACES", is_dense(p.places))},
      {blocks, 256}, &p);
}

// outputs: a row of coordinates for each, or with one dimension the number of each in row-major
// order. inputs: a tensor, starts.
Status run_nonzero(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor &t = args.inputs[0], &out = args.outputs[0];
  const bool flat = out.ndim == 1 || t.ndim == 1;
  return move(d, stream, args, {t, args.inputs[1], flat ? 0 : 1, nullptr, nullptr, out.data});
}

// inputs: a tensor and a mask of one shape, starts.
Status run_masked_select(Device& d, CUstream stream, const KernelArgs& args) {
  return move(d, stream, args,
              {args.inputs[1], args.inputs[2], 2, &args.inputs[0], args.outputs[0].data, nullptr});
}

// inputs: a mask of the output's shape, a dense source, starts.
Status run_masked_scatter(Device& d, CUstream stream, const KernelArgs& args) {
  return move(d, stream, args,
              {args.inputs[0], args.inputs[2], 3, &args.outputs[0], args.inputs[1].data, nullptr});
}

TS_CUDA_KERNEL("count_nonzero_blocks", run_count)
TS_CUDA_KERNEL("nonzero", run_nonzero)
TS_CUDA_KERNEL("masked_select", run_masked_select)
TS_CUDA_KERNEL("masked_scatter", run_masked_scatter)

}  // namespace
}  // namespace tessera::cuda
