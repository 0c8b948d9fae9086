// Kernels with pointwise work before and after them.
#pragma once
#include "tessera/driver/backend.h"

namespace tessera::cpu {

bool can_join(const JoinedProgram* program) noexcept;
Status run_joined(Exec exec, const JoinedProgram* program) noexcept;

}  // namespace tessera::cpu
