// Note [Kernels in graphs of their own]
// A launch costs the host more than everything else that a small operator does. A graph that holds
// one kernel is launched for half to two thirds of that, with new arguments each time (decision
// 51); another kernel or another grid in it would cost as much as a launch. So a kernel that comes
// again and again, in one grid and on one stream, gets a graph. The first launches of both ways are
// timed: what they cost depends on the driver.
//
// Large kernels keep the device busy for longer than the host needs, and launching them in two ways
// in turns may have the device wait a little (up to 0.1 us for each change): they are launched
// plainly.
//
// A graph waits for its own last launch, wherever that was: with one for each stream no stream
// waits for another. Streams of other libraries have none, as those may capture what is queued on
// them.
#pragma once
#include "context.h"

namespace tessera::cuda {

// In the way that costs less. `number` counts the launches of the process.
CUresult launch_in_some_way(Device& d, CUstream stream, const CUDA_KERNEL_NODE_PARAMS& kernel,
                            int64_t number);

// A device's graphs, and which of its streams are ours.
struct Launches;
Launches* make_launches(size_t device_memory);
void note_stream(Device& d, CUstream stream);

}  // namespace tessera::cuda
