// The arguments of a call as words: what `record_shapes` keeps.
//   none; tensor: dtype, ndim, sizes, strides; tensors: how many, then each; a number: its bits;
//   ints: how many, then each; other.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tessera::profile {

enum class Arg : int64_t { kNone, kTensor, kTensors, kInt, kDouble, kBool, kInts, kOther };

struct ArgTensor {
  int64_t dtype = -1;  // -1: no tensor
  std::vector<int64_t> sizes, strides;
};
struct Argument {
  Arg kind = Arg::kNone;
  std::vector<ArgTensor> tensors;
  std::vector<int64_t> ints;
  double number = 0;
};
std::vector<Argument> read_arguments(const int64_t* words, uint32_t count);

// As Python writes a list: "[[32, 64], [], [128]]"; of lists of tensors `[]`.
std::string shapes_text(const std::vector<Argument>& arguments);

}  // namespace tessera::profile
