// Running a reduction.
#pragma once
#include "context.h"
#include "joins.h"

namespace tessera::cuda {

Status run_reduce_on(Device& d, CUstream stream, const ReduceProgram& r,
                     const Joins& joins = {nullptr, nullptr});

}  // namespace tessera::cuda
