#include "kernels.h"

#include <cstdio>
#include <cstring>

namespace tessera::cpu {

namespace {

struct Entry {
  const char* name;
  KernelFn fn;
};
constexpr Entry kKernels[] = {
    {"softmax", softmax},           {"log_softmax", log_softmax},    {"matmul", matmul},
    {"index_select", index_select}, {"index_add", index_add},        {"uniform", random_uniform},
    {"normal", random_normal},      {"bernoulli", random_bernoulli}, {"random_int", random_int},
};

}  // namespace

KernelFn find_kernel(const char* name) noexcept {
  for (const Entry& e : kKernels)
    if (!std::strcmp(e.name, name)) return e.fn;
  return nullptr;
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
