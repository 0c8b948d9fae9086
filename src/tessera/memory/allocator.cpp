// One allocator per device of the accelerator, made at its first use.
#include "tessera/memory/allocator.h"

#include "tessera/base/error.h"
#include "tessera/base/fork.h"
#include "tessera/driver/backend.h"
#include "tessera/driver/ending.h"
#include "tessera/memory/device_allocator.h"
#include "tessera/memory/pinned.h"
#include "tessera/memory/services.h"
#include "tessera/profile/record.h"

namespace tessera::memory {

namespace {

constexpr int kMaxDevices = 64;
// Never destroyed: tensors in static storage are freed after main.
std::atomic<DeviceAllocator*> allocators[kMaxDevices];
constinit Mutex creation;

const AtFork at_fork(
    ForkStage::kAllocators,
    [] {
      creation.lock();
      for (auto& a : allocators)
        if (DeviceAllocator* d = a.load(std::memory_order_acquire)) d->mutex().lock();
    },
    [] {
      for (auto& a : allocators)
        if (DeviceAllocator* d = a.load(std::memory_order_acquire)) d->mutex().unlock();
      creation.unlock();
    });

DeviceAllocator& create(int device) {
  const char* why = nullptr;
  const Backend* backend = accelerator(&why);
  TS_CHECK(backend, "there is no accelerator: ", why);
  const int count = backend->device_count(&why);
  TS_CHECK(device >= 0 && device < count && device < kMaxDevices, "there is no device ", device,
           ": ", count, " found");
  std::lock_guard lock(creation);
  DeviceAllocator* made = allocators[device].load(std::memory_order_acquire);
  if (!made) {
    backend->use_services(&host_services());
    made = new DeviceAllocator(backend, device);
    allocators[device].store(made, std::memory_order_release);
  }
  return *made;
}

DeviceAllocator& of(int device) {
  if (device >= 0 && device < kMaxDevices) [[likely]] {
    DeviceAllocator* a = allocators[device].load(std::memory_order_acquire);
    if (a) [[likely]]
      return *a;
  }
  return create(device);
}

}  // namespace

void* allocate(int device, size_t bytes, StreamHandle stream, void** ctx, const Storage* holder,
               Owner owner) {
  *ctx = nullptr;
  if (bytes == 0) return nullptr;
  Block* b = of(device).allocate(bytes, stream, holder, owner);
  *ctx = b;
  if (profile::what() & profile::kBytes) [[unlikely]]
    profile::note_memory(device, b->ptr, static_cast<int64_t>(b->size), memory_allocated(device));
  return b->ptr;
}

void deallocate(void* ctx) noexcept {
  if (!ctx || is_ending()) return;
  Block* b = static_cast<Block*>(ctx);
  if (profile::what() & profile::kBytes) [[unlikely]] {
    const int device = b->pool->owner->device();
    const auto size = static_cast<int64_t>(b->size);
    profile::note_memory(device, b->ptr, -size, memory_allocated(device) - size);
  }
  b->pool->owner->deallocate(b);
}

void record_stream(void* ctx, StreamHandle stream) {
  if (!ctx) return;
  Block* b = static_cast<Block*>(ctx);
  b->pool->owner->record_stream(b, stream);
}

Usage usage(int device) { return of(device).usage(); }
Charge charge(int device, size_t bytes) { return of(device).charge(bytes); }
void uncharge(int device, size_t bytes) { of(device).uncharge(bytes); }
void set_unstored(int device, size_t bytes) { of(device).set_unstored(bytes); }
void clear_unstored(int device, size_t bytes) { of(device).clear_unstored(bytes); }
bool surely_fits(int device, int64_t bytes) { return of(device).surely_fits(bytes); }
void guard_room(int device, bool on) { of(device).guard_room(on); }

void hide(int device, size_t bytes) { of(device).hide(bytes); }
void unhide(int device, size_t bytes) { of(device).unhide(bytes); }

int64_t memory_allocated(int device) { return of(device).used().now(); }
int64_t max_memory_allocated(int device) { return of(device).peak_allocated(); }
int64_t memory_reserved(int device) { return of(device).reserved().now(); }
int64_t max_memory_reserved(int device) { return of(device).reserved().peak(); }
int64_t num_ooms(int device) { return of(device).num_ooms(); }
void reset_peak(int device) { of(device).reset_peak(); }
void reset_accumulated(int device) { of(device).reset_accumulated(); }
std::vector<NamedCount> stats(int device) { return of(device).stats(); }
std::string snapshot(int device) { return of(device).snapshot(); }

void start_history(bool trace, StackOf stacks, size_t max_entries) {
  const char* why = nullptr;
  const Backend* backend = accelerator(&why);
  TS_CHECK(backend, "there is no accelerator: ", why);
  for (int d = 0; d < backend->device_count(&why); ++d) {
    DeviceAllocator& a = of(d);
    std::lock_guard lock(a.mutex());
    a.history().start(trace, stacks, max_entries);
  }
}
void stop_history() {
  for (auto& slot : allocators)
    if (DeviceAllocator* a = slot.load(std::memory_order_acquire)) {
      std::lock_guard lock(a->mutex());
      a->history().stop();
    }
}

void use_pool(int device, PoolId pool, StreamHandle stream) { of(device).use_pool(pool, stream); }
void leave_pool(int device, PoolId pool) { of(device).leave_pool(pool); }
void begin_capture(int device, PoolId pool, uint64_t capture) {
  of(device).begin_capture(pool, capture);
}
void end_capture(int device, uint64_t capture) { of(device).end_capture(capture); }

void fail_after(int device, int64_t n, bool permanent) { of(device).fail_after(n, permanent); }
void empty_cache(int device) { of(device).empty_cache(); }
void set_memory_fraction(int device, double fraction) { of(device).set_fraction(fraction); }

void set_pressure_hook(PressureHook hook) { pressure_hook.store(hook, std::memory_order_release); }

void set_room_hook(RoomHook hook) { room_hook.store(hook, std::memory_order_release); }

}  // namespace tessera::memory
