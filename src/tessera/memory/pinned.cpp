#include "tessera/memory/pinned.h"

#include <unistd.h>

#include "tessera/base/error.h"
#include "tessera/base/fork.h"
#include "tessera/driver/ending.h"
#include "tessera/memory/device_allocator.h"
#include "tessera/tensor/storage.h"

namespace tessera::memory {

namespace {

Status host_memory(int, int64_t* free, int64_t* total) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  *total = sysconf(_SC_PHYS_PAGES) * page;
  *free = sysconf(_SC_AVPHYS_PAGES) * page;
  return {};
}

// No streams: who copies keeps the storage until the device has read or written it.
const Backend& table() {
  static const Backend b = [] {
    Backend t{};
    t.abi = kBackendAbi;
    t.name = "pinned";
    t.memory_info = host_memory;
    t.allocate = [](int, size_t bytes, void** out) {
      return accelerator()->host_allocate(bytes, out);
    };
    t.deallocate = [](int, void* p) { return accelerator()->host_deallocate(p); };
    return t;
  }();
  return b;
}

Config pinned_config() {
  Config c;
  c.expandable = false;
  c.caching = config().caching;
  return c;
}

// Never destroyed: tensors in static storage are freed after main.
std::atomic<DeviceAllocator*> made_allocator{nullptr};
DeviceAllocator& allocator() {
  static DeviceAllocator& a = *[] {
    auto* made = new DeviceAllocator(&table(), 0, pinned_config());
    made_allocator.store(made, std::memory_order_release);
    return made;
  }();
  return a;
}
// Locked before a fork; the allocator may be made while one is under way.
DeviceAllocator* held_for_fork = nullptr;
const AtFork at_fork(
    ForkStage::kPinnedAllocator,
    [] {
      held_for_fork = made_allocator.load(std::memory_order_acquire);
      if (held_for_fork) held_for_fork->mutex().lock();
    },
    [] {
      if (held_for_fork) held_for_fork->mutex().unlock();
      held_for_fork = nullptr;
    });

void give_back_pinned(void* block) {
  if (!is_ending()) allocator().deallocate(static_cast<Block*>(block));
}

}  // namespace

bool is_pinned(const Storage& s) { return s.release == give_back_pinned; }
int64_t pinned_allocated() { return allocator().used().now(); }
int64_t pinned_reserved() { return allocator().reserved().now(); }
void empty_pinned_cache() { allocator().empty_cache(); }

}  // namespace tessera::memory

namespace tessera {

void allocate_pinned(Storage& s) {
  const char* why = nullptr;
  TS_CHECK(accelerator(&why), "Cannot access accelerator device when none is available: ", why);
  if (s.nbytes == 0 || s.data) return;
  memory::Block* b = memory::allocator().allocate(s.nbytes, nullptr, &s);
  s.data = b->ptr;
  s.owner = b;
  s.release = memory::give_back_pinned;
}

}  // namespace tessera
