// Text to machine code: from the pack, from the disk cache, or by NVRTC.
#pragma once
#include <string>
#include <vector>

#include "hash.h"
#include "tessera/driver/backend.h"

namespace tessera::cuda {

// kQuick takes a quarter less time. Kernels that only stream, and softmax, are as fast by it or
// faster; those that keep much in registers lose up to half their speed (sums, sorting, norms).
enum class Effort : uint8_t { kFull, kQuick };

// Compiles for compute capability arch (90 for 9.0), or takes it from the pack (pack.h) or the disk
// cache where it is there. Needs no GPU. On failure *error says why, with the compiler's log.
bool compile_text(const std::string& text, int arch, std::vector<char>* image, std::string* error,
                  Effort effort = Effort::kFull);

// Would that find it compiled?
bool is_compiled(const std::string& text, int arch, Effort effort);

// By the compiler, and nothing else; machine code for that architecture or a failure. Counts as
// nothing. May be called by several threads.
bool compile_fresh(const std::string& text, int arch, std::vector<char>* image, std::string* error,
                   Effort effort);

// A kernel's name in the pack.
Hash128 pack_name(const std::string& text, int arch, Effort effort);

// Texts are kept where $TESSERA_KEEP_KERNELS says, in files named KIND.EFFORT.HASH.cu. The kind is
// the name of the kernel's entry, with +joined where it has company (joins.h).
std::string text_kind(const std::string& text);
// Of such a file; full where its name does not tell.
Effort effort_of_file(const std::string& name);

// Those from the pack and from the disk cache are counted by both.
void count_compilations(int64_t* compiled, int64_t* from_cache);

}  // namespace tessera::cuda
