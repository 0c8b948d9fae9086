// Reductions over dimensions.
#pragma once
#include "tessera/driver/backend.h"

namespace tessera::cpu {

Status run_reduce(Exec exec, const ReduceProgram* program) noexcept;
// Of elements that are made where `make` is given, see Reduction.
Status run_reduce(const ReduceProgram& program,
                  void (*make)(const void* ctx, int64_t first, int64_t n, void* to),
                  const void* make_ctx) noexcept;

}  // namespace tessera::cpu
