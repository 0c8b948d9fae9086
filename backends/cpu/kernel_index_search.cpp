// Positions in sorted sequences, and membership.
#include <algorithm>

#include "kernels.h"
#include "scratch.h"
#include "sort_keys.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kGrain = 4096;

template <class T>
auto comparable(T v) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>)
    return cast<float>(v);
  else
    return v;
}

// The first position whose value is not below (with `right`: is above) v. Comparisons with a NaN
// are false, so that one goes to the end.
template <class T>
int64_t position(const T* sorted, const int64_t* sorter, int64_t n, T v_, bool right) {
  const auto v = comparable(v_);
  int64_t first = 0;
  // Without a branch on the comparison, which nobody could foretell.
  while (n > 0) {
    const int64_t half = n / 2, mid = first + half;
    const auto at = comparable(sorted[sorter ? sorter[mid] : mid]);
    const bool before = !(right ? at > v : at >= v);
    first = before ? mid + 1 : first;
    n = before ? n - half - 1 : half;
  }
  return first;
}

template <class T>
void search(const KernelArgs& args) {
  const KernelTensor &sorted = args.inputs[0], &values = args.inputs[1], &out = args.outputs[0];
  const int64_t* sorter =
      args.num_inputs > 2 ? static_cast<const int64_t*>(args.inputs[2].data) : nullptr;
  const bool right = args.ints[0] != 0;
  const int64_t length = sorted.sizes[sorted.ndim - 1];
  // One sequence for all, or one for each row of values.
  const bool shared = sorted.ndim == 1;
  const int64_t row = shared ? values.numel : values.sizes[values.ndim - 1];
  parallel_for(0, values.numel, kGrain, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      const int64_t start = shared ? 0 : i / row * length;
      const int64_t at =
          position(static_cast<const T*>(sorted.data) + start, sorter ? sorter + start : nullptr,
                   length, static_cast<const T*>(values.data)[i], right);
      if (out.dtype == DType::kInt32)
        static_cast<int32_t*>(out.data)[i] = static_cast<int32_t>(at);
      else
        static_cast<int64_t*>(out.data)[i] = at;
    }
  });
}

template <class T>
Status isin_as(const KernelArgs& args) {
  using Key = typename KeyOf<T>::Key;
  const T* x = static_cast<const T*>(args.inputs[0].data);
  const T* set = static_cast<const T*>(args.inputs[1].data);
  const int64_t n = args.inputs[1].numel;
  uint8_t* out = static_cast<uint8_t*>(args.outputs[0].data);
  const bool invert = args.ints[0] != 0;
  OutOfScratch failure;
  Scratch keys(static_cast<size_t>(n) * sizeof(Key), failure);
  Scratch room(static_cast<size_t>(n) * sizeof(Key), failure);
  Status s = failure.status("isin()");
  if (!s.ok()) return s;
  Key* sorted = static_cast<Key*>(keys.get());
  int64_t known = 0;  // NaN is equal to nothing
  for (int64_t i = 0; i < n; ++i)
    if (!KeyOf<T>::is_nan(set[i])) sorted[known++] = KeyOf<T>::to(set[i]);
  sort_keys<Key>(sorted, nullptr, known, static_cast<Key*>(room.get()), nullptr);
  parallel_for(0, args.inputs[0].numel, kGrain, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      const Key k = KeyOf<T>::to(x[i]);
      bool found = false;
      if (known <= 16)
        for (int64_t j = 0; j < known; ++j) found |= sorted[j] == k;
      else
        found = std::binary_search(sorted, sorted + known, k);
      out[i] = (found && !KeyOf<T>::is_nan(x[i])) != invert;
    }
  });
  return {};
}

}  // namespace

// inputs: dense sorted sequences, dense values of the same dtype, a sorter of the sequences' shape
// or nothing; ints: right.
Status searchsorted(const KernelArgs& args) {
  return with_type(args.inputs[0].dtype, [&]<class T>(std::type_identity<T>) -> Status {
    if constexpr (is_complex_v<T>) {
      return fail(Code::kUnsupported, "complex numbers have no order");
    } else {
      search<T>(args);
      return {};
    }
  });
}

// inputs: dense elements, dense elements to look for; ints: invert.
Status isin(const KernelArgs& args) {
  return with_type(args.inputs[0].dtype, [&]<class T>(std::type_identity<T>) -> Status {
    if constexpr (is_complex_v<T>)
      return fail(Code::kUnsupported, "not implemented for complex numbers");
    else
      return isin_as<T>(args);
  });
}

TS_KERNEL("searchsorted", searchsorted)
TS_KERNEL("isin", isin)

}  // namespace tessera::cpu
