#include "tessera/ops/conv/settings.h"

#include <atomic>

namespace tessera::conv {

namespace {

std::atomic<int64_t> g_flags{kVendorLibrary | kAllowTf32};
std::atomic<int64_t> g_limit{10};

}  // namespace

int64_t flags() {
  int64_t all = g_flags.load(std::memory_order_relaxed);
  return all & kDeterministicAlgorithms ? all | kDeterministic : all;
}

void set_flag(Flag flag, bool on) {
  if (on)
    g_flags |= flag;
  else
    g_flags &= ~static_cast<int64_t>(flag);
}

int64_t benchmark_limit() { return g_limit.load(std::memory_order_relaxed); }

void set_benchmark_limit(int64_t limit) { g_limit = limit; }

}  // namespace tessera::conv
