// Which instruction set the loops use, chosen once when the library is loaded.
#pragma once
#include "tessera/driver/program.h"

namespace tessera::cpu {

// The best one this machine has, or what TESSERA_ISA=baseline|avx2|avx512 asks for (never more than
// the machine has).
extern const int g_isa;

}  // namespace tessera::cpu
