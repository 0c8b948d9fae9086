// What the kernels over cuSOLVER and cuBLAS have in common. Tensors have three dimensions: batch,
// rows, columns; outputs are fresh, with each matrix by columns.
#pragma once
#include <algorithm>
#include <climits>
#include <mutex>

#include "cusolver_api.h"
#include "kernels.h"

namespace tessera::cuda {

// Both libraries on a stream, for as long as it lives: their handles are used by one thread.
class Solver {
 public:
  Status open(Device& d, CUstream stream);
  const SolverApi& api() const { return *api_; }
  cusolverDnHandle_t solver() const { return solver_; }
  cublasHandle_t blas() const { return blas_; }

 private:
  const SolverApi* api_ = nullptr;
  cusolverDnHandle_t solver_ = nullptr;
  cublasHandle_t blas_ = nullptr;
  std::unique_lock<std::mutex> lock_;
};

Status failed(cusolverStatus_t r, const char* what);
Status failed(const SolverApi& api, cublasStatus_t r, const char* what);

// One call of a kernel.
template <class T>
struct Linalg {
  using Real = typename SolverTable<T>::Real;
  static constexpr bool kComplex = SolverTable<T>::kComplex;
  Device& d;
  CUstream stream;
  const KernelArgs& args;
  const SolverApi& api;
  const SolverTable<T>& t;
  cusolverDnHandle_t solver;
  cublasHandle_t blas;
  const char* name;

  Status check(cusolverStatus_t r) const {
    return r == CUSOLVER_STATUS_SUCCESS ? ok() : failed(r, name);
  }
  Status check(cublasStatus_t r) const {
    return r == CUBLAS_STATUS_SUCCESS ? ok() : failed(api, r, name);
  }
  DType dtype() const { return args.inputs[0].dtype; }
};

// A batch of matrices as the libraries take them: matrix i at data + i * stride.
template <class T>
struct Columns {
  T* data;
  int64_t stride;
  int ld;
  T* at(int64_t i) const { return data + i * stride; }
};

// Device memory of so many T.
template <class T>
class Room : public Scratch {
 public:
  template <class U>
  explicit Room(const Linalg<U>& l) : Scratch(l.d, l.stream) {}
  Status take(int64_t count) {
    return Scratch::take(static_cast<size_t>(std::max<int64_t>(1, count)) * sizeof(T));
  }
  T* get() const { return reinterpret_cast<T*>(address()); }
};

inline int to_int(int64_t v) { return static_cast<int>(v); }
inline int ld_of(int64_t rows) { return static_cast<int>(std::max<int64_t>(1, rows)); }

// The batch into memory by columns that are `ld` apart, matrix after matrix.
Status copy_columns(Device& d, CUstream stream, const KernelTensor& from, void* to, int64_t ld);
// The adjoint of each matrix: [batch, columns, rows] by columns.
Status copy_adjoint(Device& d, CUstream stream, const KernelTensor& from, void* to);
// Zeroes what lies on one side of the diagonals of n x n matrices by columns, or writes there the
// conjugates of the other side.
enum class Fill : uint8_t { kZero, kMirror };
Status fill_triangle(Device& d, CUstream stream, DType dtype, void* data, int64_t batch, int64_t n,
                     bool upper_part, Fill what);
// Ones on the diagonals of matrices by columns, zeros elsewhere.
Status write_identity(Device& d, CUstream stream, DType dtype, void* data, int64_t batch,
                      int64_t rows, int64_t columns);
// info[i] becomes the place of the first zero on the diagonal, counted from 1, or stays.
Status find_zeros(Device& d, CUstream stream, DType dtype, const void* data, int64_t stride, int ld,
                  int64_t batch, int64_t n, int* info);
// info[i] becomes `code` where one of the n numbers of matrix i is not finite.
Status find_infinite(Device& d, CUstream stream, DType dtype, const void* data, int64_t batch,
                     int64_t n, int* info, int code);
// 1, 2, ... n for each matrix.
Status count_rows(Device& d, CUstream stream, int* to, int64_t batch, int64_t n);
// The addresses of a batch's matrices, in device memory.
Status write_pointers(Device& d, CUstream stream, const void* data, int64_t bytes, int64_t batch,
                      void* to);

template <class T>
class Pointers : public Room<T*> {
 public:
  using Room<T*>::Room;
  template <class U>
  Status fill(const Linalg<U>& l, T* data, int64_t stride, int64_t batch) {
    TS_TRY(this->take(batch));
    return write_pointers(l.d, l.stream, data, stride * static_cast<int64_t>(sizeof(T)), batch,
                          this->get());
  }
};

// A batch by columns: where it lies if its columns are dense, else copied into `room`.
inline bool has_columns(const KernelTensor& t) {
  return (t.strides[1] == 1 || t.sizes[1] == 1) &&
         (t.strides[2] >= std::max<int64_t>(1, t.sizes[1]) || t.sizes[2] == 1) &&
         t.strides[2] <= INT_MAX && t.strides[0] >= 0;
}
template <class T>
Status as_columns(const Linalg<T>& l, const KernelTensor& t, Room<T>* room, Columns<T>* out) {
  if (has_columns(t)) {
    *out = {static_cast<T*>(t.data), t.strides[0],
            t.sizes[2] == 1 ? ld_of(t.sizes[1]) : to_int(t.strides[2])};
    return ok();
  }
  TS_TRY(room->take(t.numel));
  *out = {room->get(), t.sizes[1] * t.sizes[2], ld_of(t.sizes[1])};
  return copy_columns(l.d, l.stream, t, room->get(), t.sizes[1]);
}
// A copy in `to`, an output or scratch.
template <class T>
Status copied(const Linalg<T>& l, const KernelTensor& t, void* to, Columns<T>* out) {
  *out = {static_cast<T*>(to), t.sizes[1] * t.sizes[2], ld_of(t.sizes[1])};
  return copy_columns(l.d, l.stream, t, to, t.sizes[1]);
}

// Solves with triangles, X over B: op(A) X = B, or X op(A) = B.
struct Triangle {
  bool left, upper, unit;
  cublasOperation_t op;
};
template <class T>
Status solve_triangles(const Linalg<T>& l, Triangle how, int m, int n, int64_t batch, Columns<T> a,
                       Columns<T> b);

// Reflectors and R over matrices of m x n; tau is dense.
template <class T>
Status factor_qr(const Linalg<T>& l, int m, int n, int64_t batch, Columns<T> a, T* tau);

// Q of a batch as reflectors of m elements by columns, and lines of matrices to apply it to:
// columns, or rows where Q stands on the right.
struct Reflectors {
  const void *v, *tau;
  int64_t batch, m, k, stride, ld, tau_stride, tau_step;
};
struct Lines {
  void* data;
  int64_t count, stride, line_stride, step;
  bool on_the_right = false;
  bool identity = false;  // they begin as the columns of one
};
// x becomes Q x, x Q, or the same with the adjoint of Q. All matrices at once, each line by 32
// threads: for many small ones.
Status reflect(Device& d, CUstream stream, DType dtype, const Reflectors& q, const Lines& x,
               bool adjoint);
inline bool are_small(int64_t batch, int64_t m) { return batch > 1 && m <= 512; }

// LDL factors of complex Hermitian matrices, over them in their lower triangles, and solutions over
// right sides: both by columns.
Status factor_hermitian(Device& d, CUstream stream, DType dtype, void* a, int64_t batch, int64_t n,
                        int* pivots, int* info);
Status solve_ldl(Device& d, CUstream stream, DType dtype, bool hermitian, const void* a,
                 int64_t stride, int64_t ld, const int* pivots, int64_t pivot_stride, void* b,
                 int64_t batch, int64_t n, int64_t k);

// Calls f(Linalg<T>) for the dtype of a kernel's first input.
template <class F>
Status with_solver(Device& d, CUstream stream, const KernelArgs& args, const char* name,
                   const F& f) {
  for (int i = 0; i < args.num_inputs; ++i)
    for (int k = 0; k < args.inputs[i].ndim; ++k)
      if (args.inputs[i].sizes[k] > INT_MAX)
        return fail(Code::kUnsupported, "%s: more than 2^31 rows, columns or matrices", name);
  Solver s;
  TS_TRY(s.open(d, stream));
  auto run = [&]<class T>(const SolverTable<T>& t) {
    return f(Linalg<T>{d, stream, args, s.api(), t, s.solver(), s.blas(), name});
  };
  switch (args.inputs[0].dtype) {
    case DType::kFloat32:
      return run(s.api().f32);
    case DType::kFloat64:
      return run(s.api().f64);
    case DType::kComplex64:
      return run(s.api().c64);
    case DType::kComplex128:
      return run(s.api().c128);
    default:
      return fail(Code::kUnsupported, "%s: not implemented for %s", name,
                  dtype_name(args.inputs[0].dtype));
  }
}

// Defines kernel `fn` and registers it; fn_as(Linalg<T>) does the work.
#define TS_CUDA_LINALG(name, fn)                                                         \
  Status fn(Device& d, CUstream stream, const KernelArgs& args) {                        \
    return with_solver(d, stream, args, name, [](const auto& l) { return fn##_as(l); }); \
  }                                                                                      \
  TS_CUDA_KERNEL(name, fn)

}  // namespace tessera::cuda
