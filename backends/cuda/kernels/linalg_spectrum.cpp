// Eigenvalues and singular values.
#include <vector>

#include "../data_type.h"
#include "../linalg.h"
#include "../text.h"

namespace tessera::cuda {
namespace {

// outputs: values, vectors, info; inputs: matrix; ints: upper, with vectors
template <class T>
Status eigh_as(const Linalg<T>& l) {
  using Real = typename Linalg<T>::Real;
  const KernelTensor& in = l.args.inputs[0];
  const int64_t batch = in.sizes[0];
  const int n = to_int(in.sizes[1]);
  const bool vectors = l.args.ints[1] != 0;
  const cublasFillMode_t uplo = l.args.ints[0] ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
  const cusolverEigMode_t job = vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
  Real* values = static_cast<Real*>(l.args.outputs[0].data);
  int* info = static_cast<int*>(l.args.outputs[2].data);
  Room<T> own(l), work(l);
  if (!vectors) TS_TRY(own.take(in.numel));
  Columns<T> a;
  TS_TRY(copied(l, in, vectors ? l.args.outputs[1].data : own.get(), &a));
  int size = 0;
  if (batch > 1 && n <= 32) {
    syevjInfo_t how = nullptr;
    TS_TRY(l.check(l.api.cusolverDnCreateSyevjInfo(&how)));
    Status s = l.check(l.t.syevj_batched_size(l.solver, job, uplo, n, a.data, a.ld, values, &size,
                                              how, to_int(batch)));
    if (s.ok()) s = work.take(size);
    if (s.ok())
      s = l.check(l.t.syevj_batched(l.solver, job, uplo, n, a.data, a.ld, values, work.get(), size,
                                    info, how, to_int(batch)));
    l.api.cusolverDnDestroySyevjInfo(how);
    return s;
  }
  TS_TRY(l.check(l.t.syevd_size(l.solver, job, uplo, n, a.data, a.ld, values, &size)));
  TS_TRY(work.take(size));
  for (int64_t i = 0; i < batch; ++i)
    TS_TRY(l.check(l.t.syevd(l.solver, job, uplo, n, a.at(i), a.ld, values + i * n, work.get(),
                             size, info + i)));
  return ok();
}

// Columns of a real routine's vectors: a pair of conjugates is kept as its real and imaginary part,
// the value with the positive imaginary part first.
constexpr TextKernel kUnpack{"linalg_unpack_vectors", R"(
struct Params { C::S *out, *values; const T::S* packed; int64_t total, n; };
extern "C" __global__ void __launch_bounds__(256) linalg_unpack_vectors(const __grid_constant__ Params p) {
  for (int64_t i = thread(); i < p.total; i += threads()) {
    const int64_t c = i / p.n;
    const T::S side = p.values[c].im;
    const int64_t first = side < 0 ? i - p.n : i;
    const T::S im = side == 0 ? T::S(0) : p.packed[first + p.n];
    p.out[i] = C::S(p.packed[first], side < 0 ? -im : im);
  }
})"};

// outputs: values, vectors, both complex, info; ints: with vectors
template <class T>
Status eig_as(const Linalg<T>& l) {
  const KernelTensor& in = l.args.inputs[0];
  const int64_t batch = in.sizes[0], n = in.sizes[1];
  const bool vectors = l.args.ints[0] != 0;
  if (!l.api.cusolverDnXgeev || !l.api.cusolverDnXgeev_bufferSize)
    return fail(Code::kUnsupported,
                "linalg.eig: eigenvalues of general matrices on CUDA need cuSOLVER of CUDA 12.6 or "
                "later");
  const cusolverEigMode_t none = CUSOLVER_EIG_MODE_NOVECTOR;
  const cusolverEigMode_t job = vectors ? CUSOLVER_EIG_MODE_VECTOR : none;
  const DType of_values = l.args.outputs[0].dtype;
  const cudaDataType type = data_type(l.dtype()), complex = data_type(of_values);
  char* values = static_cast<char*>(l.args.outputs[0].data);
  int* info = static_cast<int*>(l.args.outputs[2].data);
  Room<T> own(l), packed(l);
  TS_TRY(own.take(in.numel));
  Columns<T> a;
  TS_TRY(copied(l, in, own.get(), &a));
  T* v = nullptr;
  if (vectors && Linalg<T>::kComplex) v = static_cast<T*>(l.args.outputs[1].data);
  if (vectors && !Linalg<T>::kComplex) {
    TS_TRY(packed.take(in.numel));
    v = packed.get();
  }
  cusolverDnParams_t params = nullptr;
  TS_TRY(l.check(l.api.cusolverDnCreateParams(&params)));
  auto run = [&]() -> Status {
    size_t bytes = 0, host_bytes = 0;
    TS_TRY(l.check(l.api.cusolverDnXgeev_bufferSize(l.solver, params, none, job, n, type, a.data,
                                                    a.ld, complex, values, type, nullptr, a.ld,
                                                    type, v, a.ld, type, &bytes, &host_bytes)));
    Room<char> work(l);
    TS_TRY(work.take(static_cast<int64_t>(bytes)));
    std::vector<char> on_host(host_bytes);
    for (int64_t i = 0; i < batch; ++i)
      TS_TRY(l.check(
          l.api.cusolverDnXgeev(l.solver, params, none, job, n, type, a.at(i), a.ld, complex,
                                values + i * n * static_cast<int64_t>(itemsize(of_values)), type,
                                nullptr, a.ld, type, v ? v + i * n * n : nullptr, a.ld, type,
                                work.get(), bytes, on_host.data(), host_bytes, info + i)));
    return ok();
  };
  Status s = run();
  l.api.cusolverDnDestroyParams(params);
  if (!s.ok() || !vectors || Linalg<T>::kComplex) return s;
  struct {
    void *out, *values;
    const void* packed;
    int64_t total, n;
  } p{l.args.outputs[1].data, values, v, batch * n * n, n};
  return launch_text(l.d, l.stream, kUnpack, {def("T", l.dtype()), def("C", of_values)},
                     {fill_blocks(l.d, p.total), 256}, &p);
}

// outputs: U, singular values, Vh, info; ints: with vectors, all of them. By rotations: the routine
// gives V, by columns.
template <class T>
Status svd_as(const Linalg<T>& l) {
  using Real = typename Linalg<T>::Real;
  const KernelTensor& in = l.args.inputs[0];
  const int64_t batch = in.sizes[0];
  const int m = to_int(in.sizes[1]), n = to_int(in.sizes[2]), least = std::min(m, n);
  const bool vectors = l.args.ints[0] != 0;
  // Many small matrices at once, always with all vectors: those that were not asked for are left.
  const bool batched = batch > 1 && m <= 32 && n <= 32;
  const bool asked_full = !vectors || l.args.ints[1] != 0 || m == n, full = batched || asked_full;
  const cusolverEigMode_t job = vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
  Real* values = static_cast<Real*>(l.args.outputs[1].data);
  int* info = static_cast<int*>(l.args.outputs[3].data);
  // Without vectors the routine has the memory for them all the same, for one matrix.
  const int of_u = full ? m : least, of_v = full ? n : least;
  const int64_t kept = vectors || batched ? batch : 1;
  Room<T> own(l), own_u(l), own_v(l), work(l);
  TS_TRY(own.take(in.numel));
  Columns<T> a;
  TS_TRY(copied(l, in, own.get(), &a));
  const bool direct = vectors && full == asked_full;
  if (!direct) TS_TRY(own_u.take(kept * m * of_u));
  TS_TRY(own_v.take(kept * n * of_v));
  Columns<T> u{direct ? static_cast<T*>(l.args.outputs[0].data) : own_u.get(),
               kept > 1 ? int64_t{m} * of_u : 0, ld_of(m)};
  Columns<T> v{own_v.get(), kept > 1 ? int64_t{n} * of_v : 0, ld_of(n)};
  gesvdjInfo_t how = nullptr;
  TS_TRY(l.check(l.api.cusolverDnCreateGesvdjInfo(&how)));
  auto run = [&]() -> Status {
    int size = 0;
    if (batched) {
      TS_TRY(l.check(l.t.gesvdj_batched_size(l.solver, job, m, n, a.data, a.ld, values, u.data,
                                             u.ld, v.data, v.ld, &size, how, to_int(batch))));
      TS_TRY(work.take(size));
      return l.check(l.t.gesvdj_batched(l.solver, job, m, n, a.data, a.ld, values, u.data, u.ld,
                                        v.data, v.ld, work.get(), size, info, how, to_int(batch)));
    }
    const int economy = full ? 0 : 1;
    TS_TRY(l.check(l.t.gesvdj_size(l.solver, job, economy, m, n, a.data, a.ld, values, u.data, u.ld,
                                   v.data, v.ld, &size, how)));
    TS_TRY(work.take(size));
    for (int64_t i = 0; i < batch; ++i)
      TS_TRY(l.check(l.t.gesvdj(l.solver, job, economy, m, n, a.at(i), a.ld, values + i * least,
                                u.at(i), u.ld, v.at(i), v.ld, work.get(), size, info + i, how)));
    return ok();
  };
  Status s = run();
  l.api.cusolverDnDestroyGesvdjInfo(how);
  TS_TRY(s);
  // Rotations of numbers that are not finite end somewhere.
  TS_TRY(find_infinite(l.d, l.stream, l.args.outputs[1].dtype, values, batch, least, info, -4));
  if (!vectors) return ok();
  // U's first columns where there are more, and the adjoint of V's.
  const int64_t u_sizes[] = {batch, m, asked_full ? m : least}, u_strides[] = {u.stride, 1, m};
  if (!direct)
    TS_TRY(copy_columns(l.d, l.stream, {u.data, l.dtype(), 3, u_sizes, u_strides, 0},
                        l.args.outputs[0].data, m));
  const int64_t v_sizes[] = {batch, n, asked_full ? n : least}, v_strides[] = {v.stride, 1, n};
  return copy_adjoint(l.d, l.stream, {v.data, l.dtype(), 3, v_sizes, v_strides, 0},
                      l.args.outputs[2].data);
}

TS_CUDA_LINALG("eigh", eigh)
TS_CUDA_LINALG("eig", eig)
TS_CUDA_LINALG("svd", svd)

}  // namespace
}  // namespace tessera::cuda
