// Gradients against central differences, in float64.
#pragma once
#include "support/tensors.h"

namespace tessera::test {

using Function = std::function<Tensor(const std::vector<Tensor>&)>;

// Does `f`'s gradient by backward match its differences for each floating input? The inputs are
// float64; `f` is called with copies that require gradients, and must not depend on anything else
// that changes. The results are weighted by fixed numbers, so that no error cancels in a sum.
::testing::AssertionResult gradcheck(const Function& f, const std::vector<Tensor>& inputs);

}  // namespace tessera::test
