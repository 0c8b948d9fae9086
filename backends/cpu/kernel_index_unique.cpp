// Different values of a tensor, or different rows of a matrix.
#include <algorithm>

#include "kernels.h"
#include "scratch.h"
#include "sort_keys.h"

namespace tessera::cpu {

namespace {

// Groups of equal neighbours in an order: the first member of each, the group of each member, and
// how many are in each; what is not wanted is null.
struct Groups {
  int64_t *first, *inverse, *counts, *number;

  Groups(const KernelArgs& args)
      : first(data(args.outputs[0])),
        inverse(data(args.outputs[1])),
        counts(data(args.outputs[2])),
        number(data(args.outputs[3])) {}
  template <class Same>
  void find(const int64_t* order, int64_t n, Same&& same) {
    int64_t group = -1, begin = 0;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = order ? order[i] : i;
      if (i == 0 || !same(order ? order[i - 1] : i - 1, at)) {
        if (counts && group >= 0) counts[group] = i - begin;
        begin = i;
        first[++group] = at;
      }
      if (inverse) inverse[at] = group;
    }
    if (counts && group >= 0) counts[group] = n - begin;
    *number = group + 1;
  }

 private:
  static int64_t* data(const KernelTensor& t) {
    return t.numel > 0 ? static_cast<int64_t*>(t.data) : nullptr;
  }
};

template <class T>
Status unique_values_as(const KernelArgs& args) {
  using Key = typename KeyOf<T>::Key;
  const T* x = static_cast<const T*>(args.inputs[0].data);
  const int64_t n = args.inputs[0].numel;
  const size_t bytes = static_cast<size_t>(n);
  OutOfScratch failure;
  Scratch keys(bytes * sizeof(Key), failure), key_room(bytes * sizeof(Key), failure);
  Scratch order(bytes * sizeof(int64_t), failure), order_room(bytes * sizeof(int64_t), failure);
  Status s = failure.status("unique()");
  if (!s.ok()) return s;
  Key* k = static_cast<Key*>(keys.get());
  int64_t* o = static_cast<int64_t*>(order.get());
  for (int64_t i = 0; i < n; ++i) {
    k[i] = KeyOf<T>::to(x[i]);
    o[i] = i;
  }
  sort_keys(k, o, n, static_cast<Key*>(key_room.get()), static_cast<int64_t*>(order_room.get()));
  Groups(args).find(o, n, [&](int64_t a, int64_t b) {
    return KeyOf<T>::to(x[a]) == KeyOf<T>::to(x[b]) && !KeyOf<T>::is_nan(x[a]);
  });
  return {};
}

template <class T>
Status unique_rows_as(const KernelArgs& args) {
  const T* x = static_cast<const T*>(args.inputs[0].data);
  const int64_t n = args.inputs[0].sizes[0], m = args.inputs[0].sizes[1];
  auto same = [&](int64_t a, int64_t b) {
    for (int64_t j = 0; j < m; ++j) {
      const T v = x[a * m + j], w = x[b * m + j];
      if constexpr (is_complex_v<T>) {
        if (!(v == w)) return false;
      } else {
        if (KeyOf<T>::to(v) != KeyOf<T>::to(w) || KeyOf<T>::is_nan(v)) return false;
      }
    }
    return true;
  };
  if (!args.ints[0]) {
    Groups(args).find(nullptr, n, same);
    return {};
  }
  if constexpr (is_complex_v<T>) {
    return fail(Code::kUnsupported, "complex numbers have no order");
  } else {
    OutOfScratch failure;
    Scratch order(static_cast<size_t>(n) * sizeof(int64_t), failure);
    Status s = failure.status("unique()");
    if (!s.ok()) return s;
    int64_t* o = static_cast<int64_t*>(order.get());
    for (int64_t i = 0; i < n; ++i) o[i] = i;
    std::sort(o, o + n, [&](int64_t a, int64_t b) {
      for (int64_t j = 0; j < m; ++j) {
        const auto v = KeyOf<T>::to(x[a * m + j]), w = KeyOf<T>::to(x[b * m + j]);
        if (v != w) return v < w;
      }
      return a < b;  // of equal rows the first comes first
    });
    Groups(args).find(o, n, same);
    return {};
  }
}

}  // namespace

// inputs: dense values; outputs: the first position of each different value in their order, the
// number of the value of each element, how often it occurs, how many there are. The second and
// third may be empty: not wanted.
Status unique_values(const KernelArgs& args) {
  return with_type(args.inputs[0].dtype, [&]<class T>(std::type_identity<T>) -> Status {
    if constexpr (is_complex_v<T>)
      return fail(Code::kUnsupported, "complex numbers have no order");
    else
      return unique_values_as<T>(args);
  });
}

// The same of the rows of a dense matrix; ints: whether they are sorted first.
Status unique_rows(const KernelArgs& args) {
  return with_type(args.inputs[0].dtype, [&]<class T>(std::type_identity<T>) -> Status {
    return unique_rows_as<T>(args);
  });
}

TS_KERNEL("unique_values", unique_values)
TS_KERNEL("unique_rows", unique_rows)

}  // namespace tessera::cpu
