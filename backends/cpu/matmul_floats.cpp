#include "matmul_floats.h"

#include <algorithm>
#include <memory>
#include <new>

#include "convert.h"
#include "gemm_blocked.h"
#include "gemm_dots.h"
#include "gemm_kernel.h"
#include "gemv.h"
#include "scratch.h"
#include "strided.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

// Products up to this are given to threads one by one; larger ones are shared among them.
constexpr int64_t kWholeProduct = 256 * 256 * 256;
// So few rows do not pay for packing a transposed matrix of more elements than this.
constexpr int64_t kFewRows = 32, kSmallMatrix = 16 * 1024;

template <class T>
struct Batch {
  const KernelTensor &a, &b, &out;
  int64_t count, m, k, n;
  ConvertFn load, store;  // null where elements are T already
  std::unique_ptr<T[]> bias;

  explicit Batch(const KernelArgs& args)
      : a(args.inputs[0]),
        b(args.inputs[1]),
        out(args.outputs[0]),
        count(a.sizes[0]),
        m(a.sizes[1]),
        k(a.sizes[2]),
        n(b.sizes[2]) {
    const bool own = itemsize(out.dtype) == sizeof(T);
    load = own ? nullptr : converts().load[static_cast<int>(out.dtype)];
    store = own ? nullptr : converts().store[static_cast<int>(out.dtype)];
    if (args.num_inputs < 3) return;
    const KernelTensor& given = args.inputs[2];
    const int last = given.ndim - 1;
    bias = vector(given.data, given.ndim > 0 && given.sizes[last] > 1 ? given.strides[last] : 0, n);
  }

  // Strided elements as dense T.
  std::unique_ptr<T[]> vector(const void* data, int64_t stride, int64_t length) const {
    std::unique_ptr<T[]> to(new T[static_cast<size_t>(length)]);
    if (!load) {
      gather_block(to.get(), data, 1, length, 0, stride, sizeof(T));
    } else {
      std::unique_ptr<uint16_t[]> raw(new uint16_t[static_cast<size_t>(length)]);
      gather_block(raw.get(), data, 1, length, 0, stride, sizeof(uint16_t));
      load(to.get(), raw.get(), length);
    }
    return to;
  }

  GemmOperand operand(const KernelTensor& t, int64_t i) const {
    const char* data = static_cast<const char*>(t.data) +
                       i * t.strides[0] * static_cast<int64_t>(itemsize(t.dtype));
    return {data, t.dtype, t.strides[1], t.strides[2]};
  }

  bool by_gemv(const GemmOperand& matrix, int64_t rows, const void* x, int64_t step, T* c) const {
    if (!load) return gemv<T>(rows, k, matrix, static_cast<const T*>(x), step, c);
    const bool dense = matrix.row == 1 || matrix.col == 1;
    return dense && gemv<T>(rows, k, matrix, vector(x, step, k).get(), 1, c);
  }

  void product(int64_t i, T* c) const {
    const GemmOperand x = operand(a, i), y = operand(b, i);
    bool done = false;
    if (n == 1)
      done = by_gemv(x, m, y.data, y.row, c);
    else if (m == 1)
      done = by_gemv({y.data, y.dtype, y.col, y.row}, n, x.data, x.col, c);
    else if (m <= kFewRows && !load && x.col == 1 && y.row == 1 && y.col > 1 &&
             n * k > kSmallMatrix &&
             gemm_dots<T>(m, n, k, static_cast<const T*>(x.data), x.row,
                          static_cast<const T*>(y.data), y.col, c, bias.get()))
      return;
    if (!done) {
      gemm_blocked<T>(m, n, k, x, y, c, bias.get());
    } else if (bias) {
      for (int64_t r = 0; r < m; ++r)
        for (int64_t j = 0; j < n; ++j) c[r * n + j] += bias[static_cast<size_t>(j)];
    }
  }

  // Into the output, through floats where it is of a half type.
  void one(int64_t i) const {
    char* to = static_cast<char*>(out.data) + i * m * n * static_cast<int64_t>(itemsize(out.dtype));
    if (!store) return product(i, reinterpret_cast<T*>(to));
    OutOfScratch failure;
    Scratch wide(static_cast<size_t>(m * n) * sizeof(T), failure);
    T* c = static_cast<T*>(wide.get());
    if (!c) throw std::bad_alloc();
    product(i, c);
    parallel_for(0, m * n, 32 * 1024,
                 [&](int64_t f, int64_t l) { store(to + 2 * f, c + f, l - f); });
  }

  void empty() const {
    std::unique_ptr<T[]> row(new T[static_cast<size_t>(n)]());
    if (bias) std::copy_n(bias.get(), n, row.get());
    const int64_t item = static_cast<int64_t>(itemsize(out.dtype));
    const ConvertFn put = converts().store[static_cast<int>(out.dtype)];
    for (int64_t r = 0; r < count * m; ++r)
      put(static_cast<char*>(out.data) + r * n * item, row.get(), n);
  }

  void run() const {
    if (k == 0) return empty();
    const int64_t work = m * n * k;
    if (count == 1 || work > kWholeProduct || (count < num_threads() && work > 32 * 32 * 32)) {
      for (int64_t i = 0; i < count; ++i) one(i);
      return;
    }
    OutOfScratch failure;
    parallel_for(0, count, std::max<int64_t>(1, 32 * 1024 / work), [&](int64_t f, int64_t l) {
      try {
        for (int64_t i = f; i < l; ++i) one(i);
      } catch (...) {
        failure.note();
      }
    });
    if (!failure.status("matmul").ok()) throw std::bad_alloc();
  }
};

}  // namespace

bool matmul_floats(const KernelArgs& args) {
  if (!gemm_kernel<float>()) return false;
  if (args.outputs[0].dtype == DType::kFloat64)
    Batch<double>(args).run();
  else
    Batch<float>(args).run();
  return true;
}

}  // namespace tessera::cpu
