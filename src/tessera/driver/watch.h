// What a program has its devices do, counted where every launch and copy passes: in the backends'
// tables. With TESSERA_WATCH=1 the core uses tables that count and call the backend's; without, it
// uses the backend's own, and nothing here runs.
#pragma once
#include <cstdint>

#include "tessera/driver/backend.h"

namespace tessera {

inline constexpr int kWatchedDevices = 16;

struct CopyCount {
  int64_t copies = 0;
  int64_t bytes = 0;
  int64_t pageable_copies = 0;
  int64_t pageable_bytes = 0;
  int64_t wait_ns = 0;  // that the program waited in them
};

struct WatchedDevice {
  int64_t launches = 0;  // kernels and groups of operators
  int64_t graphs = 0;    // replayed
  CopyCount to_device, to_host;
  int64_t between_bytes = 0;  // to another device
  int64_t synchronized = 0;   // how often the program waited for it, and how long
  int64_t synchronized_ns = 0;
  int64_t busy_samples = 0;  // of Activity::samples: some stream had work
};

struct Activity {
  bool watching = false;  // were the tables that count in use?
  double seconds = 0;     // since the start
  // Each millisecond or so: what was the case. Those of the four below add up to `samples`.
  int64_t samples = 0;
  int64_t busy = 0;       // some GPU had work
  int64_t loading = 0;    // none had, and the program waited for a batch of data
  int64_t launching = 0;  // none had, though kernels were queued since the last look: too short
  int64_t idle = 0;       // none had, and none was queued
  int64_t loading_at_all = 0;
  int64_t cpu_launches = 0;
  int64_t cpu_ns = 0;  // in kernels of the CPU, over all threads that asked for them
  int devices = 0;
  WatchedDevice device[kWatchedDevices];
};

// From now on; zero before.
void watch_start();
void watch_stop();
Activity watch_read();
// Between true and false the program waits for a batch of data. From any thread, nested.
void watch_loading(bool begins);

namespace detail {
// The table to use in place of the backend's: the same unless TESSERA_WATCH=1.
const Backend* watched_accelerator(const Backend* inner);
const Backend* watched_cpu(const Backend* inner);
}  // namespace detail

}  // namespace tessera
