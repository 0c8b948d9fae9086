#include "staging.h"

namespace tessera::cuda {

Status staging_of(Device& d, bool upload, Staging** out) {
  static Staging* all =
      new Staging[2 * kMaxDevices];  // leaked, as their threads end with the process
  Staging& s = all[2 * d.ordinal + (upload ? 1 : 0)];
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
