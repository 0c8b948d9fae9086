// A tensor as text, in PyTorch's format: what Python's repr and C++'s << both print.
#pragma once
#include <optional>
#include <ostream>
#include <string>

#include "tessera/tensor/tensor.h"

namespace tessera {

struct PrintOptions {
  int precision = 4;
  double threshold = 1000;  // more elements than that are summarised
  int64_t edgeitems = 3;
  int64_t linewidth = 80;
  std::optional<bool> sci_mode;
};

// The numbers in their brackets; lines after the first begin `indent` columns in.
std::string contents_text(const TensorBase& t, int64_t indent, const PrintOptions& options = {});
// "tensor([1., 2.], device='cuda:0')", with another name or other contents where they are given.
std::string to_text(const TensorBase& t, const PrintOptions& options = {},
                    const std::string& name = "tensor",
                    const std::optional<std::string>& contents = std::nullopt);

inline std::ostream& operator<<(std::ostream& out, const TensorBase& t) {
  return out << to_text(t);
}

}  // namespace tessera
