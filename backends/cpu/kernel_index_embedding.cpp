// Rows of a table: brought to a norm, and the largest elements of bags of them.
#include <algorithm>
#include <cmath>

#include "convert_scalar.h"
#include "index_range.h"
#include "scratch.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

template <class T>
double norm_of(const T* row, int64_t n, int64_t stride, double p) {
  double sum = 0;
  for (int64_t j = 0; j < n; ++j) {
    const double v = std::abs(cast<double>(row[j * stride]));
    if (std::isinf(p))
      sum = std::max(sum, v);
    else
      sum += p == 2 ? v * v : p == 1 ? v : std::pow(v, p);
  }
  if (std::isinf(p) || p == 1) return sum;
  return p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / p);
}

template <class T>
Status renorm_as(const KernelArgs& args) {
  const KernelTensor &table = args.outputs[0], &index = args.inputs[0];
  const double most = args.doubles[0], p = args.doubles[1];
  const int64_t rows = table.sizes[0], cols = table.sizes[1];
  OutOfScratch failure;
  Scratch seen_room(static_cast<size_t>(rows), failure);
  Status s = failure.status("embedding_renorm_()");
  if (!s.ok()) return s;
  uint8_t* seen = static_cast<uint8_t*>(seen_room.get());
  std::fill_n(seen, rows, uint8_t{0});
  const IndexReader reader(index);
  for (int64_t i = 0; i < index.numel; ++i) seen[reader.at(i)] = 1;
  T* data = static_cast<T*>(table.data);
  parallel_for(0, rows, std::max<int64_t>(1, (1 << 13) / std::max<int64_t>(1, cols)),
               [&](int64_t b, int64_t e) {
                 for (int64_t r = b; r < e; ++r) {
                   if (!seen[r]) continue;
                   T* row = data + r * table.strides[0];
                   const double norm = norm_of(row, cols, table.strides[1], p);
                   if (!(norm > most)) continue;
                   const double scale = most / (norm + 1e-7);
                   for (int64_t j = 0; j < cols; ++j) {
                     T& v = row[j * table.strides[1]];
                     v = cast<T>(cast<double>(v) * scale);
                   }
                 }
               });
  return {};
}

template <class T>
void bag_max_as(const KernelArgs& args) {
  using F = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const KernelTensor &table = args.inputs[0], &index = args.inputs[1], &bags = args.inputs[2];
  const T* data = static_cast<const T*>(table.data);
  const int64_t* at = static_cast<const int64_t*>(index.data);
  const int64_t* bag = static_cast<const int64_t*>(bags.data);
  int64_t* out = static_cast<int64_t*>(args.outputs[0].data);
  const int64_t cols = table.sizes[1];
  std::fill_n(out, args.outputs[0].numel, int64_t{-1});
  for (int64_t i = 0; i < index.numel; ++i) {
    if (bag[i] < 0) continue;
    int64_t* best = out + bag[i] * cols;
    const T* row = data + at[i] * table.strides[0];
    for (int64_t j = 0; j < cols; ++j) {
      const int64_t step = j * table.strides[1];
      if (best[j] < 0 || cast<F>(row[step]) > cast<F>(data[best[j] * table.strides[0] + step]))
        best[j] = at[i];
    }
  }
}

}  // namespace

// outputs: the table; inputs: which of its rows; doubles: the largest norm, its kind.
Status embedding_renorm(const KernelArgs& args) {
  Status s = check_indices(args.inputs[0], 0, args.outputs[0].sizes[0], IndexError::kSelect);
  if (!s.ok()) return s;
  return with_type(args.outputs[0].dtype, [&]<class T>(std::type_identity<T>) -> Status {
    if constexpr (is_complex_v<T> || std::is_integral_v<T>)
      return fail(Code::kUnsupported, "embedding_renorm_(): not implemented for this dtype");
    else
      return renorm_as<T>(args);
  });
}

// inputs: a table, dense row numbers, the bag of each, -1 for none; outputs: for each bag and
// column the row with the largest element, -1 for an empty bag.
Status embedding_bag_max(const KernelArgs& args) {
  Status s = check_indices(args.inputs[1], 0, args.inputs[0].sizes[0], IndexError::kSelect);
  if (!s.ok()) return s;
  const int64_t* bag = static_cast<const int64_t*>(args.inputs[2].data);
  const int64_t bags = args.outputs[0].sizes[0];
  for (int64_t i = 0; i < args.inputs[2].numel; ++i)
    if (bag[i] >= bags)
      return fail(Code::kInvalid, "embedding_bag(): bag %ld of %ld", static_cast<long>(bag[i]),
                  static_cast<long>(bags));
  return with_type(args.inputs[0].dtype, [&]<class T>(std::type_identity<T>) -> Status {
    if constexpr (is_complex_v<T> || std::is_integral_v<T>) {
      return fail(Code::kUnsupported, "embedding_bag(): not implemented for this dtype");
    } else {
      bag_max_as<T>(args);
      return {};
    }
  });
}

TS_KERNEL("embedding_renorm", embedding_renorm)
TS_KERNEL("embedding_bag_max", embedding_bag_max)

}  // namespace tessera::cpu
