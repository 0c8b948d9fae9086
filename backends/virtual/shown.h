// What other processes may see of this one's virtual GPUs: a page of numbers in a shared file, for
// as long as the process uses them. `tessera top` reads those of all processes.
#pragma once
#include <atomic>
#include <cstdint>

namespace tessera::vgpu {

inline constexpr int kShownDevices = 16;

struct Shown {
  static constexpr uint64_t kMagic = 0x32757067766b7374;  // "tskvgpu2"
  struct Device {
    std::atomic<int64_t> total{0};
    std::atomic<int64_t> used{0};
    std::atomic<int64_t> busy_ns{0};  // in which some worker had a task, up to `since`
    std::atomic<int64_t> since{0};    // it has one since then, by the machine's monotonic clock
    std::atomic<int32_t> workers{0};  // that have one
  };
  std::atomic<uint64_t> magic{0};
  std::atomic<int32_t> pid{0};
  std::atomic<int32_t> count{0};
  std::atomic<int64_t> started{0};  // the process: its number may be used again
  Device device[kShownDevices];
};

// This process's; made at the first call. In memory of its own where there is no place for a file.
Shown& shown();
// Of the device of the number; the last one counts for those beyond.
Shown::Device& shown(int device);

// A worker begins, or has nothing left to do.
void begin_work(int device);
void end_work(int device);
int64_t busy_ns(const Shown::Device& d, int64_t now);
int64_t monotonic_ns();

}  // namespace tessera::vgpu
