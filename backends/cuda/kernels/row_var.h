// The variance of rows that fit into registers.
#pragma once
#include "../kernels.h"

namespace tessera::cuda {

// False where the rows are not dense, or too long: another kernel has to do it.
bool run_row_var(Device& d, CUstream stream, const KernelArgs& args, Status* status);

}  // namespace tessera::cuda
