// Whether the same bits are asked for each time (torch.use_deterministic_algorithms). Operators
// hand it to the kernels whose fastest way depends on the order in which threads come.
#pragma once

namespace tessera {

bool deterministic();
void set_deterministic(bool on);

}  // namespace tessera
