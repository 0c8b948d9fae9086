// Compiled kernels, and launching them.
#pragma once
#include <cuda.h>

#include <mutex>
#include <string>
#include <vector>

#include "kernel_abi.h"

namespace emulator {

// Shared memory a block may have without being asked, and at most.
inline constexpr unsigned kShared = 48u << 10, kMaxShared = 227u << 10;

struct Module {
  void* library = nullptr;
  State* state = nullptr;
  char* shared_begin = nullptr;
  char* shared_end = nullptr;
  bool waits = false;
  std::mutex running;
};

struct Function {
  Module* module = nullptr;
  KernelEntry entry = nullptr;
  std::string name;
  unsigned max_threads = 1024;
  std::vector<size_t> parameters;  // bytes of each
  unsigned max_dynamic = kShared;
};

struct Launch {
  Index3 grid, block;
  unsigned dynamic_shared;
};

// The bytes of a shared object.
CUresult load_module(const void* image, Module** out);
CUresult find_function(Module* m, const char* name, Function** out);
// A fault of the kernel becomes the error a device would give; what it was goes to stderr.
CUresult run_kernel(const Function& f, const Launch& launch, void** arguments);

}  // namespace emulator
