#include "tessera/ops/valid.h"

namespace tessera {

namespace {

const std::string& name_of(const Call& c, int arg) {
  return c.op.args[static_cast<size_t>(arg)].name;
}

}  // namespace

namespace detail {

void refuse_shape(const Call& c, int arg, std::span<const int64_t> expected) {
  std::string text = "[";
  for (size_t d = 0; d < expected.size(); ++d)
    text += (d ? ", " : "") + (expected[d] == -1 ? std::string("*") : std::to_string(expected[d]));
  raise(ErrorKind::kRuntime, cat(c.op.name, "(): expected ", name_of(c, arg), " to have shape ",
                                 text, "], but got shape ", c.tensor(arg).sizes()));
}

void refuse_dim(const Call& c, int arg, int expected) {
  raise(ErrorKind::kRuntime, cat(c.op.name, "(): expected ", name_of(c, arg), " to have ", expected,
                                 " dimensions, but got shape ", c.tensor(arg).sizes()));
}

void refuse_dtype(const Call& c, int arg, const char* expected) {
  raise(ErrorKind::kRuntime, cat(c.op.name, "(): expected ", name_of(c, arg), " to have ", expected,
                                 ", but got ", dtype_name(c.tensor(arg).dtype())));
}

void refuse_integer(const Call& c, int arg, int64_t low, int64_t high) {
  std::string range = high == INT64_MAX ? cat("at least ", low) : cat("from ", low, " to ", high);
  raise(ErrorKind::kRuntime, cat(c.op.name, "(): expected ", name_of(c, arg), " to be ", range,
                                 ", but got ", c.integer(arg)));
}

void refuse_length(const Call& c, int arg, size_t expected) {
  const Value& v = c.args[static_cast<size_t>(arg)];
  const size_t given = std::max({v.tensors.size(), v.floats.size(), v.ints.size()});
  raise(ErrorKind::kRuntime, cat(c.op.name, "(): expected ", name_of(c, arg), " to have ",
                                 uint64_t{expected}, " elements, but got ", uint64_t{given}));
}

}  // namespace detail

void check_fits_memory(std::span<const int64_t> sizes, DType dtype, Device device) {
  constexpr int64_t kSmall = int64_t{1} << 30;  // bytes
  const int64_t n = tessera::checked_numel(Dims(sizes), dtype);
  if (n <= kSmall / static_cast<int64_t>(itemsize(dtype)) || device.is_meta()) return;
  new_empty({n}, dtype, device);  // raises, and is freed at once
}

int64_t checked_numel(const Call& c, std::span<const int64_t> sizes) {
  int64_t n = 1;
  bool fits = true;
  for (int64_t size : sizes) fits &= size >= 0;
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end() && fits) return 0;
  for (int64_t size : sizes) fits = fits && !__builtin_mul_overflow(n, size, &n);
  TS_CHECK(fits, c.op.name, "(): invalid shape ", Dims(sizes));
  return n;
}

}  // namespace tessera
