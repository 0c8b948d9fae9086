#include "linalg.h"

#include <unordered_map>

#include "group.h"
#include "text.h"

namespace tessera::cuda {
namespace {

struct Handles {
  cusolverDnHandle_t solver = nullptr;
  cublasHandle_t blas = nullptr;
};
struct State {
  std::mutex mutex;
  // Each stream its own: a handle has a workspace, which two streams must not share.
  std::unordered_map<CUstream, Handles> handles;
};
// Leaked: the driver may be gone before destructors run.
State& state(const Device& d) {
  static State* all = new State[kMaxDevices];
  return all[d.ordinal];
}

const char* name_of(cusolverStatus_t r) {
  switch (r) {
    case CUSOLVER_STATUS_NOT_INITIALIZED:
      return "CUSOLVER_STATUS_NOT_INITIALIZED";
    case CUSOLVER_STATUS_ALLOC_FAILED:
      return "CUSOLVER_STATUS_ALLOC_FAILED";
    case CUSOLVER_STATUS_INVALID_VALUE:
      return "CUSOLVER_STATUS_INVALID_VALUE";
    case CUSOLVER_STATUS_ARCH_MISMATCH:
      return "CUSOLVER_STATUS_ARCH_MISMATCH";
    case CUSOLVER_STATUS_EXECUTION_FAILED:
      return "CUSOLVER_STATUS_EXECUTION_FAILED";
    case CUSOLVER_STATUS_INTERNAL_ERROR:
      return "CUSOLVER_STATUS_INTERNAL_ERROR";
    case CUSOLVER_STATUS_NOT_SUPPORTED:
      return "CUSOLVER_STATUS_NOT_SUPPORTED";
    default:
      return "an error";
  }
}

}  // namespace

Status failed(cusolverStatus_t r, const char* what) {
  return fail(r == CUSOLVER_STATUS_ALLOC_FAILED ? Code::kOutOfMemory : Code::kFailed,
              "cuSOLVER: %s (%d) in %s", name_of(r), static_cast<int>(r), what);
}
Status failed(const SolverApi& api, cublasStatus_t r, const char* what) {
  return fail(r == CUBLAS_STATUS_ALLOC_FAILED ? Code::kOutOfMemory : Code::kFailed,
              "cuBLAS: %s in %s", api.cublasGetStatusString(r), what);
}

Status Solver::open(Device& d, CUstream stream) {
  const char* why = nullptr;
  api_ = solver_api(&why);
  if (!api_)
    return fail(Code::kUnsupported,
                "linear algebra on CUDA needs cuSOLVER and cuBLAS: %s. They come with the CUDA "
                "toolkit and in pip's packages nvidia-cusolver and nvidia-cublas (CUDA 13; for "
                "CUDA 12 their names end in -cu12)",
                why);
  State& s = state(d);
  lock_ = std::unique_lock(s.mutex);
  Handles& h = s.handles[stream];
  if (!h.solver) {
    cusolverDnHandle_t solver = nullptr;
    cusolverStatus_t r = api_->cusolverDnCreate(&solver);
    if (r != CUSOLVER_STATUS_SUCCESS) return failed(r, "starting it");
    h.solver = solver;
    r = api_->cusolverDnSetStream(solver, reinterpret_cast<cudaStream_t>(stream));
    if (r != CUSOLVER_STATUS_SUCCESS) return failed(r, "setting a stream");
  }
  if (!h.blas) {
    cublasHandle_t blas = nullptr;
    cublasStatus_t r = api_->cublasCreate_v2(&blas);
    if (r != CUBLAS_STATUS_SUCCESS) return failed(*api_, r, "starting it");
    h.blas = blas;
    r = api_->cublasSetStream_v2(blas, reinterpret_cast<cudaStream_t>(stream));
    if (r != CUBLAS_STATUS_SUCCESS) return failed(*api_, r, "setting a stream");
  }
  solver_ = h.solver;
  blas_ = h.blas;
  return ok();
}

namespace {

void forget_handles(Device& d, CUstream stream) {
  State& s = state(d);
  std::lock_guard lock(s.mutex);
  auto it = s.handles.find(stream);
  if (it == s.handles.end()) return;
  const SolverApi& api = *solver_api(nullptr);
  if (it->second.solver) api.cusolverDnDestroy(it->second.solver);
  if (it->second.blas) api.cublasDestroy_v2(it->second.blas);
  s.handles.erase(it);
}
TS_CUDA_AT_STREAM_END(forget_handles)

constexpr TextKernel kPointers{"linalg_pointers", R"(
struct Params { char** to; char* data; int64_t bytes, n; };
extern "C" __global__ void __launch_bounds__(256) linalg_pointers(const __grid_constant__ Params p) {
  for (int64_t i = thread(); i < p.n; i += threads()) p.to[i] = p.data + i * p.bytes;
})"};

constexpr TextKernel kAdjoint{"linalg_adjoint", R"(
template <class X> TS_FN X conjugate(X x) { if constexpr (is_complex_v<X>) x.im = -x.im; return x; }
struct Params { T::S *to, *from; int64_t n, rows, columns, batch_stride, row_stride, column_stride; };
extern "C" __global__ void __launch_bounds__(256) linalg_adjoint(const __grid_constant__ Params p) {
  for (int64_t i = thread(); i < p.n; i += threads()) {
    const int64_t c = i % p.columns, r = i / p.columns % p.rows, z = i / p.columns / p.rows;
    p.to[i] = conjugate(p.from[z * p.batch_stride + r * p.row_stride + c * p.column_stride]);
  }
})"};

// A block goes over columns; i counts them through the batch.
constexpr TextKernel kTriangle{"linalg_triangle", R"(
template <class X> TS_FN X conjugate(X x) { if constexpr (is_complex_v<X>) x.im = -x.im; return x; }
struct Params { T::S* x; int64_t columns, n; bool upper; };
extern "C" __global__ void __launch_bounds__(256) linalg_triangle(const __grid_constant__ Params p) {
  for (int64_t i = blockIdx.x; i < p.columns; i += gridDim.x) {
    const int64_t c = i % p.n;
    T::S* a = p.x + i / p.n * p.n * p.n;
    const int64_t first = p.upper ? 0 : c + 1, last = p.upper ? c : p.n;
    for (int64_t r = first + threadIdx.x; r < last; r += blockDim.x) {
      a[c * p.n + r] = MIRROR ? conjugate(a[r * p.n + c]) : T::S(0);
    }
  }
})"};

constexpr TextKernel kIdentity{"linalg_identity", R"(
struct Params { T::S* x; int64_t n, rows, columns; };
extern "C" __global__ void __launch_bounds__(256) linalg_identity(const __grid_constant__ Params p) {
  for (int64_t i = thread(); i < p.n; i += threads())
    p.x[i] = T::S(i % p.rows == i / p.rows % p.columns ? 1 : 0);
})"};

// A block for each matrix.
constexpr TextKernel kZeros{"linalg_zeros", R"(
struct Params { const T::S* x; int* info; int64_t batch, n, stride, ld; };
extern "C" __global__ void __launch_bounds__(256) linalg_zeros(const __grid_constant__ Params p) {
  __shared__ int64_t found[256];
  for (int64_t b = blockIdx.x; b < p.batch; b += gridDim.x) {
    int64_t first = p.n;
    for (int64_t i = threadIdx.x; i < p.n && first == p.n; i += 256)
      if (T::ld(p.x[b * p.stride + i * (p.ld + 1)]) == T::A(0)) first = i;
    found[threadIdx.x] = first;
    __syncthreads();
    for (int w = 128; w > 0; w /= 2) {
      if (threadIdx.x < w && found[threadIdx.x + w] < found[threadIdx.x]) found[threadIdx.x] = found[threadIdx.x + w];
      __syncthreads();
    }
    if (threadIdx.x == 0 && found[0] < p.n) p.info[b] = (int)(found[0] + 1);
    __syncthreads();
  }
})"};

constexpr TextKernel kRows{"linalg_rows", R"(
struct Params { int* to; int64_t total, n; };
extern "C" __global__ void __launch_bounds__(256) linalg_rows(const __grid_constant__ Params p) {
  for (int64_t i = thread(); i < p.total; i += threads()) p.to[i] = (int)(i % p.n) + 1;
})"};

constexpr TextKernel kInfinite{"linalg_infinite", R"(
struct Params { const T::S* x; int* info; int64_t n, total; int code; };
extern "C" __global__ void __launch_bounds__(256) linalg_infinite(const __grid_constant__ Params p) {
  for (int64_t i = thread(); i < p.total; i += threads())
    if (!isfinite(T::ld(p.x[i]))) p.info[i / p.n] = p.code;
})"};

}  // namespace

Status write_pointers(Device& d, CUstream stream, const void* data, int64_t bytes, int64_t batch,
                      void* to) {
  struct {
    void* to;
    const void* data;
    int64_t bytes, n;
  } p{to, data, bytes, batch};
  return launch_text(d, stream, kPointers, {}, {fill_blocks(d, batch), 256}, &p);
}

Status count_rows(Device& d, CUstream stream, int* to, int64_t batch, int64_t n) {
  struct {
    int* to;
    int64_t total, n;
  } p{to, batch * n, n};
  return launch_text(d, stream, kRows, {}, {fill_blocks(d, p.total), 256}, &p);
}

Status copy_columns(Device& d, CUstream stream, const KernelTensor& from, void* to, int64_t ld) {
  const int64_t sizes[] = {from.sizes[0], from.sizes[2], from.sizes[1]};
  const int64_t strides[] = {from.strides[0], from.strides[2], from.strides[1]};
  const int64_t there[] = {ld * from.sizes[2], ld, 1};
  return convert_strided(d, stream, 3, sizes, {from.data, from.dtype, strides},
                         {to, from.dtype, there});
}

Status copy_adjoint(Device& d, CUstream stream, const KernelTensor& from, void* to) {
  struct {
    void *to, *from;
    int64_t n, rows, columns, batch_stride, row_stride, column_stride;
  } p{to,
      from.data,
      from.sizes[0] * from.sizes[1] * from.sizes[2],
      from.sizes[1],
      from.sizes[2],
      from.strides[0],
      from.strides[1],
      from.strides[2]};
  return launch_text(d, stream, kAdjoint, {def("T", from.dtype)}, {fill_blocks(d, p.n), 256}, &p);
}

Status fill_triangle(Device& d, CUstream stream, DType dtype, void* data, int64_t batch, int64_t n,
                     bool upper_part, Fill what) {
  struct {
    void* x;
    int64_t columns, n;
    bool upper;
  } p{data, batch * n, n, upper_part};
  return launch_text(
      d, stream, kTriangle,
      {def("T", dtype), def("COMPLEX", is_complex(dtype)), def("MIRROR", what == Fill::kMirror)},
      {std::min<int64_t>(p.columns, int64_t{d.multiprocessors} * 16), n <= 32    ? 32
                                                                      : n <= 128 ? 64
                                                                                 : 256},
      &p);
}

Status write_identity(Device& d, CUstream stream, DType dtype, void* data, int64_t batch,
                      int64_t rows, int64_t columns) {
  struct {
    void* x;
    int64_t n, rows, columns;
  } p{data, batch * rows * columns, rows, columns};
  return launch_text(d, stream, kIdentity, {def("T", dtype)}, {fill_blocks(d, p.n), 256}, &p);
}

Status find_zeros(Device& d, CUstream stream, DType dtype, const void* data, int64_t stride, int ld,
                  int64_t batch, int64_t n, int* info) {
  struct {
    const void* x;
    int* info;
    int64_t batch, n, stride, ld;
  } p{data, info, batch, n, stride, ld};
  return launch_text(d, stream, kZeros, {def("T", dtype)},
                     {std::min<int64_t>(batch, int64_t{d.multiprocessors} * 8), 256}, &p);
}

Status find_infinite(Device& d, CUstream stream, DType dtype, const void* data, int64_t batch,
                     int64_t n, int* info, int code) {
  struct {
    const void* x;
    int* info;
    int64_t n, total;
    int code;
  } p{data, info, n, batch * n, code};
  return launch_text(d, stream, kInfinite, {def("T", dtype)}, {fill_blocks(d, p.total), 256}, &p);
}

template <class T>
Status solve_triangles(const Linalg<T>& l, Triangle how, int m, int n, int64_t batch, Columns<T> a,
                       Columns<T> b) {
  const cublasSideMode_t side = how.left ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
  const cublasFillMode_t uplo = how.upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
  const cublasDiagType_t diag = how.unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
  T one{};
  reinterpret_cast<typename Linalg<T>::Real&>(one) = 1;
  // Large matrices fill the device one by one.
  const int order = how.left ? m : n;
  if (batch == 1 || (order > 512 && batch < 8)) {
    for (int64_t i = 0; i < batch; ++i)
      TS_TRY(l.check(
          l.t.trsm(l.blas, side, uplo, how.op, diag, m, n, &one, a.at(i), a.ld, b.at(i), b.ld)));
    return ok();
  }
  Pointers<T> of_a(l), of_b(l);
  TS_TRY(of_a.fill(l, a.data, a.stride, batch));
  TS_TRY(of_b.fill(l, b.data, b.stride, batch));
  return l.check(l.t.trsm_batched(l.blas, side, uplo, how.op, diag, m, n, &one, of_a.get(), a.ld,
                                  of_b.get(), b.ld, to_int(batch)));
}
template Status solve_triangles(const Linalg<float>&, Triangle, int, int, int64_t, Columns<float>,
                                Columns<float>);
template Status solve_triangles(const Linalg<double>&, Triangle, int, int, int64_t, Columns<double>,
                                Columns<double>);
template Status solve_triangles(const Linalg<cuComplex>&, Triangle, int, int, int64_t,
                                Columns<cuComplex>, Columns<cuComplex>);
template Status solve_triangles(const Linalg<cuDoubleComplex>&, Triangle, int, int, int64_t,
                                Columns<cuDoubleComplex>, Columns<cuDoubleComplex>);

}  // namespace tessera::cuda
