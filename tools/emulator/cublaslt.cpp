// Stands in for libcublasLt: products of column-major matrices, one element after another.
#include <cublasLt.h>

#include <algorithm>
#include <complex>
#include <cstring>
#include <functional>
#include <vector>

extern "C" int emulator_enqueue(void* stream, std::function<int()>* work);

namespace emulator {
namespace {

struct Description {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};

struct Layout {
  cudaDataType_t type;
  uint64_t rows, columns;
  int64_t ld;
  int32_t batch = 1;
  int64_t stride = 0;
};

template <class T>
cublasStatus_t set(T* to, const void* from, size_t bytes) {
  if (bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(to, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

float from_half(uint16_t h) {
  uint32_t sign = (h & 0x8000u) << 16, e = h >> 10 & 31u, m = h & 0x3ffu, bits;
  if (e == 0) {
    float small = static_cast<float>(m) * 5.9604644775390625e-8f;
    return sign ? -small : small;
  }
  bits = e == 31 ? sign | 0x7f800000u | m << 13 : sign | (e + 112) << 23 | m << 13;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}
uint16_t to_half(float f) {
  uint32_t x;
  std::memcpy(&x, &f, 4);
  uint32_t sign = x >> 16 & 0x8000u, a = x & 0x7fffffffu;
  if (a > 0x7f800000u) return 0x7fff;
  if (a >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (a >= 0x38800000u)
    return static_cast<uint16_t>(sign | (a + 0xc8000000u + 0xfffu + (a >> 13 & 1u)) >> 13);
  float positive, r;
  std::memcpy(&positive, &a, 4);
  r = positive + 0.5f;  // rounds to a multiple of the smallest number
  uint32_t bits;
  std::memcpy(&bits, &r, 4);
  return static_cast<uint16_t>(sign | (bits - 0x3f000000u));
}
float from_bfloat(uint16_t h) {
  uint32_t bits = uint32_t{h} << 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}
uint16_t to_bfloat(float f) {
  uint32_t x;
  std::memcpy(&x, &f, 4);
  return f != f ? 0x7fff : static_cast<uint16_t>((x + 0x7fffu + (x >> 16 & 1u)) >> 16);
}

bool is_complex(cudaDataType_t t) { return t == CUDA_C_32F || t == CUDA_C_64F; }
size_t bytes_of(cudaDataType_t t) {
  if (is_complex(t)) return t == CUDA_C_64F ? 16 : 8;
  return t == CUDA_R_64F ? 8 : t == CUDA_R_32F ? 4 : t == CUDA_R_16F || t == CUDA_R_16BF ? 2 : 0;
}

template <class A>
inline constexpr bool is_complex_v = false;
template <class R>
inline constexpr bool is_complex_v<std::complex<R>> = true;

template <class A>
A read(const void* p, cudaDataType_t t, int64_t i) {
  if constexpr (is_complex_v<A>)
    return static_cast<const A*>(p)[i];
  else
    switch (t) {
      case CUDA_R_16F:
        return from_half(static_cast<const uint16_t*>(p)[i]);
      case CUDA_R_16BF:
        return from_bfloat(static_cast<const uint16_t*>(p)[i]);
      case CUDA_R_32F:
        return static_cast<A>(static_cast<const float*>(p)[i]);
      default:
        return static_cast<A>(static_cast<const double*>(p)[i]);
    }
}

template <class A>
void write(void* p, cudaDataType_t t, int64_t i, A v) {
  if constexpr (is_complex_v<A>)
    static_cast<A*>(p)[i] = v;
  else
    switch (t) {
      case CUDA_R_16F:
        static_cast<uint16_t*>(p)[i] = to_half(static_cast<float>(v));
        break;
      case CUDA_R_16BF:
        static_cast<uint16_t*>(p)[i] = to_bfloat(static_cast<float>(v));
        break;
      case CUDA_R_32F:
        static_cast<float*>(p)[i] = static_cast<float>(v);
        break;
      default:
        static_cast<double*>(p)[i] = static_cast<double>(v);
    }
}

struct Product {
  Description about;
  Layout la, lb, lc, ld;
  const void *a, *b, *c;
  void* d;
  double alpha, beta;
};

// op(a) as dense rows of k, op(b) as dense columns of k or rows of n: what the loops read side by
// side. Sums are taken over k in order, in the compute type.
template <class A>
void multiply(const Product& p) {
  bool ta = p.about.transpose_a != CUBLAS_OP_N, tb = p.about.transpose_b != CUBLAS_OP_N;
  auto m = static_cast<int64_t>(p.ld.rows), n = static_cast<int64_t>(p.ld.columns);
  auto k = static_cast<int64_t>(ta ? p.la.rows : p.la.columns);
  std::vector<A> a(static_cast<size_t>(m * k)), sum(static_cast<size_t>(m));
  for (int64_t z = 0; z < p.ld.batch; ++z) {
    for (int64_t l = 0; l < k; ++l)
      for (int64_t i = 0; i < m; ++i)
        a[static_cast<size_t>(l * m + i)] =
            read<A>(p.a, p.la.type, z * p.la.stride + (ta ? i * p.la.ld + l : l * p.la.ld + i));
    for (int64_t j = 0; j < n; ++j) {
      std::fill(sum.begin(), sum.end(), A(0));
      for (int64_t l = 0; l < k; ++l) {
        A y = read<A>(p.b, p.lb.type, z * p.lb.stride + (tb ? l * p.lb.ld + j : j * p.lb.ld + l));
        const A* row = a.data() + l * m;
        for (int64_t i = 0; i < m; ++i) sum[static_cast<size_t>(i)] += row[i] * y;
      }
      for (int64_t i = 0; i < m; ++i) {
        A v = static_cast<A>(p.alpha) * sum[static_cast<size_t>(i)];
        if (p.beta != 0.0)
          v += static_cast<A>(p.beta) * read<A>(p.c, p.lc.type, z * p.lc.stride + j * p.lc.ld + i);
        if (p.about.epilogue == CUBLASLT_EPILOGUE_BIAS) v += read<A>(p.about.bias, p.ld.type, i);
        write(p.d, p.ld.type, z * p.ld.stride + j * p.ld.ld + i, v);
      }
    }
  }
}

// What the real library asks of its operands, as far as the backend could get it wrong.
bool possible(const Description& about, const Layout& a, const Layout& b, const Layout& d) {
  bool ta = about.transpose_a != CUBLAS_OP_N, tb = about.transpose_b != CUBLAS_OP_N;
  // Neither conjugates nor biases are emulated for complex numbers: the backend asks for none.
  if (about.transpose_a == CUBLAS_OP_C || about.transpose_b == CUBLAS_OP_C) return false;
  if (is_complex(d.type) &&
      (about.epilogue != CUBLASLT_EPILOGUE_DEFAULT || about.scale != d.type || a.type != d.type))
    return false;
  auto fits = [](const Layout& l) {
    return bytes_of(l.type) != 0 && l.ld >= static_cast<int64_t>(l.rows) && l.batch >= 1;
  };
  return fits(a) && fits(b) && fits(d) && (ta ? a.columns : a.rows) == d.rows &&
         (tb ? b.rows : b.columns) == d.columns &&
         (ta ? a.rows : a.columns) == (tb ? b.columns : b.rows) && a.batch == d.batch &&
         b.batch == d.batch && a.type == b.type &&
         (about.epilogue == CUBLASLT_EPILOGUE_DEFAULT || about.epilogue == CUBLASLT_EPILOGUE_BIAS);
}

Description& of(cublasLtMatmulDesc_t d) { return *reinterpret_cast<Description*>(d); }
Layout& of(cublasLtMatrixLayout_t l) { return *reinterpret_cast<Layout*>(l); }

}  // namespace
}  // namespace emulator

using namespace emulator;

cublasStatus_t cublasLtCreate(cublasLtHandle_t* out) {
  static char handle;
  *out = reinterpret_cast<cublasLtHandle_t>(&handle);
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasLtGetStatusString(cublasStatus_t s) {
  return s == CUBLAS_STATUS_SUCCESS         ? "CUBLAS_STATUS_SUCCESS"
         : s == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                            : "CUBLAS_STATUS_INVALID_VALUE";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* out, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  *out = reinterpret_cast<cublasLtMatmulDesc_t>(new Description{compute, scale});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) {
  delete &of(d);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set(&of(d).transpose_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set(&of(d).transpose_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return set(&of(d).epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return set(&of(d).bias, value, bytes);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* out, cudaDataType_t type,
                                          uint64_t rows, uint64_t columns, int64_t ld) {
  *out = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, rows, columns, ld});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) {
  delete &of(l);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return set(&of(l).batch, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return set(&of(l).stride, value, bytes);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

// Of the preferences only their being set is emulated.
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* out) {
  *out = reinterpret_cast<cublasLtMatmulPreference_t>(new int(0));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) {
  delete reinterpret_cast<int*>(p);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t d,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t to,
                                              cublasLtMatmulPreference_t, int,
                                              cublasLtMatmulHeuristicResult_t* out, int* count) {
  *count = possible(of(d), of(a), of(b), of(to)) ? 1 : 0;
  if (*count == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  *out = {};
  out->state = CUBLAS_STATUS_SUCCESS;
  out->workspaceSize = 1024;  // so that the caller provides it
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t about, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t la, const void* b,
                              cublasLtMatrixLayout_t lb, const void* beta, const void* c,
                              cublasLtMatrixLayout_t lc, void* d, cublasLtMatrixLayout_t ld,
                              const cublasLtMatmulAlgo_t*, void* workspace, size_t workspace_bytes,
                              cudaStream_t stream) {
  if (!possible(of(about), of(la), of(lb), of(ld)) || !workspace || workspace_bytes < 1024)
    return CUBLAS_STATUS_INVALID_VALUE;
  const cudaDataType_t scale = of(about).scale;
  const bool f64 = scale == CUDA_R_64F || scale == CUDA_C_64F;
  if (is_complex(scale) &&
      (f64 ? static_cast<const double*>(alpha)[1] + static_cast<const double*>(beta)[1]
           : static_cast<const float*>(alpha)[1] + static_cast<const float*>(beta)[1]) != 0)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  Product p{of(about), of(la), of(lb), of(lc), of(ld), a, b, c, d, 0, 0};
  p.alpha = f64 ? *static_cast<const double*>(alpha) : *static_cast<const float*>(alpha);
  p.beta = f64 ? *static_cast<const double*>(beta) : *static_cast<const float*>(beta);
  std::function<int()> work = [p, scale, workspace, workspace_bytes] {
    std::memset(workspace, 0xff, workspace_bytes);  // another product's, while both run
    switch (scale) {
      case CUDA_C_64F:
        multiply<std::complex<double>>(p);
        break;
      case CUDA_C_32F:
        multiply<std::complex<float>>(p);
        break;
      case CUDA_R_64F:
        multiply<double>(p);
        break;
      default:
        multiply<float>(p);
    }
    return 0;
  };
  return emulator_enqueue(stream, &work) == 0 ? CUBLAS_STATUS_SUCCESS
                                              : CUBLAS_STATUS_EXECUTION_FAILED;
}
