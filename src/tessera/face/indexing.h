// x.index({Slice(0, 3), None, ids}): what stands between the brackets of x[0:3, None, ids].
#pragma once
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/tensor/tensor.h"

namespace tessera {

struct NoneType {};
struct EllipsisType {};
// A new dimension of size one.
inline constexpr NoneType None;
// All dimensions that nothing else names.
inline constexpr EllipsisType Ellipsis;

// start:stop:step
struct Slice {
  using Bound = std::optional<int64_t>;
  Bound start, stop;
  int64_t step = 1;

  Slice() = default;
  Slice(std::nullopt_t, Bound to, int64_t by = 1) : stop(to), step(by) {}
  Slice(NoneType, Bound to, int64_t by = 1) : stop(to), step(by) {}
  Slice(int64_t from, Bound to = std::nullopt, int64_t by = 1) : start(from), stop(to), step(by) {}
  Slice(int64_t from, NoneType, int64_t by = 1) : start(from), step(by) {}
  Slice(NoneType, NoneType, int64_t by = 1) : step(by) {}
};

// One part of an index.
class TensorIndex {
 public:
  enum class Kind : uint8_t { kNone, kEllipsis, kInt, kBool, kSlice, kTensor };

  TensorIndex(NoneType) : kind_(Kind::kNone) {}
  TensorIndex(std::nullopt_t) : kind_(Kind::kNone) {}
  TensorIndex(EllipsisType) : kind_(Kind::kEllipsis) {}
  TensorIndex(const char* text);  // "...": PyTorch's C++ writes it so
  TensorIndex(bool v) : kind_(Kind::kBool), int_(v) {}
  TensorIndex(int v) : kind_(Kind::kInt), int_(v) {}
  TensorIndex(int64_t v) : kind_(Kind::kInt), int_(v) {}
  TensorIndex(Slice s) : kind_(Kind::kSlice), slice_(s) {}
  TensorIndex(TensorBase t) : kind_(Kind::kTensor), tensor_(std::move(t)) {}

  Kind kind() const { return kind_; }
  int64_t integer() const { return int_; }
  const Slice& slice() const { return slice_; }
  const TensorBase& tensor() const { return tensor_; }

 private:
  Kind kind_;
  int64_t int_ = 0;
  Slice slice_;
  TensorBase tensor_;
};

// What the views of an index come to, and the tensors that are left: one for each dimension of the
// view from the first, undefined where there is none.
struct Indexed {
  TensorBase view;
  std::vector<TensorBase> tensors;
};
Indexed apply_index(const TensorBase& self, std::span<const TensorIndex> index);

// x[...]: a view where no tensor is in the index.
TensorBase get_index(const TensorBase& self, std::span<const TensorIndex> index);
// x[...] = values.
void set_index(const TensorBase& self, std::span<const TensorIndex> index,
               const TensorBase& values);
// Writes values, which may have further leading dimensions of size one, into a view.
void assign(const TensorBase& view, const TensorBase& values);

}  // namespace tessera
