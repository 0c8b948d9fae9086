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
  int64_t size = 1, in = 0, out = 0;                   // what cuFFT counts
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

// Copies between where a side lies and dense memory [batch..., dimensions...].
Status move(Device& d, CUstream stream, const Task& t, bool in, void* dense) {
  int64_t sizes[kMaxDims], strides[kMaxDims], of_dense[kMaxDims];
  int n = 0;
  for (int i = 0; i < t.batch_ndim; ++i, ++n) {
    sizes[n] = t.batch[i].in_size;
    strides[n] = stride_of(t.batch[i], in);
  }
  for (int i = 0; i < t.rank; ++i, ++n) {
    sizes[n] = size_of(t.axes[i], in);
    strides[n] = stride_of(t.axes[i], in);
  }
  int64_t numel = 1;
  for (int i = n - 1; i >= 0; --i) {
    of_dense[i] = numel;
    numel *= sizes[i];
  }
  const KernelTensor& side = in ? *t.in : *t.out;
  Operand there{side.data, side.dtype, strides}, here{dense, side.dtype, of_dense};
  return in ? convert_strided(d, stream, n, sizes, there, here)
            : convert_strided(d, stream, n, sizes, here, there);
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

constexpr TextKernel kRealEnds{"fft_real_ends", R"(
struct Params { T::S* x; int64_t lines, half, middle; };
extern "C" __global__ void __launch_bounds__(256) fft_real_ends(const __grid_constant__ Params p) {
  for (int64_t i = thread(); i < p.lines; i += threads()) {
    T::S* line = p.x + i * p.half;
    line[0].im = 0;
    if (p.middle >= 0) line[p.middle].im = 0;
  }
})"};

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

// The imaginary parts that a real result cannot have: of the first element of each line and, where
// its length is even, of the middle one.
Status clear_ends(Device& d, CUstream stream, const Task& t, void* dense) {
  const int64_t n = t.axes[0].out_size;
  struct {
    void* x;
    int64_t lines, half, middle;
  } p{dense, t.batch_numel(), t.axes[0].in_size, n % 2 == 0 ? n / 2 : -1};
  return launch_text(d, stream, kRealEnds, {def("T", t.in->dtype)}, {fill_blocks(d, p.lines), 256},
                     &p);
}

Status run_task(Device& d, CUstream stream, Task t) {
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
      TS_TRY(move(d, stream, t, true, from.data));
      if (t.spoils_input) TS_TRY(clear_ends(d, stream, t, from.data));
    }
    if (out) {
      TS_TRY(out_memory.take(static_cast<size_t>(to.numel) * itemsize(to.dtype)));
      to.data = reinterpret_cast<void*>(out_memory.address());
    }
    tried.in = &from;
    tried.out = &to;
    TS_TRY(run_direct(d, stream, tried, b));
    return out ? move(d, stream, t, false, to.data) : ok();
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
    TS_TRY(run_task(d, stream, t));
    in = out;
  }
  return scale_result(d, stream, out, args.doubles[0]);
}

Status run_r2c(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor& out = args.outputs[0];
  if (out.numel == 0) return ok();
  TS_TRY(run_task(d, stream, task_of(args.inputs[0], out, args.ints, 1, true)));
  return scale_result(d, stream, out, args.doubles[0]);
}

Status run_c2r(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor& out = args.outputs[0];
  if (out.numel == 0) return ok();
  Task t = task_of(args.inputs[0], out, args.ints, 1, false);
  // What lies beyond half of the result is not read.
  for (Axis* a = t.axes; a != t.axes + 1; ++a) a->in_size = a->out_size / 2 + 1;
  t.spoils_input = true;
  TS_TRY(run_task(d, stream, t));
  return scale_result(d, stream, out, args.doubles[0]);
}

TS_CUDA_KERNEL("fft_c2c", run_c2c)
TS_CUDA_KERNEL("fft_r2c", run_r2c)
TS_CUDA_KERNEL("fft_c2r", run_c2r)

}  // namespace
}  // namespace tessera::cuda
