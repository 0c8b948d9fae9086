// Text to machine code (NVRTC), machine code to kernels, and the cache of kernels in memory.
#pragma once
#include <string>
#include <vector>

#include "hash.h"
#include "tessera/driver/backend.h"

namespace tessera::cuda {

// kQuick takes a quarter less time. Kernels that only stream, and softmax, are as fast by it or
// faster; those that keep much in registers lose up to half their speed (sums, sorting, norms).
enum class Effort : uint8_t { kFull, kQuick };

// Compiles for compute capability arch (90 for 9.0), from the disk cache where it is there. Needs
// no GPU. On failure *error says why, with the compiler's log.
bool compile_text(const std::string& text, int arch, std::vector<char>* image, std::string* error,
                  Effort effort = Effort::kFull);

void count_compilations(int64_t* compiled, int64_t* from_cache);

}  // namespace tessera::cuda
