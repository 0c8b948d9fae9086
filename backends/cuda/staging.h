// Page-locked bays that pageable memory passes through, and the threads that fill and empty them.
#pragma once
#include <atomic>
#include <condition_variable>
#include <mutex>

#include "context.h"

namespace tessera::cuda {

// Copies memory with several threads. One caller at a time.
class CopyTeam {
 public:
  void copy(char* to, const char* from, size_t bytes);

 private:
  void start();
  void serve(int lane);
  void part(int lane, int lanes) const;
  // Waits for a number to change: awake for a while where there are cores to spare, then asleep.
  bool spin_until_new(uint64_t seen) const;

  struct Job {
    char* to = nullptr;
    const char* from = nullptr;
    size_t bytes = 0;
    int lanes = 1;
  };
  Job job_;
  std::atomic<uint64_t> round_{0};
  std::atomic<int> left_{0};
  std::atomic<int> asleep_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  int helpers_ = 0;
  bool started_ = false, spins_ = false;
};

struct Bay {
  char* memory = nullptr;
  CUevent done = nullptr;
  bool busy = false;  // a copy to or from it may be under way
};

struct Staging {
  static constexpr int kBays = 16;
  static constexpr size_t kBayBytes = size_t{1} << 20;

  std::mutex mutex;
  Bay bays[kBays];
  int next = 0;
  // Small copies share a bay as long as they are on one stream: its event then covers them all.
  CUstream small_stream = nullptr;
  size_t small_used = kBayBytes;
  int small_bay = 0;
  CopyTeam team;
  bool ready = false;
};

// Of a device, ready for use. Lock its mutex.
Status staging_of(Device& d, Staging** out);

}  // namespace tessera::cuda
