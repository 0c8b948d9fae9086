// The host's LAPACK, for the libraries that stand in for cuBLAS and cuSOLVER.
#pragma once
#include <dlfcn.h>

#include <algorithm>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <vector>

#include "library.h"

namespace emulator {

template <class T>
struct Number;
template <>
struct Number<float> {
  using Real = float;
  static constexpr char kLetter = 's';
};
template <>
struct Number<double> {
  using Real = double;
  static constexpr char kLetter = 'd';
};
template <>
struct Number<std::complex<float>> {
  using Real = float;
  static constexpr char kLetter = 'c';
};
template <>
struct Number<std::complex<double>> {
  using Real = double;
  static constexpr char kLetter = 'z';
};
template <class T>
using Real = typename Number<T>::Real;
template <class T>
inline constexpr bool is_complex_v = !std::is_same_v<T, Real<T>>;

inline void* lapack_routine(const std::string& name) {
  static void* lib = [] {
    for (const char* file : {"libopenblas.so.0", "liblapack.so.3", "libopenblas.so"})
      if (void* found = dlopen(file, RTLD_NOW | RTLD_LOCAL)) return found;
    std::fprintf(stderr, "emulator: no LAPACK (libopenblas.so.0, liblapack.so.3)\n");
    std::abort();
  }();
  void* f = dlsym(lib, name.c_str());
  if (!f) {
    std::fprintf(stderr, "emulator: LAPACK has no %s\n", name.c_str());
    std::abort();
  }
  return f;
}

// Calls the routine of T's letter: everything by address, strings with their lengths at the end.
template <class T, class... Args>
void lapack(const char* name, Args... args) {
  auto f = reinterpret_cast<void (*)(Args..., size_t, size_t, size_t, size_t)>(
      lapack_routine(Number<T>::kLetter + std::string(name) + "_"));
  f(args..., 1, 1, 1, 1);
}

// A workspace as large as the routine asks for: f(work, &lwork).
template <class T, class F>
void with_work(const F& f) {
  T answer{};
  int size = -1;
  f(&answer, &size);
  size = static_cast<int>(std::real(answer)) + 64;
  std::vector<T> work(static_cast<size_t>(size));
  f(work.data(), &size);
}

// Is a matrix by columns in device memory?
template <class T>
bool matrix_on_device(const T* a, int64_t rows, int64_t columns, int64_t ld) {
  if (rows < 0 || columns < 0 || ld < std::max<int64_t>(1, rows)) return false;
  if (rows == 0 || columns == 0) return true;
  return on_device(a, static_cast<size_t>((columns - 1) * ld + rows) * sizeof(T));
}

// A matrix of the device in memory of the host: fast routines read a little beyond the last
// element, where a page of the device's ends. Written back at the end unless it is const.
template <class T>
class OnHost {
 public:
  using Value = std::remove_const_t<T>;
  OnHost(T* a, int64_t rows, int64_t columns, int64_t ld)
      : from_(a),
        size_(rows && columns ? static_cast<size_t>((columns - 1) * ld + rows) : 0),
        copy_(size_ + 64) {
    std::copy_n(a, size_, copy_.data());
  }
  ~OnHost() {
    if constexpr (!std::is_const_v<T>) std::copy_n(copy_.data(), size_, from_);
  }
  OnHost(const OnHost&) = delete;
  OnHost& operator=(const OnHost&) = delete;
  Value* get() { return copy_.data(); }

 private:
  T* from_;
  size_t size_;
  std::vector<Value> copy_;
};

// Queues what answers false where it is given something wrong, which ends the context.
inline bool enqueue_checked(void* stream, std::function<bool()> work, const char* name) {
  std::function<int()> f = [w = std::move(work), name] {
    if (w()) return 0;
    std::fprintf(stderr, "emulator: %s was given memory that is not the device's\n", name);
    return static_cast<int>(CUDA_ERROR_ILLEGAL_ADDRESS);
  };
  return emulator_enqueue(stream, &f) == 0;
}

// L and U over a, without exchanges.
template <class T>
void getrf_without_exchanges(int m, int n, T* a, int lda, int* info) {
  *info = 0;
  for (int k = 0; k < std::min(m, n); ++k) {
    const T pivot = a[k * lda + k];
    if (pivot == T(0)) {
      if (*info == 0) *info = k + 1;
      continue;
    }
    for (int r = k + 1; r < m; ++r) a[k * lda + r] /= pivot;
    for (int c = k + 1; c < n; ++c)
      for (int r = k + 1; r < m; ++r) a[c * lda + r] -= a[k * lda + r] * a[c * lda + k];
  }
}

// cuComplex and std::complex are the same two numbers.
inline float* as_host(float* p) { return p; }
inline double* as_host(double* p) { return p; }
inline std::complex<float>* as_host(float2* p) { return reinterpret_cast<std::complex<float>*>(p); }
inline std::complex<double>* as_host(double2* p) {
  return reinterpret_cast<std::complex<double>*>(p);
}
inline const float* as_host(const float* p) { return p; }
inline const double* as_host(const double* p) { return p; }
inline const std::complex<float>* as_host(const float2* p) {
  return reinterpret_cast<const std::complex<float>*>(p);
}
inline const std::complex<double>* as_host(const double2* p) {
  return reinterpret_cast<const std::complex<double>*>(p);
}
template <class T>
auto as_host_list(T* const* p) {
  using H = std::remove_pointer_t<decltype(as_host(static_cast<T*>(nullptr)))>;
  return reinterpret_cast<H* const*>(p);
}

inline char letter(cublasOperation_t op) {
  return op == CUBLAS_OP_N ? 'N' : op == CUBLAS_OP_T ? 'T' : 'C';
}
inline char letter(cublasFillMode_t uplo) { return uplo == CUBLAS_FILL_MODE_UPPER ? 'U' : 'L'; }
inline char letter(cublasSideMode_t side) { return side == CUBLAS_SIDE_LEFT ? 'L' : 'R'; }

}  // namespace emulator
