#include "reduce_text.h"

#include "prelude.h"

namespace tessera::cuda {
namespace {

// The types: A of what is accumulated, S of an element as it is loaded, R as a result is stored.
std::string types_text(const ReducePass& p, const std::string& s, const std::string& r) {
  const std::string a = register_type(p.cls);
  return "typedef " + a + " A; typedef " + a + " T; typedef " + s + " S; typedef " + r + " R;\n" +
         (p.wide ? "typedef int64_t O; typedef uint64_t U;\n"
                 : "typedef int32_t O; typedef uint32_t U;\n");
}

// The four expressions of the body, and how an accumulator goes to another thread.
std::string body_text(const ReducePass& p) {
  const ReduceBody& b = *p.body;
  std::string out = std::string("TS_FN A init_() { return (A)(") + b.init_text + "); }\n";
  out += std::string("TS_FN A map_(A a) { return (A)(") + b.map_text + "); }\n";
  out += std::string("TS_FN A combine_(A x, A y) { return (A)(") + b.combine_text + "); }\n";
  out += std::string("TS_FN A finish_(A x, A n) { return (A)(") + b.finish_text + "); }\n";
  std::string shift = "__shfl_down_sync(0xffffffffu, ";
  std::string moved = shift + "x, d, w)";
  if (p.cls == RegClass::kB8) moved = shift + "(int)x, d, w) != 0";
  if (is_complex(p.cls)) moved = "A(" + shift + "x.re, d, w), " + shift + "x.im, d, w))";
  return out + "TS_FN A down(A x, int d, int w) { return " + moved + "; }\n";
}

// What an element `s` contributes, and what an accumulator `x` of n elements leaves.
std::string contribution_text(const ReducePass& p) {
  const RegClass from = reg_class(p.in_dtype);
  const std::string value = load_text(p.in_dtype, "s");
  return "map_(" +
         (reg_class(p.out_dtype) == p.cls ? convert_text(from, p.out_dtype, value)
                                          : convert_text(from, p.cls, value)) +
         ")";
}
std::string result_text(const ReducePass& p) {
  return store_text(p.out_dtype, convert_text(p.cls, p.out_dtype, "finish_(x, n)"));
}

std::string number(const char* name, int64_t value) {
  return std::string("#define ") + name + " " + std::to_string(value) + "\n";
}

// One form: what it is, is known to the compiler.
std::string exact_text(const ReducePass& p, int batch_rows) {
  const std::string a = register_type(p.cls);
  std::string out = types_text(p, p.from_partials ? a : storage_type(p.in_dtype),
                               p.to_partials ? a : storage_type(p.out_dtype));
  out += body_text(p);
  out += "TS_FN A take(S s) { return " + (p.from_partials ? "s" : contribution_text(p)) + "; }\n";
  out += "TS_FN R result(A x, A n) { return " + (p.to_partials ? "x" : result_text(p)) + "; }\n";
  if (batch_rows) out += number("BATCH", batch_rows);
  out +=
      number("WORDS", batch_rows ? kReduceHead : kReduceWords) + number("VECTOR", p.vector_loads);
  return out + "enum { V = " + std::to_string(p.vec) +
         ", MOST = V, G = " + std::to_string(p.group) + ", KEPT = " + std::to_string(p.kept_ndim) +
         ", REDUCED = " + std::to_string(p.reduced_ndim) + " };\n" + R"(
struct Params { unsigned long long w[WORDS]; JOIN_FIELDS };
typedef const S* In;
TS_FN In source(const Params& p) { return (const S*)p.w[0]; }
TS_FN void put(const Params& p, int64_t at, A x) {
  ((R*)p.w[1])[at] = result(x, (A)(int64_t)p.w[6]);
}
)";
}

// All forms: what one is, its parameters tell. Elements are loaded as what they contribute.
std::string general_body(const ReducePass& p) {
  ReducePass any = p;
  any.wide = true;
  std::string out = types_text(any, "A", storage_type(p.out_dtype)) + body_text(p);
  out += "typedef " + std::string(storage_type(p.in_dtype)) + " E;\n";
  out += "TS_FN A take(A x) { return x; }\n";
  out += "TS_FN A contribution(E s) { return " + contribution_text(p) + "; }\n";
  out += "TS_FN R result(A x, A n) { return " + result_text(p) + "; }\n";
  out += number("WORDS", kReduceWords) + number("MOST", kReduceMostVec);
  return out + R"(#define VECTOR 0
#define V ((int)(p.w[7] & 255))
#define G ((int)(p.w[7] >> 8 & 65535))
#define KEPT ((int)(p.w[7] >> 24 & 255))
#define REDUCED ((int)(p.w[7] >> 32 & 255))
#define COLUMNS (p.w[7] >> 40 & 1)
#define FROM_PARTIALS (p.w[7] >> 41 & 1)
#define TO_PARTIALS (p.w[7] >> 42 & 1)
struct Params { unsigned long long w[WORDS]; };
struct In {
  const char* at;
  bool partials;
  TS_MEMBER In operator+(int64_t o) const {
    return {at + o * (int64_t)(partials ? sizeof(A) : sizeof(E)), partials};
  }
  TS_MEMBER A operator[](int64_t j) const {
    return partials ? ((const A*)at)[j] : contribution(((const E*)at)[j]);
  }
};
TS_FN In source(const Params& p) { return {(const char*)p.w[0], FROM_PARTIALS != 0}; }
TS_FN void put(const Params& p, int64_t at, A x) {
  if (TO_PARTIALS)
    ((A*)p.w[1])[at] = x;
  else
    ((R*)p.w[1])[at] = result(x, (A)(int64_t)p.w[6]);
}
)";
}

constexpr const char* kShared = R"(
#ifdef BATCH  // one dense run each
TS_FN int64_t kept_offset(const Params&, int64_t, int) { return 0; }
TS_FN O reduced_offset(const Params&, O j) { return j; }
#else
// Offset of result i over the first `dims` kept dimensions.
TS_FN int64_t kept_offset(const Params& p, int64_t i, const int dims) {
  int64_t o = 0;
  #pragma unroll
  for (int d = dims - 1; d > 0; --d) {
    int64_t size = (int64_t)p.w[8 + d];
    o += i % size * (int64_t)p.w[8 + DIMS + d];
    i /= size;
  }
  return dims > 0 ? o + i * (int64_t)p.w[8 + DIMS] : 0;
}
TS_FN O reduced_offset(const Params& p, O j) {
  O o = 0;
  U i = (U)j;
  #pragma unroll
  for (int d = REDUCED - 1; d > 0; --d) {
    U size = (U)p.w[8 + 2 * DIMS + d];
    o += (O)(i % size) * (O)p.w[8 + 3 * DIMS + d];
    i /= size;
  }
  return REDUCED > 0 ? o + (O)i * (O)p.w[8 + 3 * DIMS] : 0;
}
#endif
struct Elements { S v[MOST]; };
// V elements side by side.
TS_FN Elements load(const Params& p, In at) {
  Elements x;
#if VECTOR
  Vec<S, V> y = *(const Vec<S, V>*)at;
  #pragma unroll
  for (int v = 0; v < V; ++v) x.v[v] = y.v[v];
#else
  #pragma unroll
  for (int v = 0; v < V; ++v) x.v[v] = at[v];
#endif
  return x;
}
)";

constexpr const char* kRows = R"(
TS_FN void reduce_rows(const Params& p, int64_t block) {
  const int lane = threadIdx.x % G;
  const int64_t item = block * (THREADS / G) + threadIdx.x / G;
  const int64_t splits = (int64_t)p.w[5];
  const bool live = item < (int64_t)p.w[2] * splits;
  const int64_t row = splits == 1 ? item : item / splits, split = splits == 1 ? 0 : item % splits;
  const int64_t n = (int64_t)p.w[3], chunk = (int64_t)p.w[4];
  const O begin = (O)(split * chunk);
  const O end = live ? (O)min((int64_t)begin + chunk, n) : begin;
#ifdef BEFORE  // then a row is one dense run
  auto elements = [&](O j) {
    Elements x;
    Before::make(p.before, row, (int64_t)j, x.v);
    return x;
  };
  auto one = [&](O j) {
    S x[1];
    Before::make(p.before, row, (int64_t)j, x);
    return x[0];
  };
#else
  const In in = source(p) + (live ? kept_offset(p, row, KEPT) : 0);
  auto elements = [&](O j) { return load(p, in + (V > 1 ? j : reduced_offset(p, j))); };
  auto one = [&](O j) { return in[j]; };
#endif
  A acc[MOST];
  #pragma unroll
  for (int v = 0; v < V; ++v) acc[v] = init_();
  O j = begin + lane * V;
  for (; j + 3 * G * V + V <= end; j += 4 * G * V) {
    Elements x[4];
    #pragma unroll
    for (int u = 0; u < 4; ++u) {
      O k = j + u * G * V;
      x[u] = elements(k);
    }
    #pragma unroll
    for (int u = 0; u < 4; ++u)
      #pragma unroll
      for (int v = 0; v < V; ++v) acc[v] = combine_(acc[v], take(x[u].v[v]));
  }
  for (; j < end; j += G * V) {
    if (j + V <= end) {
      Elements x = elements(j);
      #pragma unroll
      for (int v = 0; v < V; ++v) acc[v] = combine_(acc[v], take(x.v[v]));
    } else {
      #pragma unroll
      for (int v = 0; v < V; ++v)
        if (j + v < end) acc[v] = combine_(acc[v], take(one(j + v)));
    }
  }
  #pragma unroll
  for (int h = V / 2; h > 0; h /= 2)
    #pragma unroll
    for (int v = 0; v < h; ++v) acc[v] = combine_(acc[v], acc[v + h]);
  A x = acc[0];
  const int W = G < 32 ? G : 32;
  #pragma unroll
  for (int d = W / 2; d > 0; d /= 2) x = combine_(x, down(x, d, W));
  if (G > 32) {
    const int WARPS = G > 32 ? G / 32 : 1;
    __shared__ A parts[THREADS / 32];
    if (lane % 32 == 0) parts[lane / 32] = x;
    __syncthreads();
    if (lane < 32) {
      x = lane < WARPS ? parts[lane] : init_();
      #pragma unroll
      for (int d = WARPS / 2; d > 0; d /= 2) x = combine_(x, down(x, d, WARPS));
    }
  }
  if (live && lane == 0) {
#ifdef AFTER
    const R made[1] = {result(x, (A)(int64_t)p.w[6])};
    After::take(p.after, item, 0, made);
    if (!p.w[1]) return;
#endif
    put(p, item, x);
  }
}
)";

constexpr const char* kRowsEntry = R"(
#ifdef BATCH
struct Row { unsigned long long first; Params p; };
struct Batch { unsigned long long count; Row rows[BATCH]; };
extern "C" __global__ void __launch_bounds__(THREADS) reduce(const __grid_constant__ Batch b) {
  int row = 0, end = (int)b.count;
  while (end - row > 1) {
    const int middle = (row + end) / 2;
    if (b.rows[middle].first <= blockIdx.x) row = middle; else end = middle;
  }
  reduce_rows(b.rows[row].p, blockIdx.x - (int64_t)b.rows[row].first);
}
#else
extern "C" __global__ void __launch_bounds__(THREADS) reduce(const __grid_constant__ Params p) {
  reduce_rows(p, blockIdx.x);
}
#endif
)";

constexpr const char* kColumns = R"(
TS_FN void reduce_columns(const Params& p) {
  const int Y = THREADS / G;
  const int tx = threadIdx.x % G, ty = threadIdx.x / G;
  const int64_t across = (int64_t)p.w[8 + KEPT - 1], per = (across + G * V - 1) / (G * V);
  const int64_t outer = blockIdx.x / per, c = ((blockIdx.x % per) * G + tx) * V;
  const bool live = c < across;
  const int64_t n = (int64_t)p.w[3], chunk = (int64_t)p.w[4];
  const O begin = (O)(blockIdx.y * chunk);
  const O end = live ? (O)min((int64_t)begin + chunk, n) : begin;
  const In in = source(p) + (kept_offset(p, outer, KEPT - 1) + (live ? c : 0));
  A acc[MOST];
  #pragma unroll
  for (int v = 0; v < V; ++v) acc[v] = init_();
  O j = begin + ty;
  for (; j + 3 * Y < end; j += 4 * Y) {
    Elements x[4];
    #pragma unroll
    for (int u = 0; u < 4; ++u) x[u] = load(p, in + reduced_offset(p, j + u * Y));
    #pragma unroll
    for (int u = 0; u < 4; ++u)
      #pragma unroll
      for (int v = 0; v < V; ++v) acc[v] = combine_(acc[v], take(x[u].v[v]));
  }
  for (; j < end; j += Y) {
    Elements x = load(p, in + reduced_offset(p, j));
    #pragma unroll
    for (int v = 0; v < V; ++v) acc[v] = combine_(acc[v], take(x.v[v]));
  }
  __shared__ A parts[MOST][THREADS];
  #pragma unroll
  for (int v = 0; v < V; ++v) parts[v][threadIdx.x] = acc[v];
  #pragma unroll
  for (int h = Y / 2; h > 0; h /= 2) {
    __syncthreads();
    if (ty < h)
      #pragma unroll
      for (int v = 0; v < V; ++v) {
        acc[v] = combine_(acc[v], parts[v][threadIdx.x + h * G]);
        parts[v][threadIdx.x] = acc[v];
      }
  }
  if (live && ty == 0) {
    const int64_t out = blockIdx.y * (int64_t)p.w[2] + outer * across + c;
    #pragma unroll
    for (int v = 0; v < V; ++v) put(p, out + v, acc[v]);
  }
}
)";

constexpr const char* kColumnsEntry = R"(
extern "C" __global__ void __launch_bounds__(THREADS) reduce(const __grid_constant__ Params p) {
  reduce_columns(p);
}
)";

constexpr const char* kGeneralEntry = R"(
extern "C" __global__ void __launch_bounds__(THREADS) reduce_any(const __grid_constant__ Params p) {
  if (COLUMNS) reduce_columns(p); else reduce_rows(p, blockIdx.x);
}
)";

}  // namespace

namespace {
std::string prelude_of(const ReducePass& p) {
  return prelude_text(is_complex(p.cls) || is_complex(reg_class(p.in_dtype)) ||
                      is_complex(reg_class(p.out_dtype)));
}
std::string sizes_text() {
  return "enum { THREADS = " + std::to_string(kReduceThreads) +
         ", DIMS = " + std::to_string(kReduceMaxDims) + " };\n";
}
}  // namespace

std::string reduce_text(const ReducePass& p, const std::string& joins, int batch_rows) {
  return prelude_of(p) + joins + sizes_text() + exact_text(p, batch_rows) + kShared +
         (p.columns ? std::string(kColumns) + kColumnsEntry : std::string(kRows) + kRowsEntry) +
         "}\n";
}

std::string general_reduce_text(const ReducePass& p) {
  return prelude_of(p) + sizes_text() + general_body(p) + kShared + kRows + kColumns +
         kGeneralEntry + "}\n";
}

}  // namespace tessera::cuda
