// The paths of every call: take, split, give back, merge, charge.
#include "tessera/memory/device_allocator.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/memory/allocator.h"
#include "tessera/memory/capture.h"

namespace tessera::memory {

std::atomic<PressureHook> pressure_hook{nullptr};
std::atomic<RoomHook> room_hook{nullptr};

namespace {
// The share of the device that fragmentation may take: 1 / kRoomMargin.
constexpr int64_t kRoomMargin = 32;
constexpr int64_t kNoGuard = std::numeric_limits<int64_t>::max();

// For counts that change under one lock and are read without it.
void add_to(std::atomic<int64_t>& count, int64_t n) {
  count.store(count.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}
}  // namespace

DeviceAllocator::DeviceAllocator(const Backend* backend, int device, const Config& config)
    : backend_(backend), device_(device), config_(config) {
  int64_t free = 0;
  check(backend_->memory_info(device, &free, &total_), "asking for the size of device memory");
  limit_.store(static_cast<int64_t>(config.fraction * static_cast<double>(total_)),
               std::memory_order_relaxed);
  if (config.expandable && config.caching &&
      !(backend_->page_size && backend_->page_size(device, &page_bytes_).ok()))
    page_bytes_ = 0;
}

DeviceAllocator::~DeviceAllocator() {
  for (auto& [address, block] : segments_) backend_->deallocate(device_, address);
  for (Arena& a : arenas_) {
    for (size_t p = 0; p < a.pages.size(); ++p) {
      const Arena::Page& page = a.pages[p];
      if (page.count == 0 || page.first != p) continue;
      backend_->unmap_pages(device_, a.address(p), page.count * page_bytes_);
      backend_->destroy_pages(device_, page.handle, page.count * page_bytes_);
    }
    if (a.base) backend_->release_addresses(device_, a.base, a.reserved);
  }
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

void DeviceAllocator::prepare_spare() {
  if (spare_) return;
  SizeOrder order;
  Block* b = nullptr;
  order.insert(b);
  b = &storage_.emplace_back();
  b->node = order.extract(order.begin());
  spare_ = b;
}

Block* DeviceAllocator::new_block() {
  prepare_spare();
  Block* b = spare_;
  spare_ = b->free_next;
  b->free_next = nullptr;
  return b;
}

void DeviceAllocator::recycle(Block* b) {
  b->ptr = nullptr;
  b->arena = nullptr;
  b->mapped = true;
  b->prev = b->next = b->free_prev = nullptr;
  b->free_next = spare_;
  spare_ = b;
}

// The rest becomes a block of the same kind, in no list of free ones.
Block* DeviceAllocator::split(Block* b, size_t size) {
  Block* r = new_block();
  r->ptr = b->ptr + size;
  r->size = b->size - size;
  r->pool = b->pool;
  r->arena = b->arena;
  r->small = b->small;
  r->mapped = b->mapped;
  r->prev = b;
  r->next = b->next;
  if (r->next) r->next->prev = r;
  b->next = r;
  b->size = size;
  if (b->arena && b->arena->last == b) b->arena->last = r;
  return r;
}

void DeviceAllocator::count_used(size_t bytes, Owner owner) {
  const auto n = static_cast<int64_t>(bytes);
  if (owner == Owner::kProgram)
    used_.add(n);
  else
    used_.add_quietly(n);
  add_to(real_, n);
}

Block* DeviceAllocator::take(StreamPool& pool, size_t size, Owner owner) {
  const bool small = size <= kSmallLimit;
  Block* b = small ? pool.small.best_fit(size) : pool.large.best_fit(size);
  if (!b) return nullptr;
  prepare_spare();  // for the rest: from here on nothing throws
  if (!small && !b->arena && config_.max_split != SIZE_MAX) [[unlikely]] {
    // Blocks beyond the limit are kept whole, for requests of about their size.
    if (size < config_.max_split && b->size >= config_.max_split) return nullptr;
    if (size >= config_.max_split && b->size - size >= kLargeSegment) return nullptr;
  }
  pool.remove(b);
  count_split(b, -1);
  const size_t rest = b->size - size;
  // In segments a large block gives up its rest only where that is a large block itself: slivers
  // would stay. In arenas they come together again.
  const bool splits =
      small || b->arena ? rest >= kUnit : rest > kSmallLimit && size < config_.max_split;
  if (splits) {
    Block* r = split(b, size);
    pool.insert(r);
    count_split(r, 1);
  }
  b->in_use = true;
  count_used(b->size, owner);
  return b;
}

// PyTorch counts free pieces of segments that are in use in part; an arena has none that could not
// be given back.
void DeviceAllocator::count_split(const Block* b, int sign) {
  if (b->arena || b->whole_segment()) return;
  if (sign > 0) {
    stats_.inactive_split.add(b->small, 1);
    stats_.inactive_split_bytes.add(b->small, static_cast<int64_t>(b->size));
  } else {
    stats_.inactive_split.subtract(b->small, 1);
    stats_.inactive_split_bytes.subtract(b->small, static_cast<int64_t>(b->size));
  }
}

Block* DeviceAllocator::handed_out(Block* b, size_t requested, const void* holder, SourceRef source,
                                   uint32_t stack) {
  b->requested = requested;
  b->holder = holder;
  b->source = std::move(source);
  b->stack = stack;
  const auto size = static_cast<int64_t>(b->size);
  ++b->pool->live;
  stats_.allocation.add(b->small, 1);
  stats_.active.add(b->small, 1);
  stats_.allocated_bytes.add(b->small, size);
  stats_.active_bytes.add(b->small, size);
  stats_.requested_bytes.add(b->small, static_cast<int64_t>(requested));
  if (b->size >= config_.max_split) stats_.oversize_allocations.add(1);
  if (history_.on()) [[unlikely]]
    history_.add(Action::kAlloc, b->ptr, b->requested, b->pool->stream, stack);
  return b;
}

Block* DeviceAllocator::allocate(size_t bytes, StreamHandle stream, const void* holder,
                                 Owner owner) {
  // Beyond any device, and past where rounding up would wrap around.
  constexpr size_t kAbsurd = size_t{1} << 60;
  SourceRef source = SourceRef::of_allocation();
  History::Stack calls;
  if (history_.on()) [[unlikely]]
    calls = history_.capture(false);
  // Scratch memory is taken inside a kernel's call, which may hold locks of the backend.
  if (holder && owner == Owner::kProgram) make_room(bytes);
  std::unique_lock lock(mutex_);
  const uint32_t stack = calls.empty() ? 0 : history_.keep(std::move(calls));
  if (bytes > kAbsurd) [[unlikely]]
    raise_oom(lock, bytes);
  if (fail_in_ >= 0) [[unlikely]] {
    if (fail_in_ == 0) {
      if (!fail_on_) fail_in_ = -1;
      raise_oom(lock, bytes);
    }
    --fail_in_;
  }
  size_t size = std::max<size_t>(bytes, 1);
  if (config_.roundup_divisions) [[unlikely]]
    size = round_up_divisions(size, config_.roundup_divisions);
  size = (size + kUnit - 1) / kUnit * kUnit;
  // While something is captured no event is asked: what is waited for stays a little longer.
  if (num_waiting_ && captures_.empty()) poll_events();
  StreamPool* captured = captures_.empty() ? nullptr : captured_pool_of(stream);
  StreamPool& pool = captured ? *captured : pool_of(stream);
  Block* b = nullptr;
  if (!config_.caching) [[unlikely]] {
    b = allocate_directly(lock, pool, bytes, owner);
  } else {
    b = take(pool, size, owner);
    if (!b) [[unlikely]]
      b = allocate_slow(lock, pool, bytes, size, owner);
  }
  if (owner == Owner::kDeferredWork) hide(bytes);
  return handed_out(b, bytes, holder, std::move(source), stack);
}

Block* DeviceAllocator::merge(Block* left, Block* right) {
  left->size += right->size;
  left->next = right->next;
  if (left->next) left->next->prev = left;
  if (left->arena && left->arena->last == right) left->arena->last = left;
  recycle(right);
  return left;
}

void DeviceAllocator::give_back(Block* b) {
  --b->pool->live;
  stats_.active.subtract(b->small, 1);
  stats_.active_bytes.subtract(b->small, static_cast<int64_t>(b->size));
  if (history_.on()) [[unlikely]]
    history_.add(Action::kFreeCompleted, b->ptr, b->requested, b->pool->stream, b->stack);
  if (!config_.caching) [[unlikely]] {
    segments_.erase(b->ptr);
    reserved_.subtract(static_cast<int64_t>(b->size));
    stats_.segment.subtract(b->small, 1);
    stats_.reserved_bytes.subtract(b->small, static_cast<int64_t>(b->size));
    ++stats_.num_device_free;
    backend_->deallocate(device_, b->ptr);
    recycle(b);
    return;
  }
  if (b->prev && b->prev->is_free()) {
    b->pool->remove(b->prev);
    count_split(b->prev, -1);
    b = merge(b->prev, b);
  }
  if (b->next && b->next->is_free()) {
    b->pool->remove(b->next);
    count_split(b->next, -1);
    merge(b, b->next);
  }
  b->pool->insert(b);
  count_split(b, 1);
}

void DeviceAllocator::deallocate(Block* b) noexcept {
  // Let go after the lock: its release takes no lock of ours, but may be the last of its code.
  SourceRef source;
  std::lock_guard lock(mutex_);
  b->in_use = false;
  source = std::move(b->source);
  b->holder = nullptr;
  const auto size = static_cast<int64_t>(b->size);
  used_.subtract(size);
  add_to(real_, -size);
  stats_.allocation.subtract(b->small, 1);
  stats_.allocated_bytes.subtract(b->small, size);
  stats_.requested_bytes.subtract(b->small, static_cast<int64_t>(b->requested));
  if (b->size >= config_.max_split) stats_.oversize_allocations.subtract(1);
  if (history_.on()) [[unlikely]]
    history_.add(Action::kFreeRequested, b->ptr, b->requested, b->pool->stream, b->stack);
  if (!b->streams.empty() && !captures_.empty()) [[unlikely]] {
    b->waiting = 1;  // an event recorded now would be part of the capture
    b->free_next = deferred_;
    deferred_ = b;
    return;
  }
  if (!b->streams.empty() && await_streams(b)) return;
  give_back(b);
}

void DeviceAllocator::record_stream(Block* b, StreamHandle stream) {
  if (stream == b->pool->stream) return;
  std::lock_guard lock(mutex_);
  if (std::find(b->streams.begin(), b->streams.end(), stream) == b->streams.end())
    b->streams.push_back(stream);
}

Usage DeviceAllocator::usage() const {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const int64_t used = used_.now(), hidden = hidden_.load(kRelaxed), real = real_.load(kRelaxed);
  return {used,         used + hidden - real, hidden, unstored_.load(kRelaxed),
          used_.peak(), limit_.load(kRelaxed)};
}

Charge DeviceAllocator::charge(size_t bytes) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  // Includes sizes that would wrap around when rounded up.
  if (bytes > static_cast<size_t>(limit_.load(kRelaxed))) return Charge::kTooLarge;
  const int64_t used = used_.add(static_cast<int64_t>(round_charge(bytes)));
  const int64_t most = used + hidden_.load(kRelaxed) + unstored_.load(kRelaxed);
  return most > guard_.load(kRelaxed) ? Charge::kBeyondRoom : Charge::kMade;
}

void DeviceAllocator::uncharge(size_t bytes) {
  used_.subtract(static_cast<int64_t>(round_charge(bytes)));
}

void DeviceAllocator::set_unstored(size_t bytes) {
  add_to(unstored_, static_cast<int64_t>(round_charge(bytes)));
  uncharge(bytes);
}
void DeviceAllocator::clear_unstored(size_t bytes) {
  add_to(unstored_, -static_cast<int64_t>(round_charge(bytes)));
}

void DeviceAllocator::hide(size_t bytes) {
  const auto n = static_cast<int64_t>(round_charge(bytes));
  add_to(hidden_, n);
  used_.subtract(n);
}
void DeviceAllocator::unhide(size_t bytes) {
  const auto n = static_cast<int64_t>(round_charge(bytes));
  used_.add_quietly(n);
  add_to(hidden_, -n);
}

// Without the lock: the hook runs deferred work, which allocates and frees.
void DeviceAllocator::make_room(size_t bytes) {
  const Usage u = usage();
  const auto n = static_cast<int64_t>(round_charge(bytes));
  if (u.most() + n <= std::min(u.peak, guard_.load(std::memory_order_relaxed))) [[likely]]
    return;
  if (u.charged + u.hidden + u.unstored == 0) return;
  if (RoomHook hook = room_hook.load(std::memory_order_acquire)) hook(device_, bytes);
}

// Caches the result for half of the remaining room, so that the driver is rarely queried.
bool DeviceAllocator::surely_fits(int64_t bytes) {
  const int64_t needed = usage().most() + bytes;
  if (needed <= known_room_.load(std::memory_order_relaxed)) return true;
  int64_t free = 0, total = total_;
  if (detail::captures.load(std::memory_order_relaxed) > 0)
    free = total;  // the driver must not be asked during a capture
  else if (!backend_->memory_info(device_, &free, &total).ok())
    free = 0;
  const int64_t reserved = reserved_.now();
  int64_t room = std::min(limit_.load(std::memory_order_relaxed), reserved + free);
  room -= room / kRoomMargin;
  if (needed > room) return false;
  const int64_t known = std::max(needed, reserved + (room - reserved) / 2);
  known_room_.store(known, std::memory_order_relaxed);
  if (guard_.load(std::memory_order_relaxed) != kNoGuard) guard_room(true);
  return true;
}

void DeviceAllocator::guard_room(bool on) {
  guard_.store(on ? known_room_.load(std::memory_order_relaxed) : kNoGuard,
               std::memory_order_relaxed);
}

void DeviceAllocator::fail_after(int64_t n, bool permanent) {
  std::lock_guard lock(mutex_);
  fail_in_ = n;
  fail_on_ = permanent;
}

void DeviceAllocator::set_fraction(double fraction) {
  TS_CHECK_VALUE(fraction >= 0 && fraction <= 1, "Invalid fraction value: ", fraction,
                 ". Allowed range: 0~1");
  limit_.store(static_cast<int64_t>(fraction * static_cast<double>(total_)),
               std::memory_order_relaxed);
  known_room_.store(0, std::memory_order_relaxed);
}

}  // namespace tessera::memory
