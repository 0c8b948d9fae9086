// Kernels by name: what run_kernel of the backend's table reaches.
#pragma once
#include "context.h"

namespace tessera::cuda {

using KernelFn = Status (*)(Device& d, CUstream stream, const KernelArgs& args);

Status run_softmax(Device& d, CUstream stream, const KernelArgs& args);
Status run_log_softmax(Device& d, CUstream stream, const KernelArgs& args);
Status run_index_select(Device& d, CUstream stream, const KernelArgs& args);
Status run_index_add(Device& d, CUstream stream, const KernelArgs& args);
Status run_uniform(Device& d, CUstream stream, const KernelArgs& args);
Status run_normal(Device& d, CUstream stream, const KernelArgs& args);
Status run_bernoulli(Device& d, CUstream stream, const KernelArgs& args);
Status run_random_int(Device& d, CUstream stream, const KernelArgs& args);
Status run_arange(Device& d, CUstream stream, const KernelArgs& args);
Status run_matmul(Device& d, CUstream stream, const KernelArgs& args);

// Frees what was kept for a stream, whose work is done.
void forget_matmul_workspace(Device& d, CUstream stream);

// Blocks of 256 threads over n items, enough to fill the device.
inline int64_t fill_blocks(const Device& d, int64_t n) {
  int64_t blocks = (n + 255) / 256, most = int64_t{d.multiprocessors} * 16;
  return blocks < 1 ? 1 : blocks < most ? blocks : most;
}

}  // namespace tessera::cuda
