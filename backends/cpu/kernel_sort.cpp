// Stable sort along a dimension: values and where they were.
#include <algorithm>

#include "along.h"
#include "kernels.h"
#include "radix_sort.h"
#include "scratch.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kGrain = 4096;
constexpr int64_t kLong = 64 * 1024;  // lines from here on are sorted by all threads

template <class T>
struct Sorter {
  using P = PackedOf<T>;
  const Along in, values, indices;
  bool descending;

  // Working memory: packed numbers twice, then the line where it is not dense.
  size_t scratch_bytes() const {
    const size_t n = static_cast<size_t>(in.n);
    return 2 * n * sizeof(P) + (in.stride == 1 ? 0 : n * sizeof(T));
  }

  void pack_range(P* to, const T* x, int64_t b, int64_t e) const {
    for (int64_t i = b; i < e; ++i) to[i] = pack(x[i], descending, i);
  }
  void put_range(const P* sorted, const T* x, char* to, char* to_at, int64_t b, int64_t e) const {
    T* out = reinterpret_cast<T*>(to);
    int64_t* at = reinterpret_cast<int64_t*>(to_at);
    for (int64_t i = b; i < e; ++i) {
      const int64_t p = position_of(sorted[i]);
      out[i * values.stride] = x[p];
      at[i * indices.stride] = p;
    }
  }

  void sort(int64_t line, void* scratch, bool parallel) const {
    P* packed = static_cast<P*>(scratch);
    P* spare = packed + in.n;
    const T* x = reinterpret_cast<const T*>(in.line(line));
    if (in.stride != 1) {
      T* dense = reinterpret_cast<T*>(spare + in.n);
      gather_block(dense, x, 1, in.n, 0, in.stride, sizeof(T));
      x = dense;
    }
    char* to = values.line(line);
    char* to_at = indices.line(line);
    constexpr int kBytes = static_cast<int>(sizeof(T));
    if (!parallel) {
      pack_range(packed, x, 0, in.n);
      put_range(sort_packed(packed, spare, in.n, kBytes, false), x, to, to_at, 0, in.n);
      return;
    }
    parallel_for(0, in.n, kGrain, [&](int64_t b, int64_t e) { pack_range(packed, x, b, e); });
    const P* sorted = sort_packed(packed, spare, in.n, kBytes, true);
    parallel_for(0, in.n, kGrain,
                 [&](int64_t b, int64_t e) { put_range(sorted, x, to, to_at, b, e); });
  }

  Status run() const {
    OutOfScratch failure;
    if (in.n >= kLong && in.lines() < num_threads()) {
      Scratch scratch(scratch_bytes(), failure);
      if (scratch.get())
        for (int64_t line = 0; line < in.lines(); ++line) sort(line, scratch.get(), true);
      return failure.status("sort()");
    }
    parallel_for(0, in.lines(), std::max<int64_t>(1, kGrain / in.n), [&](int64_t b, int64_t e) {
      Scratch scratch(scratch_bytes(), failure);
      if (!scratch.get()) return;
      for (; b < e; ++b) sort(b, scratch.get(), false);
    });
    return failure.status("sort()");
  }
};

}  // namespace

// ints: dimension, descending. Outputs: values, indices.
Status sort(const KernelArgs& args) {
  const int64_t dim = args.ints[0];
  if (args.inputs[0].numel == 0) return {};
  const Along in(args.inputs[0], dim);
  if (in.n > (int64_t{1} << 32))
    return fail(Code::kUnsupported, "sort(): not implemented for more than 2^32 elements");
  return with_type(args.inputs[0].dtype, [&](auto type) -> Status {
    using T = typename decltype(type)::type;
    if constexpr (is_complex_v<T>)
      return fail(Code::kUnsupported, "sort(): not implemented for complex numbers");
    else
      return Sorter<T>{in, Along(args.outputs[0], dim), Along(args.outputs[1], dim),
                       args.ints[1] != 0}
          .run();
  });
}

TS_KERNEL("sort", sort)

}  // namespace tessera::cpu
