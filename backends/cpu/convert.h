// Between memory and register form, tile by tile: one set of loops per instruction set, all of
// which give the same bits.
#pragma once
#include "isa.h"
#include "tessera/base/dtype.h"

namespace tessera::cpu {

// n elements from src to dst; the two may be the same only for `round`.
using ConvertFn = void (*)(void* dst, const void* src, int64_t n);

struct ConvertTable {
  // Dense memory to registers, and back (rounding or wrapping). Of dtypes in register form: copies.
  ConvertFn load[kNumDTypes];
  ConvertFn store[kNumDTypes];
  // Rounds registers in place to what the dtype can hold; null where there is nothing to do.
  ConvertFn round[kNumDTypes];
  // Registers of one class to another: [from][to].
  ConvertFn convert[kNumRegClasses][kNumRegClasses];
  // Floating and complex registers to those of int32, int16 and int8; null for other classes.
  ConvertFn to_int32[kNumRegClasses];

  // Registers of class `from` to those of dtype `to`, before rounding.
  ConvertFn conversion(RegClass from, DType to) const {
    const bool narrow = to == DType::kInt32 || to == DType::kInt16 || to == DType::kInt8;
    ConvertFn fn = narrow ? to_int32[static_cast<int>(from)] : nullptr;
    return fn ? fn : convert[static_cast<int>(from)][static_cast<int>(reg_class(to))];
  }
};

extern const ConvertTable g_convert_tables[kNumIsas];

inline const ConvertTable& converts() { return g_convert_tables[g_isa]; }

}  // namespace tessera::cpu
