#include "tessera/ops/attention/settings.h"

#include <atomic>

namespace tessera::attention {

namespace {

std::atomic<int64_t> g_ways{kFlash | kMath | kEfficient | kCudnn};

}  // namespace

int64_t ways() { return g_ways.load(std::memory_order_relaxed); }

void set_ways(int64_t bits) { g_ways = bits; }

}  // namespace tessera::attention
