// Products with the reflectors of many small matrices at once, which cuSOLVER takes one by one.
#include "../linalg.h"
#include "../text.h"

namespace tessera::cuda {
namespace {

// A warp for each line x of a matrix (a column, or a row where Q stands on the right): x becomes
// Q x or Q^H x. Each lane keeps to its own elements of the line, so nothing is waited for but sums.
// IDENTITY: x begins as column `line` of the identity, which reflectors beyond it do not change.
constexpr TextKernel kReflect{"linalg_reflect", R"(
typedef T::S C;
template <class X> TS_FN X conjugate(X x) { if constexpr (is_complex_v<X>) x.im = -x.im; return x; }
template <class X> TS_FN X total(X x) {
  #pragma unroll
  for (int w = 16; w > 0; w /= 2) {
    if constexpr (is_complex_v<X>) {
      x.re += __shfl_xor_sync(0xffffffffu, x.re, w);
      x.im += __shfl_xor_sync(0xffffffffu, x.im, w);
    } else {
      x += __shfl_xor_sync(0xffffffffu, x, w);
    }
  }
  return x;
}
struct Params {
  const C *v, *tau;
  C* x;
  int64_t batch, m, k, lines, v_stride, v_ld, tau_stride, tau_step, x_stride, line_stride, step;
};
extern "C" __global__ void __launch_bounds__(256) linalg_reflect(const __grid_constant__ Params p) {
  const int lane = threadIdx.x % 32;
  const int64_t warps = threads() / 32;
  for (int64_t z = thread() / 32; z < p.batch * p.lines; z += warps) {
    const int64_t b = z / p.lines, line = z % p.lines;
    C* x = p.x + b * p.x_stride + line * p.line_stride;
    if constexpr (IDENTITY)
      for (int64_t r = lane; r < p.m; r += 32) x[r * p.step] = C(r == line ? 1 : 0);
    if constexpr (CONJUGATE)
      for (int64_t r = lane; r < p.m; r += 32) x[r * p.step] = conjugate(x[r * p.step]);
    const int64_t count = IDENTITY && line + 1 < p.k ? line + 1 : p.k;
    for (int64_t s = 0; s < count; ++s) {
      const int64_t i = ADJOINT ? s : count - 1 - s;
      const C* v = p.v + b * p.v_stride + i * p.v_ld;
      // The first element of a reflector is one; the elements of this lane begin at or after it.
      const int64_t first = i + (lane - i % 32 + 32) % 32;
      C sum(0);
      for (int64_t r = first; r < p.m; r += 32) {
        const C y = x[r * p.step];
        sum = sum + (r == i ? y : conjugate(v[r]) * y);
      }
      C t = p.tau[b * p.tau_stride + i * p.tau_step];
      if constexpr (ADJOINT) t = conjugate(t);
      const C by = t * total(sum);
      for (int64_t r = first; r < p.m; r += 32)
        x[r * p.step] = x[r * p.step] - (r == i ? by : v[r] * by);
    }
    if constexpr (CONJUGATE)
      for (int64_t r = lane; r < p.m; r += 32) x[r * p.step] = conjugate(x[r * p.step]);
  }
})"};

}  // namespace

Status reflect(Device& d, CUstream stream, DType dtype, const Reflectors& q, const Lines& x,
               bool adjoint) {
  struct {
    const void *v, *tau;
    void* x;
    int64_t batch, m, k, lines, v_stride, v_ld, tau_stride, tau_step, x_stride, line_stride, step;
  } p{q.v,      q.tau, x.data,       q.batch,    q.m,      q.k,           x.count,
      q.stride, q.ld,  q.tau_stride, q.tau_step, x.stride, x.line_stride, x.step};
  const int64_t blocks = (q.batch * x.count + 7) / 8;
  return launch_text(
      d, stream, kReflect,
      {def("T", dtype), def("ADJOINT", adjoint != x.on_the_right),
       def("CONJUGATE", x.on_the_right && is_complex(dtype)), def("IDENTITY", x.identity)},
      {std::min<int64_t>(blocks, int64_t{d.multiprocessors} * 32), 256}, &p);
}

}  // namespace tessera::cuda
