// Checks of arguments against each other, for records whose kernels rely on them.
//
// Note [Arguments of private operators]
// A private operator can be called from Python like any other, so its own record checks all that
// its kernel reads unchecked: numbers of dimensions, sizes, dtypes, lengths of lists, ranges of
// integers. A valid call pays for a few comparisons; messages are built where one fails.
#pragma once
#include "tessera/ops/call.h"

namespace tessera {

namespace detail {
[[noreturn]] void refuse_shape(const Call& c, int arg, std::span<const int64_t> expected);
[[noreturn]] void refuse_dim(const Call& c, int arg, int expected);
[[noreturn]] void refuse_dtype(const Call& c, int arg, const char* expected);
[[noreturn]] void refuse_integer(const Call& c, int arg, int64_t low, int64_t high);
[[noreturn]] void refuse_length(const Call& c, int arg, size_t expected);
}  // namespace detail

// Raises unless the tensor has these sizes; -1 matches any size.
inline void check_shape(const Call& c, int arg, std::span<const int64_t> expected) {
  const Dims& sizes = c.tensor(arg).sizes();
  bool same = sizes.size() == expected.size();
  for (size_t d = 0; same && d < expected.size(); ++d)
    same = expected[d] == sizes[d] || expected[d] == -1;
  if (!same) [[unlikely]]
    detail::refuse_shape(c, arg, expected);
}
inline void check_shape(const Call& c, int arg, std::initializer_list<int64_t> expected) {
  check_shape(c, arg, std::span(expected.begin(), expected.size()));
}
// The same for an argument that may be None.
inline void check_shape_if_given(const Call& c, int arg, std::initializer_list<int64_t> expected) {
  if (c.has(arg)) check_shape(c, arg, expected);
}
// Raises unless the tensor has so many dimensions.
inline void check_dim(const Call& c, int arg, int ndim) {
  if (c.tensor(arg).dim() != ndim) [[unlikely]]
    detail::refuse_dim(c, arg, ndim);
}
// Raises unless the tensor has the dtype.
inline void check_dtype(const Call& c, int arg, DType expected) {
  if (c.tensor(arg).dtype() != expected) [[unlikely]]
    detail::refuse_dtype(c, arg, dtype_name(expected));
}
inline void check_floating(const Call& c, int arg) {
  if (!is_floating(c.tensor(arg).dtype())) [[unlikely]]
    detail::refuse_dtype(c, arg, "a floating-point dtype");
}
inline void check_floating_or_complex(const Call& c, int arg) {
  if (!is_differentiable(c.tensor(arg).dtype())) [[unlikely]]
    detail::refuse_dtype(c, arg, "a floating-point or complex dtype");
}
// Raises unless low <= the integer <= high.
inline void check_integer(const Call& c, int arg, int64_t low, int64_t high = INT64_MAX) {
  if (c.integer(arg) < low || c.integer(arg) > high) [[unlikely]]
    detail::refuse_integer(c, arg, low, high);
}
// Raises unless the list has so many elements.
inline void check_length(const Call& c, int arg, size_t expected) {
  const Value& v = c.args[static_cast<size_t>(arg)];
  const size_t given = v.tag == Value::Tag::kTensors  ? v.tensors.size()
                       : v.tag == Value::Tag::kFloats ? v.floats.size()
                                                      : v.ints.size();
  if (given != expected) [[unlikely]]
    detail::refuse_length(c, arg, expected);
}

// Raises, as the allocation does, if there is no memory for a tensor of these sizes: for records
// that prepare a table or a loop of that length first.
void check_fits_memory(std::span<const int64_t> sizes, DType dtype, Device device);

// The number of elements of these sizes; raises where that is negative or does not fit 64 bits.
int64_t checked_numel(const Call& c, std::span<const int64_t> sizes);

}  // namespace tessera
