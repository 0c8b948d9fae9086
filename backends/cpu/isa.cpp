#include "isa.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace tessera::cpu {

namespace {

int detect() {
  int best = 0;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c"))
    best = 1;
  if (best == 1 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    best = 2;
#endif
  const char* asked = std::getenv("TESSERA_ISA");
  if (!asked) return best;
  if (!std::strcmp(asked, "baseline")) return 0;
  if (!std::strcmp(asked, "avx2")) return std::min(best, 1);
  return best;
}

}  // namespace

const int g_isa = detect();

}  // namespace tessera::cpu
