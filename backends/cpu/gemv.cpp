#include "gemv.h"

#include <algorithm>

#include "convert.h"
#include "moments.h"
#include "scratch.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kSerialElements = 32 * 1024;
// Results that are accumulated side by side.
constexpr int64_t kColumns = 2048;
constexpr int64_t kBlock = 64;

template <class T, int kBytes>
TS_INLINE T dot(const T* a, const T* b, int64_t n) {
  using L = typename detail::BlockLanes<T, kBytes>::L;
  constexpr int64_t kStep = loops::kReduceLanes;
  detail::BlockLanes<T, kBytes> sum;
  sum.clear();
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep)
#pragma GCC unroll 64
    for (int v = 0; v < sum.kVectors; ++v)
      sum.lanes[v] += L::load(a + i + v * L::kCount) * L::load(b + i + v * L::kCount);
  if (i < n) {
    alignas(64) T rest[kStep];
    for (int64_t j = 0; j < kStep; ++j) rest[j] = i + j < n ? a[i + j] * b[i + j] : T(0);
    detail::add_elements(sum, rest);
  }
  return sum.fold();
}

// y += rows of n, `step` apart, each times its number, one after the other.
template <class T>
TS_INLINE void add_rows(T* __restrict y, const T* m, int64_t step, const T* x, int64_t count,
                        int64_t n) {
  int64_t p = 0;
  for (; p + 4 <= count; p += 4, m += 4 * step) {
    const T *b = m + step, *c = m + 2 * step, *d = m + 3 * step;
    const T x0 = x[p], x1 = x[p + 1], x2 = x[p + 2], x3 = x[p + 3];
    for (int64_t j = 0; j < n; ++j)
      y[j] = (((y[j] + m[j] * x0) + b[j] * x1) + c[j] * x2) + d[j] * x3;
  }
  for (; p < count; ++p, m += step)
    for (int64_t j = 0; j < n; ++j) y[j] = y[j] + m[j] * x[p];
}

#define TS_GEMV_ISA(isa, bytes, target)                                                 \
  template <class T>                                                                    \
  target T dot_##isa(const T* a, const T* b, int64_t n) {                               \
    return dot<T, bytes>(a, b, n);                                                      \
  }                                                                                     \
  template <class T>                                                                    \
  target void add_rows_##isa(T* y, const T* m, int64_t step, const T* x, int64_t count, \
                             int64_t n) {                                               \
    add_rows<T>(y, m, step, x, count, n);                                               \
  }
TS_GEMV_ISA(baseline, 16, )
TS_GEMV_ISA(avx2, 32, TS_TARGET_AVX2)
TS_GEMV_ISA(avx512, 64, TS_TARGET_AVX512)
#undef TS_GEMV_ISA

template <class T>
struct Gemv {
  T (*dot)(const T*, const T*, int64_t);
  void (*add_rows)(T*, const T*, int64_t, const T*, int64_t, int64_t);
  int64_t rows, k;
  const GemmOperand& matrix;
  const T* x;  // dense
  T* y;
  ConvertFn widen;
  int64_t item;
  OutOfScratch& failure;

  const char* at(int64_t i, int64_t p) const {
    return static_cast<const char*>(matrix.data) + (i * matrix.row + p * matrix.col) * item;
  }
  int64_t grain(int64_t per_result) const {
    return std::max<int64_t>(1, kSerialElements / std::max<int64_t>(per_result, 1));
  }

  // Rows are dense.
  void by_rows() const {
    parallel_for(0, rows, grain(k), [&](int64_t begin, int64_t end) {
      Scratch scratch(widen ? static_cast<size_t>(k) * sizeof(T) : 0, failure);
      T* wide = static_cast<T*>(scratch.get());
      if (widen && !wide) return;
      for (int64_t i = begin; i < end; ++i) {
        const void* row = at(i, 0);
        if (widen) widen(wide, row, k);
        y[i] = dot(widen ? wide : static_cast<const T*>(row), x, k);
      }
    });
  }
  // Columns are dense.
  void by_columns() const {
    const int64_t width = std::clamp<int64_t>(rows / (2 * num_threads()) / 64 * 64, 64, kColumns);
    const int64_t units = (rows + width - 1) / width;
    parallel_for(0, units, grain(width * k), [&](int64_t begin, int64_t end) {
      alignas(64) T part[kColumns];
      Scratch scratch(widen ? static_cast<size_t>(4 * width) * sizeof(T) : 0, failure);
      T* wide = static_cast<T*>(scratch.get());
      if (widen && !wide) return;
      for (int64_t u = begin; u < end; ++u) {
        const int64_t i = u * width, n = std::min(width, rows - i);
        std::fill_n(y + i, n, T(0));
        for (int64_t p = 0; p < k; p += kBlock) {
          std::fill_n(part, n, T(0));
          const int64_t count = std::min(kBlock, k - p);
          if (!widen)
            add_rows(part, reinterpret_cast<const T*>(at(i, p)), matrix.col, x + p, count, n);
          for (int64_t q = 0; widen && q < count; q += 4) {
            const int64_t some = std::min<int64_t>(4, count - q);
            for (int64_t r = 0; r < some; ++r) widen(wide + r * n, at(i, p + q + r), n);
            add_rows(part, wide, n, x + p + q, some, n);
          }
          for (int64_t j = 0; j < n; ++j) y[i + j] += part[j];
        }
      }
    });
  }
};

}  // namespace

template <class T>
bool gemv(int64_t rows, int64_t k, const GemmOperand& matrix, const T* x, int64_t x_step, T* y) {
  const bool row_dense = matrix.col == 1 || k == 1, column_dense = matrix.row == 1 || rows == 1;
  if (!row_dense && !column_dense) return false;
  constexpr DType kOwn = sizeof(T) == 4 ? DType::kFloat32 : DType::kFloat64;
  constexpr decltype(&dot_baseline<T>) kDot[] = {dot_baseline<T>, dot_avx2<T>, dot_avx512<T>};
  constexpr decltype(&add_rows_baseline<T>) kAdd[] = {add_rows_baseline<T>, add_rows_avx2<T>,
                                                      add_rows_avx512<T>};
  OutOfScratch failure;
  Scratch dense(x_step == 1 ? 0 : static_cast<size_t>(k) * sizeof(T), failure);
  T* copy = static_cast<T*>(dense.get());
  if (x_step != 1 && !copy) throw std::bad_alloc();
  if (copy)
    for (int64_t p = 0; p < k; ++p) copy[p] = x[p * x_step];
  const Gemv<T> g{kDot[g_isa],
                  kAdd[g_isa],
                  rows,
                  k,
                  matrix,
                  copy ? copy : x,
                  y,
                  matrix.dtype == kOwn ? nullptr : converts().load[static_cast<int>(matrix.dtype)],
                  static_cast<int64_t>(itemsize(matrix.dtype)),
                  failure};
  row_dense ? g.by_rows() : g.by_columns();
  if (!failure.status("matmul").ok()) throw std::bad_alloc();
  return true;
}

template bool gemv<float>(int64_t, int64_t, const GemmOperand&, const float*, int64_t, float*);
template bool gemv<double>(int64_t, int64_t, const GemmOperand&, const double*, int64_t, double*);

}  // namespace tessera::cpu
