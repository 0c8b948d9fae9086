// The left and right side of an einsum equation.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "tessera/tensor/tensor.h"

namespace tessera::linalg {

// Labels are 0 to 51 for A-Z, a-z; dimensions of an ellipsis have those from 52 on, counted so that
// the last one of every operand is the same.
inline constexpr int kEllipsis = 52;

struct Subscripts {
  std::vector<std::vector<int>> operands;  // a label for each dimension
  std::vector<int> output;
};

// Raises with PyTorch's words where the equation is malformed or does not fit the operands.
Subscripts parse_equation(std::string_view equation, std::span<const TensorBase> operands);

std::string label_name(int label);

}  // namespace tessera::linalg
