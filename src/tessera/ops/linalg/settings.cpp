#include "tessera/ops/linalg/settings.h"

#include <atomic>

namespace tessera::linalg {

namespace {
std::atomic<bool> g_tf32{false};
}

bool allow_tf32() { return g_tf32.load(std::memory_order_relaxed); }
void set_allow_tf32(bool on) { g_tf32 = on; }

}  // namespace tessera::linalg
