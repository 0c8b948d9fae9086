// Running a reduction.
#pragma once
#include "context.h"
#include "joins.h"

namespace tessera::cuda {

Status run_reduce_on(Device& d, CUstream stream, const ReduceProgram& r,
                     const Joins& joins = {nullptr, nullptr});
// Several, none of which needs another; see Note [Batches of reductions].
Status run_reduces_on(Device& d, CUstream stream, const JoinedProgram* const* programs, int count);

}  // namespace tessera::cuda
