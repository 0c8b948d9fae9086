// Two devices in one operator: an error that keeps the tensors, so that a face which knows more of
// the program (names of parameters and variables) can say more of them.
#pragma once
#include <string>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/tensor/tensor.h"

namespace tessera {

class DeviceMismatch : public Error {
 public:
  struct Argument {
    std::string name;  // as the operator calls it: "weight", "tensors[1]"
    TensorBase tensor;
  };
  DeviceMismatch(std::string op_name, Argument first, Argument second);

  const std::string& op_name() const { return op_name_; }
  const Argument& first() const { return first_; }
  const Argument& second() const { return second_; }

 private:
  std::string op_name_;
  Argument first_;
  Argument second_;
};

}  // namespace tessera
