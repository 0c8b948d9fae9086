#include "staging.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace tessera::cuda {
namespace {

constexpr int kMostHelpers = 7;
// A thread's share below this is not worth waking it for.
constexpr size_t kShare = 32u << 10;
constexpr auto kAwake = std::chrono::microseconds(200);

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

void CopyTeam::start() {
  if (started_) return;
  started_ = true;
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const int wanted = std::clamp(cores / 2 - 1, cores > 1 ? 1 : 0, kMostHelpers);
  spins_ = cores >= 8;
  try {
    for (int lane = 1; lane <= wanted; ++lane) {
      std::thread([this, lane] { serve(lane); }).detach();
      helpers_ = lane;
    }
  } catch (...) {
    // As many as there are.
  }
}

bool CopyTeam::spin_until_new(uint64_t seen) const {
  if (!spins_) return false;
  const auto until = std::chrono::steady_clock::now() + kAwake;
  do {
    for (int i = 0; i < 64; ++i) {
      if (round_.load(std::memory_order_acquire) != seen) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < until);
  return false;
}

void CopyTeam::part(int lane, int lanes) const {
  const size_t share = (job_.bytes / static_cast<size_t>(lanes) + 63) / 64 * 64;
  const size_t begin = std::min(job_.bytes, share * static_cast<size_t>(lane));
  const size_t end = lane == lanes - 1 ? job_.bytes : std::min(job_.bytes, begin + share);
  std::memcpy(job_.to + begin, job_.from + begin, end - begin);
}

void CopyTeam::serve(int lane) {
  uint64_t seen = 0;
  for (;;) {
    if (!spin_until_new(seen)) {
      std::unique_lock lock(mutex_);
      asleep_.fetch_add(1);
      wake_.wait(lock, [&] { return round_.load(std::memory_order_acquire) != seen; });
      asleep_.fetch_sub(1);
    }
    seen = round_.load(std::memory_order_acquire);
    if (lane < job_.lanes) part(lane, job_.lanes);
    left_.fetch_sub(1, std::memory_order_release);
  }
}

void CopyTeam::copy(char* to, const char* from, size_t bytes) {
  start();
  const int lanes = static_cast<int>(std::min<size_t>(bytes / kShare, size_t(helpers_) + 1));
  if (lanes <= 1) {
    std::memcpy(to, from, bytes);
    return;
  }
  job_ = {to, from, bytes, lanes};
  left_.store(helpers_, std::memory_order_relaxed);
  {
    std::lock_guard lock(mutex_);  // no sleeper may miss it between its look and its wait
    round_.fetch_add(1, std::memory_order_release);
  }
  if (asleep_.load() > 0) wake_.notify_all();
  part(0, lanes);
  // Every helper has to have seen the job before the next one is written.
  for (int i = 0; left_.load(std::memory_order_acquire) > 0; ++i)
    if (spins_ && i < 100000)
      pause();
    else
      std::this_thread::yield();
}

Status staging_of(Device& d, Staging** out) {
  static Staging* all = new Staging[kMaxDevices];  // leaked, as their threads end with the process
  Staging& s = all[d.ordinal];
  *out = &s;
  std::lock_guard lock(s.mutex);
  if (s.ready) return ok();
  const DriverApi& cu = driver();
  void* memory = nullptr;
  TS_TRY(check(
      d, cu.cuMemHostAlloc(&memory, Staging::kBays * Staging::kBayBytes, CU_MEMHOSTALLOC_PORTABLE),
      "allocating staging buffers"));
  for (int i = 0; i < Staging::kBays; ++i) {
    s.bays[i].memory = static_cast<char*>(memory) + static_cast<size_t>(i) * Staging::kBayBytes;
    TS_TRY(check(d, cu.cuEventCreate(&s.bays[i].done, CU_EVENT_DISABLE_TIMING),
                 "creating a staging event"));
  }
  s.ready = true;
  return ok();
}

}  // namespace tessera::cuda
