// The matrix of a permutation, from the rows that were exchanged one after the other.
#include <algorithm>

#include "../kernels.h"
#include "../text.h"

namespace tessera::cuda {
namespace {

// A block a matrix. The exchanges depend on each other: one thread makes them, in shared memory
// where the order of the rows fits.
constexpr TextKernel kPermutation{"permutation", R"(
struct Params {
  T::S* out; const int* pivots; int* orders;
  int64_t batch, m, k, out_stride, pivot_stride, pivot_step;
};
extern __shared__ int shared_order[];
extern "C" __global__ void __launch_bounds__(256) permutation(const __grid_constant__ Params p) {
  for (int64_t b = blockIdx.x; b < p.batch; b += gridDim.x) {
    int* order = p.orders ? p.orders + (int64_t)blockIdx.x * p.m : shared_order;
    for (int64_t r = threadIdx.x; r < p.m; r += 256) order[r] = (int)r;
    __syncthreads();
    if (threadIdx.x == 0)
      for (int64_t r = 0; r < p.k; ++r) {
        const int64_t with = p.pivots[b * p.pivot_stride + r * p.pivot_step] - 1;
        if (with < 0 || with >= p.m) continue;
        const int row = order[r];
        order[r] = order[with];
        order[with] = row;
      }
    __syncthreads();
    T::S* out = p.out + b * p.out_stride;
    for (int64_t r = threadIdx.x; r < p.m; r += 256) out[order[r] * p.m + r] = T::st(T::A(1));
    __syncthreads();
  }
})"};

// outputs: P, zero so far; inputs: the rows that were exchanged, counted from 1
Status run_permutation(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor &pivots = args.inputs[0], &out = args.outputs[0];
  if (out.numel == 0) return ok();
  if (!is_floating(out.dtype) && !is_complex(out.dtype))
    return fail(Code::kUnsupported, "not implemented for %s", dtype_name(out.dtype));
  if (pivots.dtype != DType::kInt32)
    return fail(Code::kInvalid, "pivots must be int32, not %s", dtype_name(pivots.dtype));
  const int64_t batch = out.sizes[0], m = out.sizes[1];
  const int64_t blocks = std::min<int64_t>(batch, 4096);
  const bool fits = m * 4 <= 48 * 1024;
  Scratch orders(d, stream);
  if (!fits) TS_TRY(orders.take(static_cast<size_t>(blocks * m * 4)));
  struct {
    void* out;
    const void* pivots;
    CUdeviceptr orders;
    int64_t batch, m, k, out_stride, pivot_stride, pivot_step;
  } p{out.data,
      pivots.data,
      fits ? 0 : orders.address(),
      batch,
      m,
      pivots.sizes[1],
      out.strides[0],
      pivots.strides[0],
      pivots.strides[1]};
  return launch_text(d, stream, kPermutation, {def("T", out.dtype)},
                     {blocks, 256, 1, 1, fits ? static_cast<int>(m * 4) : 0}, &p);
}

TS_CUDA_KERNEL("permutation_matrix", run_permutation)

}  // namespace
}  // namespace tessera::cuda
