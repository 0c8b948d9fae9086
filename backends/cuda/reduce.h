// Running a reduction.
#pragma once
#include "context.h"

namespace tessera::cuda {

Status run_reduce_on(Device& d, CUstream stream, const ReduceProgram& r);

}  // namespace tessera::cuda
