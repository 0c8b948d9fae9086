#include "tessera/nn/padding.h"

#include "tessera/nn/text.h"

namespace tessera::nn {

PadNd::PadNd(int n, Ints given, const char* mode, bool shows_value, double value)
    : value(value), mode_(mode), n_(n), shows_value_(shows_value) {
  std::span<const int64_t> v = given;
  padding = v.size() == 1 ? Dims(static_cast<size_t>(2 * n), v[0]) : Dims(v);
}

Tensor PadNd::forward(const Tensor& input) {
  std::string_view mode = mode_;
  if (mode == "circular")
    TS_CHECK_VALUE(input.dim() == n_ + 1 || input.dim() == n_ + 2, "expected ", n_ + 1, "D or ",
                   n_ + 2, "D input (got ", input.dim(), "D input)");
  if (mode == "constant") return pad(input, padding, mode, value);
  return pad(input, padding, mode);
}

std::string PadNd::extra_repr() const {
  if (!shows_value_) return py_tuple(padding);
  return "padding=" + py_tuple(padding) + ", value=" + py(value);
}

}  // namespace tessera::nn
