// Workspace of a kernel, from the host cache. Inside parallel loops nothing may throw, so a failure
// is noted and reported after the loop.
#pragma once
#include <atomic>

#include "host_cache.h"
#include "kernels.h"

namespace tessera::cpu {

class OutOfScratch {
 public:
  void note() noexcept { failed_.store(true, std::memory_order_relaxed); }
  Status status(const char* name) const noexcept {
    if (!failed_.load(std::memory_order_relaxed)) return {};
    return fail(Code::kOutOfMemory, "%s: no memory for its workspace", name);
  }

 private:
  std::atomic<bool> failed_{false};
};

class Scratch {
 public:
  Scratch(size_t bytes, OutOfScratch& failure) noexcept
      : p_(bytes ? cache_allocate(bytes) : nullptr) {
    if (bytes && !p_) failure.note();
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { cache_free(p_); }
  void* get() const noexcept { return p_; }

 private:
  void* p_;
};

}  // namespace tessera::cpu
