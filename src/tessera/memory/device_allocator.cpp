// The paths of every call: take, split, give back, merge, charge.
#include "tessera/memory/device_allocator.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/memory/allocator.h"

namespace tessera::memory {

std::atomic<PressureHook> pressure_hook{nullptr};

bool Gauge::add_within(int64_t n, int64_t limit) {
  int64_t old = now();
  do {
    if (n > limit - old) return false;
  } while (!now_.compare_exchange_weak(old, old + n, std::memory_order_relaxed));
  raise_peak(old + n);
  return true;
}

DeviceAllocator::DeviceAllocator(const Backend* backend, int device)
    : backend_(backend), device_(device) {
  int64_t free = 0;
  check(backend_->memory_info(device, &free, &total_), "asking for the size of device memory");
  limit_.store(total_, std::memory_order_relaxed);
}

DeviceAllocator::~DeviceAllocator() {
  for (auto& [address, block] : segments_) backend_->deallocate(device_, address);
  for (EventHandle e : idle_events_) backend_->event_destroy(device_, e);
}

StreamPool& DeviceAllocator::pool_of(StreamHandle stream) {
  if (last_pool_ && last_pool_->stream == stream) [[likely]]
    return *last_pool_;
  auto& slot = pools_[stream];
  if (!slot) slot = std::make_unique<StreamPool>(this, stream);
  last_pool_ = slot.get();
  return *slot;
}

Block* DeviceAllocator::new_block() {
  if (!spare_) return &storage_.emplace_back();
  Block* b = spare_;
  spare_ = b->free_next;
  b->free_next = nullptr;
  return b;
}

void DeviceAllocator::recycle(Block* b) {
  b->ptr = nullptr;
  b->prev = b->next = b->free_prev = nullptr;
  b->free_next = spare_;
  spare_ = b;
}

Block* DeviceAllocator::take(StreamPool& pool, size_t size) {
  const bool small = size <= kSmallLimit;
  Block* b = small ? pool.small.best_fit(size) : pool.large.best_fit(size);
  if (!b) return nullptr;
  pool.remove(b);
  const size_t rest = b->size - size;
  // A large block gives up its rest only where that is a large block itself: slivers would stay.
  if (small ? rest >= kUnit : rest > kSmallLimit) {
    Block* r = new_block();
    r->ptr = b->ptr + size;
    r->size = rest;
    r->pool = &pool;
    r->small = small;
    r->prev = b;
    r->next = b->next;
    if (r->next) r->next->prev = r;
    b->next = r;
    b->size = size;
    pool.insert(r);
  }
  b->in_use = true;
  used_.add(static_cast<int64_t>(b->size));
  return b;
}

Block* DeviceAllocator::allocate(size_t bytes, StreamHandle stream) {
  // Beyond any device, and past where rounding up would wrap around.
  constexpr size_t kAbsurd = size_t{1} << 60;
  std::unique_lock lock(mutex_);
  if (bytes > kAbsurd) [[unlikely]]
    raise_oom(lock, bytes);
  const size_t size = (std::max<size_t>(bytes, 1) + kUnit - 1) / kUnit * kUnit;
  if (num_waiting_) poll_events();
  StreamPool& pool = pool_of(stream);
  if (Block* b = take(pool, size)) [[likely]]
    return b;
  return allocate_slow(lock, pool, bytes, size);
}

Block* DeviceAllocator::merge(Block* left, Block* right) {
  left->size += right->size;
  left->next = right->next;
  if (left->next) left->next->prev = left;
  recycle(right);
  return left;
}

void DeviceAllocator::give_back(Block* b) {
  auto is_free = [](const Block* n) { return n && !n->in_use && !n->waiting; };
  if (is_free(b->prev)) {
    b->pool->remove(b->prev);
    b = merge(b->prev, b);
  }
  if (is_free(b->next)) {
    b->pool->remove(b->next);
    merge(b, b->next);
  }
  b->pool->insert(b);
}

void DeviceAllocator::deallocate(Block* b) noexcept {
  std::lock_guard lock(mutex_);
  b->in_use = false;
  used_.subtract(static_cast<int64_t>(b->size));
  if (!b->streams.empty() && await_streams(b)) return;
  give_back(b);
}

void DeviceAllocator::record_stream(Block* b, StreamHandle stream) {
  if (stream == b->pool->stream) return;
  std::lock_guard lock(mutex_);
  if (std::find(b->streams.begin(), b->streams.end(), stream) == b->streams.end())
    b->streams.push_back(stream);
}

bool DeviceAllocator::try_charge(size_t bytes) {
  const int64_t limit = limit_.load(std::memory_order_relaxed);
  if (bytes > static_cast<size_t>(limit)) return false;  // also what would wrap when rounded
  const auto n = static_cast<int64_t>(round_charge(bytes));
  // What deferred work alone keeps is not counted, and is in the way until that work has run.
  if (!used_.add_within(n, limit - hidden_.load(std::memory_order_relaxed))) return false;
  charged_.fetch_add(n, std::memory_order_relaxed);
  return true;
}

void DeviceAllocator::uncharge(size_t bytes) {
  const auto n = static_cast<int64_t>(round_charge(bytes));
  charged_.fetch_sub(n, std::memory_order_relaxed);
  used_.subtract(n);
}

void DeviceAllocator::hide(size_t bytes) {
  const auto n = static_cast<int64_t>(round_charge(bytes));
  hidden_.fetch_add(n, std::memory_order_relaxed);
  used_.subtract(n);
}
void DeviceAllocator::unhide(size_t bytes) {
  const auto n = static_cast<int64_t>(round_charge(bytes));
  used_.add_quietly(n);
  hidden_.fetch_sub(n, std::memory_order_relaxed);
}

void DeviceAllocator::reset_peak() {
  used_.reset_peak();
  reserved_.reset_peak();
}

void DeviceAllocator::set_fraction(double fraction) {
  TS_CHECK_VALUE(fraction >= 0 && fraction <= 1, "Invalid fraction value: ", fraction,
                 ". Allowed range: 0~1");
  limit_.store(static_cast<int64_t>(fraction * static_cast<double>(total_)),
               std::memory_order_relaxed);
}

}  // namespace tessera::memory
