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
  const Along in, values, indices;
  bool descending;

  // Working memory: packed numbers twice, then the line where it is not dense.
  size_t scratch_bytes() const {
    const size_t n = static_cast<size_t>(in.n);
    return 2 * n * sizeof(PackedOf<T>) + (in.stride == 1 ? 0 : n * sizeof(T));
  }

  // Calls f(b, e) on parts of the line.
  template <class F>
  void parts(bool parallel, const F& f) const {
    if (parallel)
      parallel_for(0, in.n, kGrain, f);
    else
      f(0, in.n);
  }

  // Packs by `pack_at(i)`, sorts `bytes` bytes of keys and writes the result.
  template <class P, class F>
  void sort_by(const T* x, int64_t line, void* scratch, int bytes, bool parallel,
               const F& pack_at) const {
    P* packed = static_cast<P*>(scratch);
    parts(parallel, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) packed[i] = pack_at(i);
    });
    const P* sorted = sort_packed(packed, packed + in.n, in.n, bytes, parallel);
    T* to = reinterpret_cast<T*>(values.line(line));
    int64_t* at = reinterpret_cast<int64_t*>(indices.line(line));
    parts(parallel, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        const int64_t p = position_of(sorted[i]);
        to[i * values.stride] = x[p];
        at[i * indices.stride] = p;
      }
    });
  }

  void sort(int64_t line, void* scratch, bool parallel) const {
    const T* x = reinterpret_cast<const T*>(in.line(line));
    if (in.stride != 1) {
      T* dense = reinterpret_cast<T*>(static_cast<PackedOf<T>*>(scratch) + 2 * in.n);
      gather_block(dense, x, 1, in.n, 0, in.stride, sizeof(T));
      x = dense;
    }
    if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, int32_t>) {
      // Integers are mostly of a small range, which needs fewer bytes.
      const auto [low_at, high_at] = std::minmax_element(x, x + in.n);
      const uint64_t low = KeyOf<T>::to(*low_at), high = KeyOf<T>::to(*high_at);
      if (high - low <= 0xffffffffu) {
        const int bytes = (static_cast<int>(std::bit_width(high - low)) + 7) / 8;
        return sort_by<uint64_t>(x, line, scratch, bytes, parallel, [=, this](int64_t i) {
          const uint64_t key = KeyOf<T>::to(x[i]);
          return (descending ? high - key : key - low) << 32 | static_cast<uint32_t>(i);
        });
      }
    }
    sort_by<PackedOf<T>>(x, line, scratch, static_cast<int>(sizeof(T)), parallel,
                         [=, this](int64_t i) { return pack(x[i], descending, i); });
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
