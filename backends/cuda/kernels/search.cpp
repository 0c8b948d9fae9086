// Positions in sorted sequences, and membership.
#include <bit>

#include "../kernels.h"
#include "../text.h"

namespace tessera::cuda {
namespace {

// The first position whose value is not below (with RIGHT: is above) v. Comparisons with a NaN are
// false, so that one goes to the end.
constexpr TextKernel kSearch{"searchsorted", R"(
struct Params { const T::S *sorted, *values; const int64_t* sorter; O::S* out; int64_t n, row, length; };
extern "C" __global__ void __launch_bounds__(256) searchsorted(const __grid_constant__ Params p) {
  for (int64_t i = thread(); i < p.n; i += threads()) {
    const int64_t start = p.row > 0 ? i / p.row * p.length : 0;
    const T::S* sorted = p.sorted + start;
    const T::A v = T::ld(p.values[i]);
    int64_t first = 0, n = p.length;
    while (n > 0) {
      const int64_t half = n / 2;
      int64_t mid = first + half;
      if constexpr (SORTER) {
        mid = p.sorter[start + mid];
        if (mid < 0 || mid >= p.length) mid = 0;  // the caller has checked; never read elsewhere
      }
      const T::A at = T::ld(sorted[mid]);
      const bool before = !(RIGHT ? at > v : at >= v);
      first = before ? first + half + 1 : first;
      n = before ? n - half - 1 : half;
    }
    p.out[i] = (O::S)first;
  }
}
)"};

Status run_searchsorted(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor &sorted = args.inputs[0], &values = args.inputs[1], &out = args.outputs[0];
  if (is_complex(sorted.dtype)) return fail(Code::kUnsupported, "complex numbers have no order");
  if (values.numel == 0) return ok();
  const bool sorter = args.num_inputs > 2;
  struct {
    void *sorted, *values, *sorter, *out;
    int64_t n, row, length;
  } p{sorted.data,
      values.data,
      sorter ? args.inputs[2].data : nullptr,
      out.data,
      values.numel,
      sorted.ndim == 1 ? 0 : values.sizes[values.ndim - 1],
      sorted.sizes[sorted.ndim - 1]};
  return launch_text(d, stream, kSearch,
                     {def("T", sorted.dtype), def("O", out.dtype), def("SORTER", sorter),
                      def("RIGHT", args.ints[0] != 0)},
                     {fill_blocks(d, p.n), 256}, &p);
}

constexpr TextKernel kIsIn{"isin", R"(
struct Params { const T::S *x, *set; unsigned char* out; int64_t n, known; };
extern "C" __global__ void __launch_bounds__(256) isin(const __grid_constant__ Params p) {
  for (int64_t i = thread(); i < p.n; i += threads()) {
    const T::A v = T::ld(p.x[i]);
    bool found = false;
    for (int64_t k = 0; k < p.known; ++k) found |= T::ld(p.set[k]) == v;  // no NaN is equal
    p.out[i] = found != (bool)INVERT;
  }
}
)"};

// The set as a table with open addresses. The word that marks a free place may be a value too: that
// one has a place of its own behind the table.
constexpr const char* kTable = R"(
struct Params { const T::S* x; unsigned char* out; unsigned long long* table; int64_t n, mask; };
typedef unsigned long long Word;
constexpr Word kFree = ~0ull;
TS_FN Word key_of(T::A v) {
  if constexpr (std::is_same_v<T::A, float>) return v == 0 ? 0 : __float_as_uint(v);
  else if constexpr (std::is_same_v<T::A, double>) return v == 0 ? 0 : (Word)__double_as_longlong(v);
  else return (Word)v;
}
TS_FN int64_t place(Word key, int64_t mask) {
  key = (key ^ key >> 32) * 0x9e3779b97f4a7c15ull;
  return (int64_t)(key ^ key >> 29) & mask;
}
)";
constexpr const char* kFill = R"(
extern "C" __global__ void __launch_bounds__(256) isin_table(const __grid_constant__ Params p) {
  for (int64_t i = thread(); i < p.n; i += threads()) {
    const T::A v = T::ld(p.x[i]);
    if (v != v) continue;
    const Word key = key_of(v);
    if (key == kFree) { p.table[p.mask + 1] = 1; continue; }
    for (int64_t at = place(key, p.mask);; at = (at + 1) & p.mask) {
      Word seen = *(volatile Word*)(p.table + at);
      if (seen == kFree) seen = atomicCAS(p.table + at, kFree, key);
      if (seen == kFree || seen == key) break;
    }
  }
}
)";
constexpr const char* kLookUp = R"(
extern "C" __global__ void __launch_bounds__(256) isin_look_up(const __grid_constant__ Params p) {
  for (int64_t i = thread(); i < p.n; i += threads()) {
    const T::A v = T::ld(p.x[i]);
    const Word key = key_of(v);
    bool found = false;
    if (key == kFree) found = p.table[p.mask + 1] == 1;
    else if (v == v)
      for (int64_t at = place(key, p.mask); !found && p.table[at] != kFree; at = (at + 1) & p.mask)
        found = p.table[at] == key;
    p.out[i] = found != (bool)INVERT;
  }
}
)";
constexpr int64_t kFew = 16;

Status run_isin(Device& d, CUstream stream, const KernelArgs& args) {
  static const auto& fill_text = *new std::string(std::string(kTable) + kFill);
  static const auto& look_up_text = *new std::string(std::string(kTable) + kLookUp);
  const KernelTensor &x = args.inputs[0], &set = args.inputs[1], &out = args.outputs[0];
  if (is_complex(x.dtype)) return fail(Code::kUnsupported, "not implemented for complex numbers");
  if (x.numel == 0) return ok();
  const bool invert = args.ints[0] != 0;
  if (set.numel <= kFew) {
    struct {
      void *x, *set, *out;
      int64_t n, known;
    } p{x.data, set.data, out.data, x.numel, set.numel};
    return launch_text(d, stream, kIsIn, {def("T", x.dtype), def("INVERT", invert)},
                       {fill_blocks(d, x.numel), 256}, &p);
  }
  const int64_t places = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(set.numel) * 2));
  Scratch table(d, stream);
  const size_t bytes = static_cast<size_t>(places + 1) * 8;
  TS_TRY(table.take(bytes));
  TS_TRY(check(d, driver().cuMemsetD8Async(table.address(), 0xff, bytes, stream), "isin"));
  struct {
    void *x, *out;
    CUdeviceptr table;
    int64_t n, mask;
  } p{set.data, nullptr, table.address(), set.numel, places - 1};
  const TextKernel fill{"isin_table", fill_text.c_str()};
  TS_TRY(launch_text(d, stream, fill, {def("T", x.dtype)}, {fill_blocks(d, p.n), 256}, &p));
  p.x = x.data;
  p.out = out.data;
  p.n = x.numel;
  const TextKernel look_up{"isin_look_up", look_up_text.c_str()};
  return launch_text(d, stream, look_up, {def("T", x.dtype), def("INVERT", invert)},
                     {fill_blocks(d, p.n), 256}, &p);
}

TS_CUDA_KERNEL("searchsorted", run_searchsorted)
TS_CUDA_KERNEL("isin", run_isin)

}  // namespace
}  // namespace tessera::cuda
