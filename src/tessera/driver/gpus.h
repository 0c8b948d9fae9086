// The GPUs of this machine and who uses them, for `tessera top`: asked without using one.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tessera/driver/backend.h"

namespace tessera {

inline constexpr int kMaxGpuProcesses = 32;

struct GpuProcess {
  int32_t pid;
  int32_t busy_percent;  // -1 where it is not known
  int64_t memory;        // bytes; -1 where it is not known
};

struct GpuState {
  char name[96];
  char bus[24];
  bool is_virtual;
  int64_t memory_used;
  int64_t memory_total;
  int64_t power_limit_mw;  // -1 where it is not known
  DeviceMonitor now;
  int num_processes;
  GpuProcess processes[kMaxGpuProcesses];
};

struct GpuDriver {
  char driver[64];
  char cuda[16];
  char why[256];  // there is none
};

// A backend's library may export, beside its table,
// `extern "C" int tessera_backend_gpus(GpuState*, int capacity, GpuDriver*)`: how many there are.
using GpusEntry = int (*)(GpuState* out, int capacity, GpuDriver* driver);
inline constexpr const char* kGpusEntryName = "tessera_backend_gpus";

// Of the backend; empty where it has none or does not tell.
std::vector<GpuState> list_gpus(const char* backend, GpuDriver* driver);

}  // namespace tessera
