// Reductions over dimensions.
#pragma once
#include "tessera/driver/backend.h"

namespace tessera::cpu {

Status run_reduce(Exec exec, const ReduceProgram* program) noexcept;

}  // namespace tessera::cpu
