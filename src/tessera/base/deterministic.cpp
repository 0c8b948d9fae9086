#include "tessera/base/deterministic.h"

#include <atomic>

namespace tessera {

namespace {
std::atomic<bool> g_deterministic{false};
}

bool deterministic() { return g_deterministic.load(std::memory_order_relaxed); }

void set_deterministic(bool on) { g_deterministic.store(on, std::memory_order_relaxed); }

}  // namespace tessera
