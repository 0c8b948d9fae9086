// "matmul": batched matrix product with an optional bias. Products of floats are ours; those of
// complex numbers, and all on machines without fused multiply-adds, BLAS's.
#include <algorithm>
#include <climits>
#include <cstring>
#include <memory>

#include "blas.h"
#include "convert.h"
#include "convert_scalar.h"
#include "gemm.h"
#include "kernels.h"
#include "library_call.h"
#include "matmul_floats.h"
#include "scratch.h"
#include "strided.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

// OpenBLAS multiplies up to this size on the calling thread alone (its own rule), faster than our
// loops even at 4 x 4 x 4; so it may be called from the pool's threads too.
constexpr int64_t kBlasSerial = 64 * 64 * 64;

struct Shape {
  int64_t batch, m, k, n;
};

// A matrix as BLAS wants it: rows (or, transposed, columns) dense.
template <class T>
struct Matrix {
  const T* data;
  bool transposed;
  int64_t ld;
};

// In place where one of its strides is 1; else a copy in `packed`.
template <class T>
Matrix<T> as_matrix(const T* data, int64_t rows, int64_t cols, int64_t rs, int64_t cs,
                    std::unique_ptr<T[]>& packed) {
  if ((cs == 1 || cols == 1) && (rs >= cols || rows == 1))
    return {data, false, std::max<int64_t>(rows == 1 ? cols : rs, std::max<int64_t>(cols, 1))};
  if ((rs == 1 || rows == 1) && (cs >= rows || cols == 1))
    return {data, true, std::max<int64_t>(cols == 1 ? rows : cs, std::max<int64_t>(rows, 1))};
  if (!packed) packed.reset(new T[static_cast<size_t>(rows * cols)]);
  // By square blocks, so that a transposed copy uses whole cache lines.
  gather_block(packed.get(), data, rows, cols, rs, cs, sizeof(T));
  return {packed.get(), false, cols};
}

void call_blas(const Blas& b, int ta, int tb, int m, int n, int k, const float* x, int ldx,
               const float* y, int ldy, float* c) {
  b.sgemm(kBlasRowMajor, ta, tb, m, n, k, 1.0f, x, ldx, y, ldy, 0.0f, c, n);
}
void call_blas(const Blas& b, int ta, int tb, int m, int n, int k, const double* x, int ldx,
               const double* y, int ldy, double* c) {
  b.dgemm(kBlasRowMajor, ta, tb, m, n, k, 1.0, x, ldx, y, ldy, 0.0, c, n);
}

void call_blas(const Blas& b, int ta, int tb, int m, int n, int k, const c64* x, int ldx,
               const c64* y, int ldy, c64* c) {
  const c64 one = 1, zero = 0;
  b.cgemm(kBlasRowMajor, ta, tb, m, n, k, &one, x, ldx, y, ldy, &zero, c, n);
}
void call_blas(const Blas& b, int ta, int tb, int m, int n, int k, const c128* x, int ldx,
               const c128* y, int ldy, c128* c) {
  const c128 one = 1, zero = 0;
  b.zgemm(kBlasRowMajor, ta, tb, m, n, k, &one, x, ldx, y, ldy, &zero, c, n);
}

bool fits_int(int64_t v) { return v <= INT_MAX; }

// One product into dense c.
template <class T>
void multiply(const Shape& s, const T* a, int64_t ar, int64_t ac, const T* b, int64_t br,
              int64_t bc, T* c) {
  if (s.k == 0) {
    std::fill_n(c, s.m * s.n, T(0));
    return;
  }
  std::unique_ptr<T[]> packed_a, packed_b;
  if constexpr (std::is_floating_point_v<T> || is_complex_v<T>) {
    const bool nested = in_parallel() && s.m * s.n * s.k > kBlasSerial;
    const Blas* lib = nested ? nullptr : blas();
    if (lib) {
      Matrix<T> x = as_matrix(a, s.m, s.k, ar, ac, packed_a);
      Matrix<T> y = as_matrix(b, s.k, s.n, br, bc, packed_b);
      if (fits_int(s.m) && fits_int(s.n) && fits_int(s.k) && fits_int(x.ld) && fits_int(y.ld)) {
        return call_blas(*lib, x.transposed ? kBlasTrans : kBlasNoTrans,
                         y.transposed ? kBlasTrans : kBlasNoTrans, static_cast<int>(s.m),
                         static_cast<int>(s.n), static_cast<int>(s.k), x.data,
                         static_cast<int>(x.ld), y.data, static_cast<int>(y.ld), c);
      }
    }
  }
  if (bc != 1 && s.n > 1) {
    if (!packed_b) packed_b.reset(new T[static_cast<size_t>(s.k * s.n)]);
    gather_block(packed_b.get(), b, s.k, s.n, br, bc, sizeof(T));
    b = packed_b.get();
    br = s.n;
  }
  gemm<T>(s.m, s.n, s.k, a, ar, ac, b, br, c);
}

template <class T>
const T* at(const KernelTensor& t, int64_t batch) {
  return static_cast<const T*>(t.data) + batch * t.strides[0];
}

// Rows of c get the bias added.
template <class T>
void add_bias(const Shape& s, const T* bias, T* c) {
  using W = std::conditional_t<std::is_integral_v<T> && (sizeof(T) < 4), uint32_t, T>;
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < s.n; ++j)
      c[i * s.n + j] = static_cast<T>(static_cast<W>(c[i * s.n + j]) + static_cast<W>(bias[j]));
}

// The bias as n dense elements of T, converted by `load` where that is given.
template <class T>
std::unique_ptr<T[]> dense_bias(const KernelArgs& args, int64_t n, ConvertFn load) {
  if (args.num_inputs < 3) return nullptr;
  const KernelTensor& bias = args.inputs[2];
  std::unique_ptr<T[]> out(new T[static_cast<size_t>(n)]);
  int64_t stride = bias.ndim > 0 && bias.sizes[bias.ndim - 1] > 1 ? bias.strides[bias.ndim - 1] : 0;
  if (!load) {
    gather_block(out.get(), bias.data, 1, n, 0, stride, sizeof(T));
  } else {
    std::unique_ptr<uint16_t[]> raw(new uint16_t[static_cast<size_t>(n)]);
    gather_block(raw.get(), bias.data, 1, n, 0, stride, sizeof(uint16_t));
    load(out.get(), raw.get(), n);
  }
  return out;
}

template <class T>
Status matmul_plain(const KernelArgs& args, const Shape& s) {
  const KernelTensor &a = args.inputs[0], &b = args.inputs[1];
  std::unique_ptr<T[]> bias = dense_bias<T>(args, s.n, nullptr);
  T* out = static_cast<T*>(args.outputs[0].data);
  auto one = [&](int64_t i) {
    T* c = out + i * s.m * s.n;
    multiply<T>(s, at<T>(a, i), a.strides[1], a.strides[2], at<T>(b, i), b.strides[1], b.strides[2],
                c);
    if (bias) add_bias<T>(s, bias.get(), c);
  };
  // Large products are split inside; of many small ones each thread takes some.
  OutOfScratch failure;
  if (s.batch > 1 && s.m * s.n * s.k <= kBlasSerial) {
    int64_t grain = std::max<int64_t>(1, 64 * 1024 / std::max<int64_t>(1, s.m * s.n * s.k));
    parallel_for(0, s.batch, grain, [&](int64_t f, int64_t l) {
      try {
        for (int64_t i = f; i < l; ++i) one(i);
      } catch (...) {
        failure.note();
      }
    });
  } else {
    for (int64_t i = 0; i < s.batch; ++i) one(i);
  }
  return failure.status("matmul()");
}

// n elements of a half type to float, by all threads.
void convert_all(ConvertFn fn, void* dst, size_t dst_item, const void* src, size_t src_item,
                 int64_t n) {
  parallel_for(0, n, 32 * 1024, [&](int64_t b, int64_t e) {
    fn(static_cast<char*>(dst) + static_cast<size_t>(b) * dst_item,
       static_cast<const char*>(src) + static_cast<size_t>(b) * src_item, e - b);
  });
}

// One matrix of a half type as dense floats; keeps the order of a dense transposed one.
Matrix<float> widen(const KernelTensor& t, int64_t batch, std::unique_ptr<uint16_t[]>& raw,
                    float* out, ConvertFn load) {
  Matrix<uint16_t> x =
      as_matrix(at<uint16_t>(t, batch), t.sizes[1], t.sizes[2], t.strides[1], t.strides[2], raw);
  int64_t rows = x.transposed ? t.sizes[2] : t.sizes[1];
  int64_t cols = x.transposed ? t.sizes[1] : t.sizes[2];
  if (x.ld == cols) {
    convert_all(load, out, 4, x.data, 2, rows * cols);
  } else {
    parallel_for(0, rows, std::max<int64_t>(1, 32 * 1024 / std::max<int64_t>(cols, 1)),
                 [&](int64_t b, int64_t e) {
                   for (int64_t i = b; i < e; ++i) load(out + i * cols, x.data + i * x.ld, cols);
                 });
  }
  return {out, x.transposed, cols};
}

void matmul_narrow(const KernelArgs& args, const Shape& s) {
  const KernelTensor &a = args.inputs[0], &b = args.inputs[1];
  const int t = static_cast<int>(a.dtype);
  const ConvertFn load = converts().load[t], store = converts().store[t];
  std::unique_ptr<float[]> bias = dense_bias<float>(args, s.n, load);
  std::unique_ptr<float[]> fa(new float[static_cast<size_t>(s.m * s.k)]);
  std::unique_ptr<float[]> fb(new float[static_cast<size_t>(s.k * s.n)]);
  std::unique_ptr<float[]> fc(new float[static_cast<size_t>(s.m * s.n)]);
  std::unique_ptr<uint16_t[]> raw_a, raw_b;
  uint16_t* out = static_cast<uint16_t*>(args.outputs[0].data);
  Matrix<float> x{}, y{};
  for (int64_t i = 0; i < s.batch; ++i) {
    // A matrix that all batches share is converted once.
    if (i == 0 || a.strides[0] != 0) x = widen(a, i, raw_a, fa.get(), load);
    if (i == 0 || b.strides[0] != 0) y = widen(b, i, raw_b, fb.get(), load);
    multiply<float>(s, x.data, x.transposed ? 1 : x.ld, x.transposed ? x.ld : 1, y.data,
                    y.transposed ? 1 : y.ld, y.transposed ? y.ld : 1, fc.get());
    if (bias) add_bias<float>(s, bias.get(), fc.get());
    convert_all(store, out + i * s.m * s.n, 2, fc.get(), 4, s.m * s.n);
  }
}

void matmul_bool(const KernelArgs& args, const Shape& s) {
  const KernelTensor &a = args.inputs[0], &b = args.inputs[1];
  std::unique_ptr<bool[]> bias = dense_bias<bool>(args, s.n, nullptr);
  bool* out = static_cast<bool*>(args.outputs[0].data);
  for (int64_t i = 0; i < s.batch; ++i) {
    const bool *x = at<bool>(a, i), *y = at<bool>(b, i);
    for (int64_t r = 0; r < s.m; ++r) {
      bool* c = out + (i * s.m + r) * s.n;
      for (int64_t j = 0; j < s.n; ++j) c[j] = bias ? bias[j] : false;
      for (int64_t p = 0; p < s.k; ++p)
        if (x[r * a.strides[1] + p * a.strides[2]])
          for (int64_t j = 0; j < s.n; ++j) c[j] = c[j] | y[p * b.strides[1] + j * b.strides[2]];
    }
  }
}

}  // namespace

Status matmul(const KernelArgs& args) {
  const KernelTensor &a = args.inputs[0], &b = args.inputs[1];
  if (a.ndim != 3 || b.ndim != 3)
    return fail(Code::kInvalid, "matmul: operands must have three dimensions");
  for (int i = 0; i < args.num_inputs; ++i)
    if (args.inputs[i].dtype != args.outputs[0].dtype)
      return fail(Code::kUnsupported, "matmul: operands of %s and %s",
                  dtype_name(args.inputs[i].dtype), dtype_name(args.outputs[0].dtype));
  const Shape s{a.sizes[0], a.sizes[1], a.sizes[2], b.sizes[2]};
  if (s.batch * s.m * s.n == 0) return {};
  if (is_floating(a.dtype) && matmul_floats(args)) return {};
  LibraryCall call;
  switch (a.dtype) {
    case DType::kFloat32:
      return matmul_plain<float>(args, s);
    case DType::kFloat64:
      return matmul_plain<double>(args, s);
    case DType::kFloat16:
    case DType::kBFloat16:
      matmul_narrow(args, s);
      break;
    case DType::kUInt8:
    case DType::kInt8:
      return matmul_plain<uint8_t>(args, s);
    case DType::kInt16:
      return matmul_plain<uint16_t>(args, s);
    case DType::kInt32:
      return matmul_plain<uint32_t>(args, s);
    case DType::kInt64:
      return matmul_plain<uint64_t>(args, s);
    case DType::kComplex64:
      return matmul_plain<c64>(args, s);
    case DType::kComplex128:
      return matmul_plain<c128>(args, s);
    case DType::kBool:
      matmul_bool(args, s);
      break;
  }
  return {};
}

TS_KERNEL("matmul", matmul)

}  // namespace tessera::cpu
