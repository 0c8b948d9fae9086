// What the steps of optimizers share.
#pragma once
#include <vector>

#include "tessera/ops/call.h"

namespace tessera::optim {

// Raises unless each of these lists has an element for each parameter; an empty one may be absent.
// Then makes sure of memory for writes to all of them but the gradients, which the step reads.
void check_lists(const Call& call, std::initializer_list<int> lists);

// Complex parameters step as pairs of reals: the same step, of views as reals.
bool any_complex(const Call& call);
Outputs step_of_reals(const Call& call);

// A number kept in a tensor of one element, mostly on the CPU: counts of steps, factors.
double read_number(const TensorBase& t);
void write_number(const TensorBase& t, double value);
// Multiplies it by a factor, in its own dtype, and returns it.
double scale_number(const TensorBase& t, double factor);
// Counts one more step, and says which it is.
double count_step(const TensorBase& step);

// The gradient to descend by: turned around to climb, and with weight_decay times the parameter.
TensorBase gradient(const TensorBase& grad, const TensorBase& param, bool maximize,
                    double weight_decay);

}  // namespace tessera::optim
