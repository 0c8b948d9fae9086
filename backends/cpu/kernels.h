// Named kernels. Each is one function over KernelArgs, listed in kernels.cpp.
#pragma once
#include <cstdarg>

#include "tessera/driver/backend.h"

namespace tessera::cpu {

using KernelFn = Status (*)(const KernelArgs& args);

// Null if there is none of that name.
KernelFn find_kernel(const char* name) noexcept;

// A failure with a message made as printf does, in storage of the calling thread.
Status fail(Code code, const char* format, ...) noexcept __attribute__((format(printf, 2, 3)));

Status softmax(const KernelArgs& args);
Status log_softmax(const KernelArgs& args);
Status matmul(const KernelArgs& args);
Status index_select(const KernelArgs& args);
Status index_add(const KernelArgs& args);
Status random_uniform(const KernelArgs& args);
Status random_normal(const KernelArgs& args);
Status random_bernoulli(const KernelArgs& args);
Status random_int(const KernelArgs& args);

}  // namespace tessera::cpu
