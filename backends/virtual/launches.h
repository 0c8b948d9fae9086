#pragma once
#include "tessera/driver/backend.h"

namespace tessera::vgpu {

Status run_group(Exec exec, const GroupProgram* program);
bool can_join(const JoinedProgram* program);
Status run_joined(Exec exec, const JoinedProgram* program);
Status run_reduce(Exec exec, const ReduceProgram* program);
Status run_kernel(Exec exec, const char* name, const KernelArgs* args);
bool has_kernel(const char* name);

}  // namespace tessera::vgpu
