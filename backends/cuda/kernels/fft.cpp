// Fourier transforms through cuFFT, along dimensions of any strides.
#include <algorithm>
#include <functional>

#include "../fft_plan.h"
#include "../group.h"
#include "../kernels.h"
#include "../text.h"
#include "../walk.h"

namespace tessera::cuda {
namespace {

// A dimension of both sides; the sizes differ where one side is half.
struct Axis {
  int64_t in_size, out_size, in, out;
};

// One call of cuFFT, before it is known how its memory lies.
struct Task {
  const KernelTensor *in, *out;
  int rank;
  Axis axes[kFftRank];  // outer ones first
  Axis batch[kMaxDims];
  int batch_ndim;
  bool forward;
  bool spoils_input;  // cuFFT writes into it
  int64_t batch_numel() const {
    int64_t n = 1;
    for (int i = 0; i < batch_ndim; ++i) n *= batch[i].in_size;
    return n;
  }
};

int64_t size_of(const Axis& a, bool in) { return in ? a.in_size : a.out_size; }
int64_t stride_of(const Axis& a, bool in) { return in ? a.in : a.out; }

// Can cuFFT describe these dimensions: each stride a multiple of the next?
bool nests(const Task& t, bool in) {
  for (int i = 0; i < t.rank; ++i) {
    const int64_t s = stride_of(t.axes[i], in);
    if (s <= 0) return false;
    if (i + 1 == t.rank) break;
    const int64_t next = stride_of(t.axes[i + 1], in);
    if (next <= 0 || s % next != 0 || s / next < size_of(t.axes[i + 1], in)) return false;
  }
  return true;
}

bool is_aligned(const void* p, DType t) {
  const size_t size = itemsize(complex_dtype(t));
  return reinterpret_cast<uintptr_t>(p) % size == 0;
}

FftSide side_of(const Task& t, bool in, DType dtype, int64_t distance) {
  FftSide s{dtype, {}, stride_of(t.axes[t.rank - 1], in), distance};
  s.embed[0] = size_of(t.axes[0], in);
  for (int i = 1; i < t.rank; ++i)
    s.embed[i] = stride_of(t.axes[i - 1], in) / stride_of(t.axes[i], in);
  return s;
}

// The whole task with one or more calls, where memory lies as cuFFT takes it. A second dimension of
// the batch is a loop, which must be short.
constexpr int64_t kMostCalls = 4;

struct Batch {
  int64_t size = 1, in = 1, out = 1;                   // what cuFFT counts
  int64_t calls = 1, in_between = 0, out_between = 0;  // what we do
};

bool plan_batch(const Task& t, Batch* b) {
  Walk<2> w;
  for (int i = 0; i < t.batch_ndim; ++i)
    if (!w.add(t.batch[i].in_size, {t.batch[i].in, t.batch[i].out}).ok()) return false;
  if (w.nd > 2) return false;
  if (w.nd == 0) return true;
  // The longer one is cuFFT's.
  const int64_t inner = w.nd == 2 && w.sizes[0] > w.sizes[1] ? 0 : w.nd - 1;
  *b = {w.sizes[inner], w.strides[0][inner], w.strides[1][inner]};
  if (w.nd == 2) {
    const int64_t outer = 1 - inner;
    b->calls = w.sizes[outer];
    b->in_between = w.strides[0][outer];
    b->out_between = w.strides[1][outer];
  }
  return b->calls <= kMostCalls && b->in > 0 && b->out > 0;
}

Status run_direct(Device& d, CUstream stream, const Task& t, const Batch& b) {
  FftShape shape{};
  shape.rank = t.rank;
  shape.batch = b.size;
  for (int i = 0; i < t.rank; ++i) shape.sizes[i] = std::max(t.axes[i].in_size, t.axes[i].out_size);
  shape.in = side_of(t, true, t.in->dtype, b.in);
  shape.out = side_of(t, false, t.out->dtype, b.out);
  auto in_bytes = static_cast<int64_t>(itemsize(t.in->dtype));
  auto out_bytes = static_cast<int64_t>(itemsize(t.out->dtype));
  for (int64_t i = 0; i < b.calls; ++i)
    TS_TRY(run_cufft(d, stream, shape, static_cast<char*>(t.in->data) + i * b.in_between * in_bytes,
                     static_cast<char*>(t.out->data) + i * b.out_between * out_bytes, t.forward));
  return ok();
}

// What happens to numbers on the way between where a side lies and dense memory.
struct Change {
  double scale = 1;
  // The imaginary parts that a real result cannot have: of the first element of each line of
  // `half` and of the middle one (-1: there is none).
  bool clear_ends = false;
  int64_t half = 1, middle = -1;
};

// In front of both kernels that move numbers.
#define TS_FFT_NUMBERS                                                                    \
  "template <class X> struct RealOf { typedef X R; };\n"                                  \
  "template <class X> struct RealOf<Complex<X>> { typedef X R; };\n"                      \
  "typedef RealOf<T::S>::R R;\n"                                                          \
  "template <class X> TS_FN X times(X x, R by) {\n"                                       \
  "  if constexpr (is_complex_v<X>) return {x.re * by, x.im * by}; else return x * by;\n" \
  "}\n"                                                                                   \
  "template <class X> TS_FN X without_imag(X x) {\n"                                      \
  "  if constexpr (is_complex_v<X>) x.im = 0;\n"                                          \
  "  return x;\n"                                                                         \
  "}\n"

constexpr TextKernel kMove{"fft_move", TS_FFT_NUMBERS R"(
struct Params { T::S *from, *to; Walk<2> w; int64_t n, half, middle; double scale; };
extern "C" __global__ void __launch_bounds__(256) fft_move(const __grid_constant__ Params p) {
  const R by = (R)p.scale;
  for (int64_t i = thread(); i < p.n; i += threads()) {
    int64_t o[2];
    offsets(p.w, i, o);
    T::S v = times(p.from[o[0]], by);
    if constexpr (ENDS) {
      const int64_t k = i % p.half;
      if (k == 0 || k == p.middle) v = without_imag(v);
    }
    p.to[o[1]] = v;
  }
})"};

// x runs side by side in `from`, y in `to`; dense memory is `to` where ends are cleared.
constexpr TextKernel kTurn{"fft_turn", TS_FFT_NUMBERS R"(
struct Params { T::S *from, *to; Walk<2> w; int64_t tiles, nx, ny, from_y, to_x, middle; double scale; };
extern "C" __global__ void __launch_bounds__(256) fft_turn(const __grid_constant__ Params p) {
  __shared__ T::S tile[32][33];
  const R by = (R)p.scale;
  const int tx = threadIdx.x % 32, ty = threadIdx.x / 32;
  const int64_t across = (p.nx + 31) / 32, down = (p.ny + 31) / 32;
  for (int64_t t = blockIdx.x; t < p.tiles; t += gridDim.x) {
    const int64_t x0 = t % across * 32, y0 = t / across % down * 32;
    int64_t o[2];
    offsets(p.w, t / across / down, o);
    #pragma unroll
    for (int j = ty; j < 32; j += 8)
      if (x0 + tx < p.nx && y0 + j < p.ny)
        tile[j][tx] = p.from[o[0] + x0 + tx + (y0 + j) * p.from_y];
    __syncthreads();
    #pragma unroll
    for (int j = ty; j < 32; j += 8)
      if (y0 + tx < p.ny && x0 + j < p.nx) {
        T::S v = times(tile[tx][j], by);
        if constexpr (ENDS)
          if (y0 + tx == 0 || y0 + tx == p.middle) v = without_imag(v);
        p.to[o[1] + y0 + tx + (x0 + j) * p.to_x] = v;
      }
    __syncthreads();
  }
})"};

// Copies a side into dense memory [batch..., dimensions...], or back.
Status move(Device& d, CUstream stream, const Task& t, bool in, void* dense, const Change& change) {
  int64_t sizes[kMaxDims], strides[kMaxDims], of_dense[kMaxDims];
  int n = 0;
  auto add = [&](int64_t size, int64_t stride) {
    sizes[n] = size;
    strides[n++] = stride;
  };
  for (int i = 0; i < t.batch_ndim; ++i) add(t.batch[i].in_size, stride_of(t.batch[i], in));
  for (int i = 0; i < t.rank; ++i) add(size_of(t.axes[i], in), stride_of(t.axes[i], in));
  int64_t numel = 1;
  for (int i = n - 1; i >= 0; --i) {
    of_dense[i] = numel;
    numel *= sizes[i];
  }
  const KernelTensor& side = in ? *t.in : *t.out;
  void *from = in ? side.data : dense, *to = in ? dense : side.data;
  const int64_t *of_from = in ? strides : of_dense, *of_to = in ? of_dense : strides;
  // Where another dimension than the last one is side by side over there, tiles are turned.
  int turned = -1;
  for (int i = 0; i < n - 1; ++i)
    if (strides[i] == 1 && sizes[i] >= 16 && sizes[n - 1] >= 16) turned = i;
  if (strides[n - 1] == 1) turned = -1;
  if (turned >= 0) {
    const int x = in ? turned : n - 1, y = in ? n - 1 : turned;
    struct {
      void *from, *to;
      Walk<2> w;
      int64_t tiles, nx, ny, from_y, to_x, middle;
      double scale;
    } p{from, to, {}, 0, sizes[x], sizes[y], of_from[y], of_to[x], change.middle, change.scale};
    for (int i = 0; i < n; ++i)
      if (i != x && i != y) TS_TRY(p.w.add(sizes[i], {of_from[i], of_to[i]}));
    p.tiles = p.w.numel() * ((p.nx + 31) / 32) * ((p.ny + 31) / 32);
    return launch_text(d, stream, kTurn, {def("T", side.dtype), def("ENDS", change.clear_ends)},
                       {std::min<int64_t>(p.tiles, int64_t{d.multiprocessors} * 32), 256}, &p);
  }
  struct {
    void *from, *to;
    Walk<2> w;
    int64_t n, half, middle;
    double scale;
  } p{from, to, {}, numel, change.half, change.middle, change.scale};
  for (int i = 0; i < n; ++i) TS_TRY(p.w.add(sizes[i], {of_from[i], of_to[i]}));
  return launch_text(d, stream, kMove, {def("T", side.dtype), def("ENDS", change.clear_ends)},
                     {fill_blocks(d, numel), 256}, &p);
}

// The task as if that side lay in dense memory.
void make_dense(Task* t, bool in) {
  int64_t stride = 1;
  auto set = [&](Axis& a) {
    (in ? a.in : a.out) = stride;
    stride *= size_of(a, in);
  };
  for (int i = t->rank - 1; i >= 0; --i) set(t->axes[i]);
  for (int i = t->batch_ndim - 1; i >= 0; --i) set(t->batch[i]);
}

constexpr TextKernel kScale{"fft_scale", R"(
struct Params { T::S* x; int64_t n; double by; };
extern "C" __global__ void __launch_bounds__(256) fft_scale(const __grid_constant__ Params p) {
  const T::A by = (T::A)p.by;
  struct alignas(16) Four { T::S v[16 / sizeof(T::S)]; };
  enum { V = 16 / sizeof(T::S) };
  const int64_t vectors = ((uint64_t)p.x & 15) == 0 ? p.n / V : 0;
  for (int64_t i = thread(); i < vectors; i += threads()) {
    Four f = ((Four*)p.x)[i];
    #pragma unroll
    for (int k = 0; k < V; ++k) f.v[k] *= by;
    ((Four*)p.x)[i] = f;
  }
  for (int64_t i = vectors * V + thread(); i < p.n; i += threads()) p.x[i] *= by;
})"};

// A result is fresh, so dense.
Status scale_result(Device& d, CUstream stream, const KernelTensor& out, double by) {
  if (by == 1) return ok();
  const int64_t n = out.numel * (is_complex(out.dtype) ? 2 : 1);
  struct {
    void* x;
    int64_t n;
    double by;
  } p{out.data, n, by};
  return launch_text(d, stream, kScale, {def("T", real_dtype(out.dtype))},
                     {fill_blocks(d, n / 4), 256}, &p);
}

// With the result multiplied by `scale`: on the way of a copy where there is one.
Status run_task(Device& d, CUstream stream, const Task& t, double scale) {
  bool in_dense = t.spoils_input || !nests(t, true) || !is_aligned(t.in->data, t.in->dtype);
  bool out_dense = !nests(t, false) || !is_aligned(t.out->data, t.out->dtype);
  // Which sides are copied: as few as allow one batch.
  for (int choice = 0; choice < 4; ++choice) {
    const bool in = choice & 1, out = choice & 2;
    if ((in_dense && !in) || (out_dense && !out)) continue;
    Task tried = t;
    if (in) make_dense(&tried, true);
    if (out) make_dense(&tried, false);
    Batch b;
    if (!plan_batch(tried, &b)) continue;
    const bool odd = b.calls > 1 && !is_complex(t.in->dtype) && b.in_between % 2 != 0;
    if (odd || (b.calls > 1 && !is_complex(t.out->dtype) && b.out_between % 2 != 0)) continue;
    Scratch in_memory(d, stream), out_memory(d, stream);
    KernelTensor from = *t.in, to = *t.out;
    if (in) {
      int64_t n = t.batch_numel();
      for (int i = 0; i < t.rank; ++i) n *= t.axes[i].in_size;
      TS_TRY(in_memory.take(static_cast<size_t>(n) * itemsize(from.dtype)));
      from.data = reinterpret_cast<void*>(in_memory.address());
      Change change{out ? 1 : scale, t.spoils_input};
      if (t.spoils_input) {
        const int64_t n_out = t.axes[0].out_size;
        change.half = t.axes[0].in_size;
        change.middle = n_out % 2 == 0 ? n_out / 2 : -1;
      }
      TS_TRY(move(d, stream, t, true, from.data, change));
    }
    if (out) {
      TS_TRY(out_memory.take(static_cast<size_t>(to.numel) * itemsize(to.dtype)));
      to.data = reinterpret_cast<void*>(out_memory.address());
    }
    tried.in = &from;
    tried.out = &to;
    TS_TRY(run_direct(d, stream, tried, b));
    if (out) return move(d, stream, t, false, to.data, {scale});
    return in ? ok() : scale_result(d, stream, *t.out, scale);
  }
  return fail(Code::kUnsupported, "fft(): more than %d dimensions are not implemented for CUDA",
              kKernelDims);
}

// The dimensions `dims` transformed at once, all others a batch.
Task task_of(const KernelTensor& in, const KernelTensor& out, const int64_t* dims, int n,
             bool forward) {
  Task t{};
  t.in = &in;
  t.out = &out;
  t.forward = forward;
  for (int i = 0; i < out.ndim; ++i) {
    const Axis a{in.sizes[i], out.sizes[i], in.strides[i], out.strides[i]};
    if (std::find(dims, dims + n, i) == dims + n)
      t.batch[t.batch_ndim++] = a;
    else
      t.axes[t.rank++] = a;
  }
  return t;
}

Status run_c2c(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor& out = args.outputs[0];
  if (out.numel == 0) return ok();
  KernelTensor in = args.inputs[0];
  if (!is_complex(in.dtype)) {
    TS_TRY(convert_strided(d, stream, out.ndim, out.sizes, {in.data, in.dtype, in.strides},
                           {out.data, out.dtype, out.strides}));
    in = out;
  }
  // Lengths of one change nothing; of the others the last ones come first.
  int64_t dims[kMaxDims];
  int n = 0;
  for (int i = 1; i < args.num_ints; ++i)
    if (out.sizes[args.ints[i]] > 1) dims[n++] = args.ints[i];
  std::sort(dims, dims + n, std::greater<>());
  if (n == 0)
    TS_TRY(convert_strided(d, stream, out.ndim, out.sizes, {in.data, in.dtype, in.strides},
                           {out.data, out.dtype, out.strides}));
  for (int first = 0; first < n; first += kFftRank) {
    Task t = task_of(in, out, dims + first, std::min(kFftRank, n - first), args.ints[0] != 0);
    TS_TRY(run_task(d, stream, t, first + kFftRank >= n ? args.doubles[0] : 1));
    in = out;
  }
  return n == 0 ? scale_result(d, stream, out, args.doubles[0]) : ok();
}

Status run_r2c(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor& out = args.outputs[0];
  if (out.numel == 0) return ok();
  return run_task(d, stream, task_of(args.inputs[0], out, args.ints, 1, true), args.doubles[0]);
}

Status run_c2r(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor& out = args.outputs[0];
  if (out.numel == 0) return ok();
  Task t = task_of(args.inputs[0], out, args.ints, 1, false);
  // What lies beyond half of the result is not read.
  for (Axis* a = t.axes; a != t.axes + 1; ++a) a->in_size = a->out_size / 2 + 1;
  t.spoils_input = true;
  return run_task(d, stream, t, args.doubles[0]);
}

TS_CUDA_KERNEL("fft_c2c", run_c2c)
TS_CUDA_KERNEL("fft_r2c", run_r2c)
TS_CUDA_KERNEL("fft_c2r", run_c2r)

}  // namespace
}  // namespace tessera::cuda
