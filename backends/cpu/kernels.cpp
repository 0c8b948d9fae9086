#include "kernels.h"

#include <cstdio>
#include <string_view>
#include <unordered_map>

namespace tessera::cpu {

namespace {

// Filled when the library is loaded, read-only afterwards. Never destroyed: threads may run kernels
// while the process exits.
std::unordered_map<std::string_view, KernelFn>& kernels() {
  static auto& all = *new std::unordered_map<std::string_view, KernelFn>;
  return all;
}

}  // namespace

RegisterKernel::RegisterKernel(const char* name, KernelFn fn) { kernels().emplace(name, fn); }

KernelFn find_kernel(const char* name) noexcept {
  auto it = kernels().find(name);
  return it == kernels().end() ? nullptr : it->second;
}

Status fail(Code code, const char* format, ...) noexcept {
  thread_local char message[256];
  va_list args;
  va_start(args, format);
  std::vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return {code, message};
}

}  // namespace tessera::cpu
