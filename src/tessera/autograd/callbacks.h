// What is to be done when a backward has gone through its graph.
#pragma once
#include <functional>

namespace tessera::autograd {

// Called from within a backward, by a hook say: `call` runs on this thread when the outermost
// backward is through, unless it raises. Raises where there is none.
void at_end_of_backward(std::function<void()> call);
bool in_backward();

}  // namespace tessera::autograd
