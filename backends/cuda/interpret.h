// Groups while their kernels are compiled.
//
// Note [Nobody waits for the compiler]
// A structure that was never seen before takes NVRTC 50 to 100 ms. So it is compiled on another
// thread, and until that is done (waited for 40 ms from the second time on) its program is
// interpreted: one kernel, which came compiled with the library (pack.h), holds all bodies and
// takes instructions as parameters. It computes the same bits from the same bodies, reads and
// stores what the group would, and is several times slower. Kernels over rows that would take
// company run without it meanwhile, and groups that cannot be interpreted (complex numbers) one
// operator after the other, unless the memory for that is much; a reduction has a kernel that takes
// any form (reduce_text.h). Work that is captured into a graph waits, as a graph would keep the
// slow kernel, and so does all work where nobody tells of the process's end (driver/ending.h).
// TESSERA_INTERPRET=0 waits instead, =always never compiles a group or the form of a reduction,
// =single never a group of a single body and waits for the others, =1 does not ask whether the
// interpreter is compiled.
#pragma once
#include <string>

#include "codegen.h"
#include "context.h"
#include "kernel.h"

namespace tessera::cuda {

inline constexpr const char* kInterpretEntry = "interpret";
inline constexpr int kInterpretThreads = 128;
inline constexpr int kInterpretOffsets = 4;  // its first words, see interpret_text.cpp

// Which opcode stands for a body on a class; the same in every process of one build.
int opcode_of(const PointwiseBody* body, RegClass cls);  // -1: there is none
inline int opcode_of_convert(RegClass from, RegClass to) {
  return static_cast<int>(from) * 4 + static_cast<int>(to);
}
// Converts floats to int32, int16 and int8.
inline int opcode_of_convert_to_int32(RegClass from) { return 16 + static_cast<int>(from); }
inline int opcode_of_convert(RegClass from, DType to) {
  const bool narrow = to == DType::kInt32 || to == DType::kInt16 || to == DType::kInt8;
  if (narrow && (from == RegClass::kF32 || from == RegClass::kF64))
    return opcode_of_convert_to_int32(from);
  return opcode_of_convert(from, reg_class(to));
}
inline constexpr int kFirstBody = 20;
const std::string& interpret_text();

// Can kernels be compiled on other threads? Those have to be gone before the process ends.
bool compiles_meanwhile();
bool never_compiles(int bodies = 2);
// Is it much memory for values between kernels, such as nobody should have to have for not waiting?
bool is_much(const Device& d, int64_t elements);
// Is work of this stream interpreted while its kernels are compiled?
bool interprets(Device& d, CUstream stream, int bodies = 2);
// Has the program a place in its parameters, and nothing it cannot do, such as complex numbers?
bool can_interpret(const GroupProgram& g);
// kUnsupported where it cannot.
Status interpret_group(Device& d, CUstream stream, const GroupProgram& g);

}  // namespace tessera::cuda
