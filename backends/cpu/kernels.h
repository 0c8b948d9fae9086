// Named kernels. Each is one function over KernelArgs, registered where it is written:
//   TS_KERNEL("softmax", softmax)
#pragma once
#include <cstdarg>

#include "tessera/driver/backend.h"

namespace tessera::cpu {

using KernelFn = Status (*)(const KernelArgs& args);

struct RegisterKernel {
  RegisterKernel(const char* name, KernelFn fn);
};
#define TS_KERNEL_LINE(line) register_kernel_##line
#define TS_KERNEL_NAME(line) TS_KERNEL_LINE(line)
#define TS_KERNEL(name, fn) \
  static const ::tessera::cpu::RegisterKernel TS_KERNEL_NAME(__COUNTER__)(name, fn);

// Null if there is none of that name.
KernelFn find_kernel(const char* name) noexcept;

// A failure with a message made as printf does, in storage of the calling thread.
Status fail(Code code, const char* format, ...) noexcept __attribute__((format(printf, 2, 3)));

}  // namespace tessera::cpu
