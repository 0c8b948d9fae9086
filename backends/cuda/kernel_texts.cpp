#include "kernel_texts.h"

#include "prelude.h"

namespace tessera::cuda {
namespace {

constexpr const char* kPhilox =
#include "philox_text.inc"
    ;

// S is the storage type, A its register class; ld and st go between them.
std::string element_text(DType t) {
  return std::string("typedef ") + storage_type(t) + " S; typedef " + register_type(reg_class(t)) +
         " A;\nTS_FN A ld(S s) { return " + load_text(t, "s") + "; }\nTS_FN S st(A a) { return " +
         store_text(t, "a") + "; }\n";
}

std::string params_text(int words) {
  return "struct Params { unsigned long long w[" + std::to_string(words) + "]; };\n";
}

std::string constant(const char* name, int64_t value) {
  return std::string("enum { ") + name + " = " + std::to_string(value) + " };\n";
}

// Parameters: 0 x, 1 y, 2 rows, 3 n, 4 stride of x along the row, 5 the same of y; 8.. sizes of the
// other dimensions, then x's strides there.
constexpr const char* kSoftmaxShared = R"(
TS_FN int64_t row_of_x(const Params& p, int64_t r) {
  int64_t o = 0;
  const int nd = (int)p.w[6];
  for (int d = nd - 1; d > 0; --d) {
    int64_t size = (int64_t)p.w[8 + d];
    o += r % size * (int64_t)p.w[8 + DIMS + d];
    r /= size;
  }
  return nd > 0 ? o + r * (int64_t)p.w[8 + DIMS] : 0;
}
TS_FN int64_t row_of_y(const Params& p, int64_t r) {
  const int64_t n = (int64_t)p.w[3], inner = (int64_t)p.w[5];
  return inner == 1 ? r * n : r / inner * n * inner + r % inner;
}
// Multiplying by the reciprocal is off by one place of a float: nothing once rounded to 16 bits.
struct Scale {
  A max, sum, factor;
  TS_FN Scale make(A m, A s) {
    Scale x; x.max = m; x.sum = LOG ? log(s) : s; x.factor = A(1) / s; return x;
  }
  TS_FN S value(A e, A x, const Scale& s) {
    if constexpr (LOG) return st(x - s.max - s.sum);
    else if constexpr (sizeof(S) == 2) return st(e * s.factor);
    else return st(e / s.sum);
  }
};
TS_FN A lowest() { return -std::numeric_limits<A>::infinity(); }
// Folds one more element into a running maximum and the sum of exponentials below it.
TS_FN void fold(A& m, A& s, A x) {
  if (x > m) { s = s * exp(m - x) + A(1); m = x; }
  else if (x == x) s += x == lowest() ? A(0) : exp(x - m);
  else { s = x; m = x; }
}
)";

constexpr const char* kSoftmaxColumns = R"(
extern "C" __global__ void __launch_bounds__(256) softmax(const __grid_constant__ Params p) {
  const int64_t rows = (int64_t)p.w[2], n = (int64_t)p.w[3];
  const int64_t xs = (int64_t)p.w[4], ys = (int64_t)p.w[5], step = (int64_t)gridDim.x * 256;
  for (int64_t r = (int64_t)blockIdx.x * 256 + threadIdx.x; r < rows; r += step) {
    const S* x = (const S*)p.w[0] + row_of_x(p, r);
    S* y = (S*)p.w[1] + row_of_y(p, r);
    A m = lowest();
    for (int64_t j = 0; j < n; ++j) m = max_nan(m, ld(x[j * xs]));
    A s = A(0);
    for (int64_t j = 0; j < n; ++j) s += exp(ld(x[j * xs]) - m);
    const Scale scale = Scale::make(m, s);
    for (int64_t j = 0; j < n; ++j) {
      A v = ld(x[j * xs]);
      y[j * ys] = Scale::value(LOG ? A(0) : exp(v - m), v, scale);
    }
  }
}
)";

constexpr const char* kSoftmaxRows = R"(
enum { ROWS = THREADS == 32 ? 8 : 1, BLOCK = THREADS * ROWS, WARPS = THREADS / 32 };
TS_FN A warp_max(A x) {
  #pragma unroll
  for (int d = 16; d > 0; d /= 2) x = max_nan(x, __shfl_xor_sync(0xffffffffu, x, d));
  return x;
}
TS_FN A warp_sum(A x) {
  #pragma unroll
  for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(0xffffffffu, x, d);
  return x;
}
TS_FN A row_max(A x, A* parts) {
  x = warp_max(x);
  if constexpr (WARPS > 1) {
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = warp_max(threadIdx.x % 32 < WARPS ? parts[threadIdx.x % 32] : lowest());
  }
  return x;
}
TS_FN A row_sum(A x, A* parts) {
  x = warp_sum(x);
  if constexpr (WARPS > 1) {
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = warp_sum(threadIdx.x % 32 < WARPS ? parts[threadIdx.x % 32] : A(0));
  }
  return x;
}
extern "C" __global__ void __launch_bounds__(BLOCK) softmax(const __grid_constant__ Params p) {
  const int64_t r = (int64_t)blockIdx.x * ROWS + threadIdx.x / THREADS;
  if (r >= (int64_t)p.w[2]) return;  // a whole warp, or nobody
  const int lane = threadIdx.x % THREADS;
  const int64_t n = (int64_t)p.w[3], xs = (int64_t)p.w[4], ys = (int64_t)p.w[5];
  const S* x = (const S*)p.w[0] + row_of_x(p, r);
  S* y = (S*)p.w[1] + row_of_y(p, r);
  auto one_x = [&](int64_t j) {
#ifdef BEFORE
    S v[1];
    Before::make(p.before, r, j, v);
    return v[0];
#else
    return x[j * xs];
#endif
  };
  auto put_y = [&](int64_t j, S v) {
#ifdef AFTER
    const S one[1] = {v};
    After::take(p.after, r, j, one);
    if (!p.w[1]) return;
#endif
    y[j * ys] = v;
  };
  __shared__ A max_parts[32], sum_parts[32];
  if constexpr (VECTORS > 0) {
    const int n = (int)p.w[3];
    A e[VECTORS > 0 ? VECTORS * V : 1];
    #pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
      const int j = (k * THREADS + lane) * V;
      if constexpr (VECTOR) {  // then n is a multiple of V
        Vec<S, V> v;
#ifdef BEFORE
        if (j < n) Before::make(p.before, r, j, v.v);
#else
        if (j < n) v = *(const Vec<S, V>*)(x + j);
#endif
        #pragma unroll
        for (int i = 0; i < V; ++i) e[k * V + i] = j < n ? ld(v.v[i]) : lowest();
      } else {
        #pragma unroll
        for (int i = 0; i < V; ++i) e[k * V + i] = j + i < n ? ld(one_x(j + i)) : lowest();
      }
    }
    A m = lowest();
    #pragma unroll
    for (int i = 0; i < VECTORS * V; ++i) m = max_nan(m, e[i]);
    m = row_max(m, max_parts);
    A s = A(0);
    #pragma unroll
    for (int k = 0; k < VECTORS; ++k)
      #pragma unroll
      for (int i = 0; i < V; ++i)
        if ((k * THREADS + lane) * V + i < n) {
          A v = exp(e[k * V + i] - m);
          s += v;
          if constexpr (!LOG) e[k * V + i] = v;
        }
    const Scale scale = Scale::make(m, row_sum(s, sum_parts));
    #pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
      const int j = (k * THREADS + lane) * V;
      if constexpr (VECTOR) {
        Vec<S, V> v;
        #pragma unroll
        for (int i = 0; i < V; ++i) v.v[i] = Scale::value(e[k * V + i], e[k * V + i], scale);
#ifdef AFTER
        if (j < n) After::take(p.after, r, j, v.v);
        if (j < n && p.w[1]) *(Vec<S, V>*)(y + j) = v;
#else
        if (j < n) *(Vec<S, V>*)(y + j) = v;
#endif
      } else {
        #pragma unroll
        for (int i = 0; i < V; ++i)
          if (j + i < n) put_y(j + i, Scale::value(e[k * V + i], e[k * V + i], scale));
      }
    }
  } else {
    A m = lowest(), s = A(0);
    #pragma unroll 4
    for (int64_t j = lane; j < n; j += THREADS) fold(m, s, ld(one_x(j)));
    const A top = row_max(m, max_parts);
    const A mine = m == lowest() && top == top && top != lowest() ? A(0) : s * exp(m - top);
    const Scale scale = Scale::make(top, row_sum(mine, sum_parts));
    #pragma unroll 4
    for (int64_t j = lane; j < n; j += THREADS) {
      A v = ld(one_x(j));
      put_y(j, Scale::value(LOG ? A(0) : exp(v - top), v, scale));
    }
  }
}
)";

// Parameters: 0 out, 1 elements, 2 seed, 3 offset, 4 and 5 numbers (bits of double, or integers).
constexpr const char* kRandom = R"(
enum { PER = WIDE ? 2 : 4 };
TS_FN double number(const Params& p, int i) { return __longlong_as_double((long long)p.w[i]); }
struct Words {
  tessera::PhiloxBlock b;
  TS_FN uint64_t get(const Words& x, int k) {
    return WIDE ? (uint64_t)x.b.w[2 * k] << 32 | x.b.w[2 * k + 1] : x.b.w[k];
  }
};
TS_FN void draw(const Params& p, const Words& words, A* v) {
  if constexpr (DRAW == 0) {
    const A lo = ld(st((A)number(p, 4))), width = ld(st((A)number(p, 5))) - lo;
    #pragma unroll
    for (int k = 0; k < PER; ++k)
      v[k] = (A)(Words::get(words, k) >> SHIFT) * (A)SCALE * width + lo;
  } else if constexpr (DRAW == 1) {
    typedef std::conditional_t<std::is_same_v<A, double>, double, float> F;
    const F mean = (F)number(p, 4), std = (F)number(p, 5);
    #pragma unroll
    for (int k = 0; k < PER; k += 2) {
      const F u1 = (F)(Words::get(words, k) >> SHIFT) * (F)SCALE + (F)SCALE;
      const F u2 = (F)(Words::get(words, k + 1) >> SHIFT) * (F)SCALE;
      const F r = sqrt((F)-2 * log(u1)), t = (F)6.283185307179586 * u2;
      v[k] = (A)(r * cos(t) * std + mean);
      v[k + 1] = (A)(r * sin(t) * std + mean);
    }
  } else if constexpr (DRAW == 2) {
    #pragma unroll
    for (int k = 0; k < PER; ++k)
      v[k] = (A)((double)(uint32_t)Words::get(words, k) * 2.3283064365386963e-10 < number(p, 4));
  } else {
    const uint64_t low = p.w[4], range = p.w[5] - low;
    #pragma unroll
    for (int k = 0; k < PER; ++k) {
      const uint64_t w = Words::get(words, k);
      v[k] = (A)(int64_t)(low + (WIDE ? w % range : (uint64_t)((uint32_t)w % (uint32_t)range)));
    }
  }
}
extern "C" __global__ void __launch_bounds__(256) random(const __grid_constant__ Params p) {
  S* out = (S*)p.w[0];
  const uint64_t n = p.w[1], blocks = (n + PER - 1) / PER, step = (uint64_t)gridDim.x * 256;
  const unsigned long long* state = (const unsigned long long*)p.w[6];
  const uint64_t seed = state ? state[0] : p.w[2], offset = state ? state[1] + p.w[3] : p.w[3];
  for (uint64_t t = (uint64_t)blockIdx.x * 256 + threadIdx.x; t < blocks; t += step) {
    Words words;
    words.b = tessera::philox_block(seed, offset + t);
    A v[PER];
    draw(p, words, v);
    #pragma unroll
    for (int k = 0; k < PER; ++k)
      if (t * PER + k < n) out[t * PER + k] = st(v[k]);
  }
}
)";

constexpr const char* kBiasAdd = R"(
extern "C" __global__ void __launch_bounds__(256) bias_add(const __grid_constant__ Params p) {
  S* out = (S*)p.w[0];
  const S* bias = (const S*)p.w[1];
  const int64_t n = (int64_t)p.w[2], columns = (int64_t)p.w[3], stride = (int64_t)p.w[4];
  for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < n; i += (int64_t)gridDim.x * 256)
    out[i] = st((A)(ld(out[i]) + ld(bias[i % columns * stride])));
}
)";

// Parameters: 0 out, 1 a, 2 b, 3 M, 4 N, 5 K, 6-8 strides of a (batch, row, column), 9-11 of b.
constexpr const char* kMatmul = R"(
extern "C" __global__ void __launch_bounds__(256) matmul(const __grid_constant__ Params p) {
  __shared__ A ta[16][17], tb[16][17];
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const int64_t M = (int64_t)p.w[3], N = (int64_t)p.w[4], K = (int64_t)p.w[5];
  const int64_t per = (N + 15) / 16;
  const int64_t r = blockIdx.x / per * 16 + ty, c = blockIdx.x % per * 16 + tx, z = blockIdx.y;
  const S* a = (const S*)p.w[1] + z * (int64_t)p.w[6];
  const S* b = (const S*)p.w[2] + z * (int64_t)p.w[9];
  A sum = 0;
  for (int64_t k = 0; k < K; k += 16) {
    const int64_t ka = k + tx, kb = k + ty;
    ta[ty][tx] = r < M && ka < K ? ld(a[r * (int64_t)p.w[7] + ka * (int64_t)p.w[8]]) : (A)0;
    tb[ty][tx] = c < N && kb < K ? ld(b[kb * (int64_t)p.w[10] + c * (int64_t)p.w[11]]) : (A)0;
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < 16; ++i) sum = (A)(sum + ta[ty][i] * tb[i][tx]);
    __syncthreads();
  }
  if (r < M && c < N) ((S*)p.w[0])[(z * M + r) * N + c] = st(sum);
}
)";

}  // namespace

std::string softmax_text(const SoftmaxText& s, const std::string& joins) {
  std::string out = prelude_text() + element_text(s.dtype) + joins +
                    "struct Params { unsigned long long w[" + std::to_string(kSoftmaxWords) +
                    "]; JOIN_FIELDS };\n";
  out += constant("DIMS", kKernelDims) + constant("LOG", s.log) + constant("THREADS", s.threads) +
         constant("V", s.vec) + constant("VECTORS", s.vectors) + constant("VECTOR", s.vector_loads);
  return out + kSoftmaxShared + (s.columns ? kSoftmaxColumns : kSoftmaxRows) + "}\n";
}

std::string random_text(Draw draw, DType dtype, bool wide) {
  // How many bits of a word make the fraction.
  int shift = 8;
  const char* scale = "5.9604644775390625e-8";
  if (draw == Draw::kUniform && dtype == DType::kFloat16) shift = 21, scale = "4.8828125e-4";
  if (draw == Draw::kUniform && dtype == DType::kBFloat16) shift = 24, scale = "3.90625e-3";
  if (dtype == DType::kFloat64) shift = 11, scale = "1.1102230246251565e-16";
  return kPhilox + std::string(prelude_text()) + element_text(dtype) + params_text(7) +
         constant("DRAW", static_cast<int>(draw)) + constant("WIDE", wide) +
         constant("SHIFT", shift) + "#define SCALE " + scale + "\n" + kRandom + "}\n";
}

std::string arange_text(DType dtype) {
  return std::string(prelude_text()) + element_text(dtype) + params_text(kRangeWords) +
         constant("WHOLE", is_integral(dtype, true)) + R"(
extern "C" __global__ void __launch_bounds__(256) arange(const __grid_constant__ Params p) {
  S* out = (S*)p.w[0];
  const int64_t n = (int64_t)p.w[1], step = (int64_t)gridDim.x * 256;
  const double from = __longlong_as_double((long long)p.w[2]);
  const double by = __longlong_as_double((long long)p.w[3]);
  for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < n; i += step) {
    if constexpr (WHOLE) out[i] = st((A)(int64_t)(p.w[2] + p.w[3] * (unsigned long long)i));
    else out[i] = st((A)(from + by * (double)i));
  }
}
}
)";
}

std::string bias_add_text(DType dtype) {
  return prelude_text(is_complex(dtype)) + element_text(dtype) + params_text(5) + kBiasAdd + "}\n";
}

std::string matmul_text(DType dtype) {
  return prelude_text(is_complex(dtype)) + element_text(dtype) + params_text(12) + kMatmul + "}\n";
}

}  // namespace tessera::cuda
