// Running a group of pointwise operators.
#pragma once
#include "codegen.h"
#include "compile.h"
#include "context.h"

namespace tessera::cuda {

inline Effort effort_of(const GroupPlan& plan) {
  return plan.mode == GroupMode::kLinear ? Effort::kQuick : Effort::kFull;
}

// What it is called where a person reads it.
inline const char* name_of(const GroupProgram& g) {
  return g.instrs[0].body ? g.instrs[0].body->name : "convert";
}

// Should its operators rather run one by one? Without a kernel that is there, it would be waited
// for where the group cannot be interpreted, and kernels would have no end where structures never
// repeat.
bool is_refused(Device& d, CUstream stream, const GroupProgram& g);
// kUnsupported, and nothing is done, where it is too large, or refused and that may be.
Status run_group_on(Device& d, CUstream stream, const GroupProgram& g, bool may_refuse = true);
// Independent ones: those of one structure in one launch. All or none of them are refused.
Status run_groups_on(Device& d, CUstream stream, const GroupProgram* const* programs, int count);

// Copies src (any strides) to dst (dense), converting nothing.
Status copy_strided(Device& d, CUstream stream, void* dst, const void* src, DType dtype, int ndim,
                    const int64_t* sizes, const int64_t* strides);

// The same between any strides and dtypes; real numbers become complex ones.
Status convert_strided(Device& d, CUstream stream, int ndim, const int64_t* sizes,
                       const Operand& from, const Operand& to);

}  // namespace tessera::cuda
