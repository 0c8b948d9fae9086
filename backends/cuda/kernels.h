// Kernels by name: what run_kernel of the backend's table reaches. Each is registered where it is
// written:
//   TS_CUDA_KERNEL("softmax", run_softmax)
// A kernel refuses dtypes it does not have (kUnsupported); none moves work to the CPU.
#pragma once
#include "context.h"
#include "joins.h"

namespace tessera::cuda {

using KernelFn = Status (*)(Device& d, CUstream stream, const KernelArgs& args);

struct RegisterKernel {
  RegisterKernel(const char* name, KernelFn fn);
};
#define TS_CUDA_KERNEL_LINE(line) register_kernel_##line
#define TS_CUDA_KERNEL_NAME(line) TS_CUDA_KERNEL_LINE(line)
#define TS_CUDA_KERNEL(name, fn) \
  static const ::tessera::cuda::RegisterKernel TS_CUDA_KERNEL_NAME(__COUNTER__)(name, fn);

// Null if there is none of that name.
KernelFn find_named_kernel(const char* name);

// A kernel over rows that takes pointwise work in; see Note [Company of a kernel].
using JoinedFn = Status (*)(Device& d, CUstream stream, const KernelArgs& args, const Joins& joins);
// Rows that a block can hold in its registers.
inline bool fits_registers(int64_t, int64_t n) { return n <= 8192; }
struct JoinedKernel {
  JoinedFn run;
  bool (*takes)(int64_t rows, int64_t n);
};
struct RegisterJoined {
  RegisterJoined(const char* name, JoinedFn fn,
                 bool (*takes)(int64_t rows, int64_t n) = fits_registers);
};
#define TS_CUDA_JOINED(name, ...) \
  static const ::tessera::cuda::RegisterJoined TS_CUDA_KERNEL_NAME(__COUNTER__)(name, __VA_ARGS__);
// Null if there is none of that name.
const JoinedKernel* find_joined_kernel(const char* name);

// Of a kernel that has no complex form.
Status refuse_complex(const KernelArgs& args, const char* name);

// What is kept for a stream is freed by a function that is registered beside it; they are called
// when the stream's work is done, before it goes.
using StreamEndFn = void (*)(Device& d, CUstream stream);
struct RegisterStreamEnd {
  explicit RegisterStreamEnd(StreamEndFn fn);
};
#define TS_CUDA_AT_STREAM_END(fn) static const ::tessera::cuda::RegisterStreamEnd at_end_##fn(fn);
void end_stream(Device& d, CUstream stream);

// Blocks of 256 threads over n items, enough to fill the device.
inline int64_t fill_blocks(const Device& d, int64_t n) {
  int64_t blocks = (n + 255) / 256, most = int64_t{d.multiprocessors} * 16;
  return blocks < 1 ? 1 : blocks < most ? blocks : most;
}

}  // namespace tessera::cuda
