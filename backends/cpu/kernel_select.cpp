// Selections along a dimension by packed keys (packed_keys.h): topk, kthvalue, median, nanmedian
// and mode.
//
// Note [Equal elements]
// Which of several equal elements is named is open in PyTorch's documentation, and follows from its
// algorithms. In lines of up to kShortLine elements ours are the same ones, comparing keys alone;
// in longer ones positions count too, so that the first of equals is the smaller, and selection is
// several times faster.
#include <algorithm>

#include "along.h"
#include "kernels.h"
#include "radix_sort.h"
#include "scratch.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kGrain = 8 * 1024;
constexpr int64_t kShortLine = 512;

template <class P>
TS_INLINE bool key_less(P a, P b) {
  return key_part(a) < key_part(b);
}

// The lines of a tensor, one after the other in a thread's own buffer of packed numbers.
template <class T>
struct Lines {
  using P = PackedOf<T>;
  const Along in;

  size_t scratch_bytes(int64_t packed) const {
    const size_t dense = in.stride == 1 ? 0 : static_cast<size_t>(in.n) * sizeof(T);
    return static_cast<size_t>(packed) * sizeof(P) + dense;
  }
  // The line as dense elements; `dense` is the end of the scratch.
  const T* elements(int64_t line, void* dense) const {
    const T* x = reinterpret_cast<const T*>(in.line(line));
    if (in.stride == 1) return x;
    gather_block(dense, x, 1, in.n, 0, in.stride, sizeof(T));
    return static_cast<const T*>(dense);
  }

  // f(line, elements, buffer): the buffer holds `packed` numbers.
  template <class F>
  Status each(int64_t packed, const char* name, const F& f) const {
    OutOfScratch failure;
    parallel_for(0, in.lines(), std::max<int64_t>(1, kGrain / in.n), [&](int64_t b, int64_t e) {
      Scratch scratch(scratch_bytes(packed), failure);
      if (!scratch.get()) return;
      P* buffer = static_cast<P*>(scratch.get());
      for (; b < e; ++b) f(b, elements(b, buffer + packed), buffer);
    });
    return failure.status(name);
  }
};

// Brings the k-th smallest of n packed numbers, counted from 0, to its place: smaller ones before
// it, larger ones behind. The partition has no branch that depends on the data.
template <class P>
void place_nth(P* data, int64_t n, int64_t k) {
  for (int rounds = 0; n > 32 && rounds < 64; ++rounds) {
    P a = data[n / 4], b = data[n / 2], c = data[n - n / 4];
    const P pivot = std::max(std::min(a, b), std::min(std::max(a, b), c));
    int64_t below = 0;
    for (int64_t i = 0; i < n; ++i) {
      const P x = data[i];
      data[i] = data[below];
      data[below] = x;
      below += x < pivot;
    }
    if (k < below) {
      n = below;
    } else {
      data += below;
      n -= below;
      k -= below;
    }
  }
  std::nth_element(data, data + k, data + n);
}

// From here on a line is sorted as a whole.
constexpr bool takes_most(int64_t k, int64_t n) { return k * 8 > n; }

// The k smallest packed numbers of a line, in order. The buffer holds 2 n, or 4 k.
template <class T>
PackedOf<T>* smallest(const T* x, int64_t n, int64_t k, bool descending, PackedOf<T>* buffer) {
  using P = PackedOf<T>;
  if (takes_most(k, n) || n <= kShortLine) {
    for (int64_t i = 0; i < n; ++i) buffer[i] = pack(x[i], descending, i);
    if (n <= kShortLine) {
      if (k * 64 <= n) {
        std::partial_sort(buffer, buffer + k, buffer + n, key_less<P>);
      } else {
        std::nth_element(buffer, buffer + k - 1, buffer + n, key_less<P>);
        std::sort(buffer, buffer + k - 1, key_less<P>);
      }
      return buffer;
    }
    return sort_packed(buffer, buffer + n, n, static_cast<int>(sizeof(T)), false);
  }
  // Candidates are what is below the k-th smallest so far, which is found again each time that
  // the buffer has filled.
  P bound = ~P(0);
  int64_t have = 0;
  for (int64_t i = 0; i < n; ++i) {
    const P p = pack(x[i], descending, i);
    if (p >= bound) continue;
    buffer[have++] = p;
    if (have < 4 * k) continue;
    place_nth(buffer, have, k - 1);
    bound = buffer[k - 1];
    have = k;
  }
  if (k < have) place_nth(buffer, have, k - 1);
  std::sort(buffer, buffer + k);
  return buffer;
}

template <class T>
Status topk_as(const KernelArgs& args) {
  const int64_t k = args.ints[1];
  const bool largest = args.ints[2] != 0;
  const Lines<T> lines{Along(args.inputs[0], args.ints[0])};
  const Along values(args.outputs[0], args.ints[0]), indices(args.outputs[1], args.ints[0]);
  const int64_t n = lines.in.n;
  const int64_t packed = takes_most(k, n) || n <= kShortLine ? 2 * n : 4 * k;
  return lines.each(packed, "topk()", [&](int64_t line, const T* x, PackedOf<T>* buffer) {
    const PackedOf<T>* found = smallest(x, n, k, largest, buffer);
    T* to = reinterpret_cast<T*>(values.line(line));
    int64_t* at = reinterpret_cast<int64_t*>(indices.line(line));
    for (int64_t i = 0; i < k; ++i) {
      const int64_t p = position_of(found[i]);
      to[i * values.stride] = x[p];
      at[i * indices.stride] = p;
    }
  });
}

// One position of each line, chosen by `choose(elements, buffer)`.
template <class T, class F>
Status pick(const KernelArgs& args, int64_t packed, const char* name, const F& choose) {
  const Lines<T> lines{Along(args.inputs[0], args.ints[0])};
  T* values = static_cast<T*>(args.outputs[0].data);
  int64_t* indices = static_cast<int64_t*>(args.outputs[1].data);
  return lines.each(packed, name, [&](int64_t line, const T* x, PackedOf<T>* buffer) {
    const int64_t p = choose(x, buffer);
    values[line] = x[p];
    indices[line] = p;
  });
}

template <class T>
int64_t nth(const T* x, int64_t n, int64_t k, PackedOf<T>* buffer) {
  for (int64_t i = 0; i < n; ++i) buffer[i] = pack(x[i], false, i);
  if (n <= kShortLine)
    std::nth_element(buffer, buffer + k, buffer + n, key_less<PackedOf<T>>);
  else
    place_nth(buffer, n, k);
  return position_of(buffer[k]);
}

// Hoare's selection around the median of the first, the middle and the last.
template <class P>
void place_by_halves(P* data, int64_t n, int64_t k) {
  int64_t low = 0, high = n - 1;
  auto order = [&](int64_t a, int64_t b) {
    if (key_less(data[b], data[a])) std::swap(data[a], data[b]);
  };
  while (high > low + 1) {
    std::swap(data[low + (high - low) / 2], data[low + 1]);
    order(low + 1, high);
    order(low, high);
    order(low + 1, low);
    const P pivot = data[low];
    int64_t i = low + 1, j = high;
    while (true) {
      do ++i;
      while (key_less(data[i], pivot));
      do --j;
      while (key_less(pivot, data[j]));
      if (j < i) break;
      std::swap(data[i], data[j]);
    }
    std::swap(data[low], data[j]);
    if (j <= k) low = i;
    if (j >= k) high = j - 1;
  }
  if (high == low + 1) order(low, high);
}

template <class T>
Status kthvalue_as(const KernelArgs& args) {
  const int64_t n = Along(args.inputs[0], args.ints[0]).n, k = args.ints[1];
  return pick<T>(args, n, "kthvalue()", [=](const T* x, PackedOf<T>* buffer) {
    if (n > kShortLine) return nth(x, n, k - 1, buffer);
    for (int64_t i = 0; i < n; ++i) buffer[i] = pack(x[i], false, i);
    place_by_halves(buffer, n, k - 1);
    return position_of(buffer[k - 1]);
  });
}

// The lower of the two in the middle. A NaN is the median of its line, unless they do not count.
template <class T>
Status median_as(const KernelArgs& args) {
  const int64_t n = Along(args.inputs[0], args.ints[0]).n;
  const bool skip_nan = args.ints[1] != 0;
  return pick<T>(args, n, "median()", [=](const T* x, PackedOf<T>* buffer) {
    int64_t nans = 0, first = 0;
    for (int64_t i = n - 1; i >= 0; --i) {
      const bool nan = KeyOf<T>::is_nan(x[i]);
      nans += nan;
      first = nan ? i : first;
    }
    if (nans == n || (nans > 0 && !skip_nan)) return first;
    return nth(x, n, (n - nans - 1) / 2, buffer);
  });
}

template <class T>
Status mode_as(const KernelArgs& args) {
  const int64_t n = Along(args.inputs[0], args.ints[0]).n;
  return pick<T>(args, 2 * n, "mode()", [=](const T* x, PackedOf<T>* buffer) {
    for (int64_t i = 0; i < n; ++i) buffer[i] = pack(x[i], false, i);
    const PackedOf<T>* sorted = buffer;
    if (n <= 8 * kShortLine)
      std::sort(buffer, buffer + n, key_less<PackedOf<T>>);
    else
      sorted = sort_packed(buffer, buffer + n, n, static_cast<int>(sizeof(T)), false);
    int64_t most = 0, best = 0, begin = 0;
    for (int64_t i = 0; i < n; ++i) {
      if (i + 1 < n && key_part(sorted[i + 1]) == key_part(sorted[i])) continue;
      if (i + 1 - begin > most) {
        most = i + 1 - begin;
        best = position_of(sorted[i]);
      }
      begin = i + 1;
    }
    return best;
  });
}

template <class F>
Status select(const KernelArgs& args, const char* name, F&& f) {
  if (args.outputs[0].numel == 0) return {};
  if (args.inputs[0].numel / args.outputs[1].numel > (int64_t{1} << 32))
    return fail(Code::kUnsupported, "%s: not implemented for more than 2^32 elements", name);
  return with_type(args.inputs[0].dtype, [&](auto type) -> Status {
    if constexpr (is_complex_v<typename decltype(type)::type>)
      return fail(Code::kUnsupported, "%s: not implemented for complex numbers", name);
    else
      return f(type);
  });
}

}  // namespace

// ints: dimension, k, largest.
Status topk(const KernelArgs& args) {
  return select(args, "topk()",
                [&](auto type) { return topk_as<typename decltype(type)::type>(args); });
}
// ints: dimension, k from 1.
Status kthvalue(const KernelArgs& args) {
  return select(args, "kthvalue()",
                [&](auto type) { return kthvalue_as<typename decltype(type)::type>(args); });
}
// ints: dimension, do NaNs not count?
Status median(const KernelArgs& args) {
  return select(args, "median()",
                [&](auto type) { return median_as<typename decltype(type)::type>(args); });
}
Status mode(const KernelArgs& args) {
  return select(args, "mode()",
                [&](auto type) { return mode_as<typename decltype(type)::type>(args); });
}

TS_KERNEL("topk", topk)
TS_KERNEL("kthvalue", kthvalue)
TS_KERNEL("median", median)
TS_KERNEL("mode", mode)

}  // namespace tessera::cpu
