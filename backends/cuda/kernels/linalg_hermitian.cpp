// LDL factors of Hermitian matrices, which cuSOLVER lacks, and the solutions of all (its own,
// Xsytrs, reads memory it was not given): Bunch and Kaufman's pivots as LAPACK's hetf2 chooses
// them, a block of threads for each matrix or right side.
#include "../linalg.h"
#include "../text.h"

namespace tessera::cuda {
namespace {

// The lower triangle, by columns. Threads share the search, the exchange and the update of what is
// left; all of them know the pivot.
constexpr TextKernel kFactor{"linalg_hetrf", R"(
typedef T::S C;
typedef decltype(C().re) R;
struct Params { C* a; int* pivots; int* info; int64_t batch, n; };
TS_FN R size_of(C x) { return fabs(x.re) + fabs(x.im); }
struct Largest { R size; int64_t at; };
// The largest of f(first..last), the first of them where some are equal; -1 where there is none.
template <class F> TS_FN Largest largest(int64_t first, int64_t last, F f) {
  __shared__ R sizes[256];
  __shared__ int64_t places[256];
  R size = -1;
  int64_t at = -1;
  for (int64_t i = first + threadIdx.x; i < last; i += 256) {
    const R s = f(i);
    if (s > size) { size = s; at = i; }
  }
  sizes[threadIdx.x] = size;
  places[threadIdx.x] = at;
  __syncthreads();
  for (int w = 128; w > 0; w /= 2) {
    if (threadIdx.x < w) {
      const R s = sizes[threadIdx.x + w];
      const int64_t p = places[threadIdx.x + w];
      if (s > sizes[threadIdx.x] || (s == sizes[threadIdx.x] && p < places[threadIdx.x])) {
        sizes[threadIdx.x] = s;
        places[threadIdx.x] = p;
      }
    }
    __syncthreads();
  }
  const Largest out{sizes[0], places[0]};
  __syncthreads();
  return out;
}
extern "C" __global__ void __launch_bounds__(256) linalg_hetrf(const __grid_constant__ Params p) {
  const int64_t n = p.n;
  const R alpha = (R)0.64038820320220756872;  // (1 + sqrt(17)) / 8
  for (int64_t b = blockIdx.x; b < p.batch; b += gridDim.x) {
    C* a = p.a + b * n * n;
    #define AT(r, c) a[(c) * n + (r)]
    int wrong = 0;
    int64_t k = 0;
    while (k < n) {
      int step = 1;
      int64_t kp = k;
      const R own = fabs(AT(k, k).re);
      const Largest column = largest(k + 1, n, [&](int64_t i) { return size_of(AT(i, k)); });
      const R most = column.at < 0 ? R(0) : column.size;
      if ((own == 0 && most == 0) || isnan(own)) {
        if (wrong == 0) wrong = (int)k + 1;
        if (threadIdx.x == 0) {
          AT(k, k).im = 0;
          p.pivots[b * n + k] = (int)k + 1;
        }
        __syncthreads();
        ++k;
        continue;
      }
      if (own < alpha * most) {
        const int64_t m = column.at;
        const Largest row = largest(k, n, [&](int64_t i) {
          return i == m ? R(-1) : size_of(i < m ? AT(m, i) : AT(i, m));
        });
        const R beside = row.at < 0 ? R(0) : row.size;
        if (own >= alpha * most * (most / beside)) kp = k;
        else if (fabs(AT(m, m).re) >= alpha * beside) kp = m;
        else { kp = m; step = 2; }
      }
      const int64_t kk = k + step - 1;
      __syncthreads();
      if (kp != kk) {
        for (int64_t i = kp + 1 + threadIdx.x; i < n; i += 256) {
          const C t = AT(i, kk);
          AT(i, kk) = AT(i, kp);
          AT(i, kp) = t;
        }
        for (int64_t j = kk + 1 + threadIdx.x; j < kp; j += 256) {
          const C t = conj(AT(j, kk));
          AT(j, kk) = conj(AT(kp, j));
          AT(kp, j) = t;
        }
        if (threadIdx.x == 0) {
          AT(kp, kk) = conj(AT(kp, kk));
          const R r = AT(kk, kk).re;
          AT(kk, kk) = C(AT(kp, kp).re, R(0));
          AT(kp, kp) = C(r, R(0));
          if (step == 2) {
            AT(k, k).im = 0;
            const C t = AT(k + 1, k);
            AT(k + 1, k) = AT(kp, k);
            AT(kp, k) = t;
          }
        }
      } else if (threadIdx.x == 0) {
        AT(k, k).im = 0;
        if (step == 2) AT(k + 1, k + 1).im = 0;
      }
      __syncthreads();
      const int64_t first = k + step, left = n - first;
      R d11 = 0, d22 = 0, d = 0;
      C d21(0);
      if (step == 1) {
        d = 1 / AT(k, k).re;
      } else {
        const R size = hypot(AT(k + 1, k).re, AT(k + 1, k).im);
        d11 = AT(k + 1, k + 1).re / size;
        d22 = AT(k, k).re / size;
        d21 = scaled(AT(k + 1, k), 1 / size);
        d = 1 / (d11 * d22 - 1) / size;
      }
      for (int64_t e = threadIdx.x; e < left * left; e += 256) {
        const int64_t i = first + e % left, j = first + e / left;
        if (i < j) continue;
        const C x = AT(j, k);
        C v = AT(i, j);
        if (step == 1) {
          v = v - AT(i, k) * conj(scaled(x, d));
        } else {
          const C y = AT(j, k + 1);
          const C wk = scaled(scaled(x, d11) - d21 * y, d), wk1 = scaled(scaled(y, d22) - conj(d21) * x, d);
          v = v - (AT(i, k) * conj(wk) + AT(i, k + 1) * conj(wk1));
        }
        if (i == j) v.im = 0;
        AT(i, j) = v;
      }
      __syncthreads();
      for (int64_t j = first + threadIdx.x; j < n; j += 256) {
        const C x = AT(j, k);
        if (step == 1) {
          AT(j, k) = scaled(x, d);
        } else {
          const C y = AT(j, k + 1);
          AT(j, k) = scaled(scaled(x, d11) - d21 * y, d);
          AT(j, k + 1) = scaled(scaled(y, d22) - conj(d21) * x, d);
        }
      }
      if (threadIdx.x == 0) {
        const int pivot = step == 1 ? (int)kp + 1 : -(int)kp - 1;
        p.pivots[b * n + k] = pivot;
        if (step == 2) p.pivots[b * n + k + 1] = pivot;
      }
      __syncthreads();
      k += step;
    }
    if (threadIdx.x == 0) p.info[b] = wrong;
  }
})"};

// One column of a right side. Pivots that point nowhere are taken for none.
constexpr TextKernel kSolve{"linalg_ldl_solve", R"(
typedef T::A C;
template <class X> TS_FN X turned(X x) {
  if constexpr (HERMITIAN) return conj(x);
  else return x;
}
struct Params { const C* a; C* b; const int* pivots; int64_t n, k, columns, stride, ld, pivot_stride; };
// sum turned(a[i]) * b[i], by a tree.
TS_FN C product(const C* a, const C* b, int64_t n) {
  __shared__ C sums[256];
  C sum(0);
  for (int64_t i = threadIdx.x; i < n; i += 256) sum = sum + turned(a[i]) * b[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int w = 128; w > 0; w /= 2) {
    if (threadIdx.x < w) sums[threadIdx.x] = sums[threadIdx.x] + sums[threadIdx.x + w];
    __syncthreads();
  }
  const C out = sums[0];
  __syncthreads();
  return out;
}
TS_FN void exchange(C* b, int64_t i, int64_t j, int64_t n) {
  if (threadIdx.x == 0 && i != j && j >= 0 && j < n) {
    const C t = b[i];
    b[i] = b[j];
    b[j] = t;
  }
  __syncthreads();
}
extern "C" __global__ void __launch_bounds__(256) linalg_ldl_solve(const __grid_constant__ Params p) {
  const int64_t n = p.n;
  for (int64_t z = blockIdx.x; z < p.columns; z += gridDim.x) {
    const int64_t m = z / p.k;
    const C* a = p.a + m * p.stride;
    const int* pivots = p.pivots + m * p.pivot_stride;
    C* b = p.b + z * n;
    #define AT(r, c) a[(c) * p.ld + (r)]
    int64_t k = 0;
    while (k < n) {
      const bool two = pivots[k] < 0 && k + 1 < n;
      const int64_t last = k + two;
      exchange(b, last, (pivots[k] < 0 ? -(int64_t)pivots[k] : (int64_t)pivots[k]) - 1, n);
      const C x = b[k], y = b[last];
      for (int64_t i = last + 1 + threadIdx.x; i < n; i += 256)
        b[i] = two ? b[i] - (AT(i, k) * x + AT(i, k + 1) * y) : b[i] - AT(i, k) * x;
      __syncthreads();
      if (threadIdx.x == 0) {
        if (!two) {
          b[k] = x / AT(k, k);
        } else {
          const C off = AT(k + 1, k), up = AT(k, k) / turned(off), low = AT(k + 1, k + 1) / off;
          const C below = up * low - C(1), bx = x / turned(off), by = y / off;
          b[k] = (low * bx - by) / below;
          b[k + 1] = (up * by - bx) / below;
        }
      }
      __syncthreads();
      k = last + 1;
    }
    k = n - 1;
    while (k >= 0) {
      const bool two = pivots[k] < 0 && k > 0;
      const int64_t rest = n - 1 - k;
      const C x = product(&AT(k + 1, k), b + k + 1, rest);
      const C y = two ? product(&AT(k + 1, k - 1), b + k + 1, rest) : C(0);
      if (threadIdx.x == 0) {
        b[k] = b[k] - x;
        if (two) b[k - 1] = b[k - 1] - y;
      }
      __syncthreads();
      exchange(b, k, (pivots[k] < 0 ? -(int64_t)pivots[k] : (int64_t)pivots[k]) - 1, n);
      k -= 1 + two;
    }
  }
})"};

}  // namespace

Status factor_hermitian(Device& d, CUstream stream, DType dtype, void* a, int64_t batch, int64_t n,
                        int* pivots, int* info) {
  struct {
    void* a;
    int *pivots, *info;
    int64_t batch, n;
  } p{a, pivots, info, batch, n};
  return launch_text(d, stream, kFactor, {def("T", dtype)},
                     {std::min<int64_t>(batch, int64_t{d.multiprocessors} * 8), 256}, &p);
}

Status solve_ldl(Device& d, CUstream stream, DType dtype, bool hermitian, const void* a,
                 int64_t stride, int64_t ld, const int* pivots, int64_t pivot_stride, void* b,
                 int64_t batch, int64_t n, int64_t k) {
  struct {
    const void* a;
    void* b;
    const int* pivots;
    int64_t n, k, columns, stride, ld, pivot_stride;
  } p{a, b, pivots, n, k, batch * k, stride, ld, pivot_stride};
  return launch_text(d, stream, kSolve, {def("T", dtype), def("HERMITIAN", hermitian)},
                     {std::min<int64_t>(p.columns, int64_t{d.multiprocessors} * 8), 256}, &p);
}

}  // namespace tessera::cuda
