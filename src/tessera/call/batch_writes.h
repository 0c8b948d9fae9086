// In-place writes inside of vmap and gradient transforms.
#pragma once
#include <vector>

#include "tessera/ops/record.h"
#include "tessera/ops/value.h"

namespace tessera {

// Note [In-place writes inside of vmap]
// vmap runs its function once for each example. A write to a tensor of its own, or to one that is
// mapped over, is a write of that example. A tensor from outside exists once: values that depend on
// the example have no room in it and are refused, with PyTorch's messages. Other values are written
// once: its content is restored before each further example. Functions that are differentiated may
// not write tensors from outside.

// Before a write of argument op.self_index; raises if it is impossible.
void check_batch_write(const Op& op, Args args);
void check_batch_out(const Op& op, std::span<const TensorBase> outs);
// Versions of a call's arguments: raises if the call wrote one from outside that is not self, such
// as running statistics, with values that depend on the example.
class ArgumentVersions {
 public:
  ArgumentVersions(const Op& op, Args args);
  void check() const;

 private:
  struct Argument {
    TensorBase tensor;
    uint32_t version;
  };
  const Op& op_;
  std::vector<Argument> seen_;
};
// After a call: results depend on the example if an argument does.
void note_batch_results(Args args, std::span<const TensorBase> results);
// Before another example of the innermost scope: undoes writes to tensors from outside.
void begin_next_example();

}  // namespace tessera
