// Compiling on other threads. A job is known by its kernel's key; what it made is loaded by whoever
// asks for it next, since loading has to be done by a thread that launches.
#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "compile.h"
#include "hash.h"

namespace tessera::cuda {

struct Compilation {
  std::vector<char> image;
  std::string error;  // where there is no image
};

// Begins it unless it has been begun, or too much is waiting already.
void compile_later(const Hash128& key, std::string text, int arch, Effort effort);
// What has been begun, waiting for it so long. Null: not begun, or not done. It is taken: the next
// to ask finds nothing.
std::unique_ptr<Compilation> take_compiled(const Hash128& key, std::chrono::milliseconds patience);
// Before the process ends: NVRTC's own memory goes then, under threads that still compile.
void end_compilations();
bool is_being_compiled(const Hash128& key);

}  // namespace tessera::cuda
