// torch.cuda for C++: -1 means the current device.
#pragma once
#include <string>

#include "tessera/base/device.h"

namespace tessera::cuda {

bool is_available();
// Why there is no device, in words to act on; empty where there is one.
std::string why_unavailable();
int device_count();
int current_device();
void set_device(int device);
std::string device_name(int device = -1);
bool is_virtual(int device = -1);
// Runs what is pending and waits for the device.
void synchronize(int device = -1);

int64_t memory_allocated(int device = -1);
int64_t max_memory_allocated(int device = -1);
int64_t memory_reserved(int device = -1);
int64_t max_memory_reserved(int device = -1);
void reset_peak_memory_stats(int device = -1);
void empty_cache();

}  // namespace tessera::cuda

namespace tessera {

// The first cuda device where there is one, else the CPU.
Device best_device();

}  // namespace tessera
