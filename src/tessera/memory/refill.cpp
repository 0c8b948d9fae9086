// The slow paths of the allocator: more memory, events of other streams, giving memory back.
#include <algorithm>
#include <chrono>
#include <new>
#include <thread>

#include "tessera/base/error.h"
#include "tessera/driver/stream_pool.h"
#include "tessera/memory/device_allocator.h"

namespace tessera::memory {

namespace {

size_t segment_size(size_t size) {
  if (size <= kSmallLimit) return kSmallSegment;
  if (size < kLargeAlone) return kLargeSegment;
  return (size + kSegmentUnit - 1) / kSegmentUnit * kSegmentUnit;
}

}  // namespace

// In no list of free ones yet; null, with the reason in *status, when there is no memory.
Block* DeviceAllocator::add_segment(StreamPool& pool, bool small, size_t bytes, Status* status) {
  if (reserved_.now() + static_cast<int64_t>(bytes) > allowed()) {
    *status = {Code::kOutOfMemory, nullptr};
    return nullptr;
  }
  void* p = nullptr;
  *status = backend_->allocate(device_, bytes, &p);
  if (!status->ok()) return nullptr;
  Block* b = new_block();
  b->ptr = static_cast<char*>(p);
  b->size = bytes;
  b->pool = &pool;
  b->small = small;
  segments_[b->ptr] = b;
  const auto n = static_cast<int64_t>(bytes);
  reserved_.add(n);
  stats_.segment.add(small, 1);
  stats_.reserved_bytes.add(small, n);
  if (bytes >= config_.max_split) stats_.oversize_segments.add(1);
  ++stats_.num_device_alloc;
  if (history_.on()) history_.add(Action::kSegmentAlloc, p, bytes, pool.stream, 0);
  return b;
}

bool DeviceAllocator::grow(StreamPool& pool, bool small, size_t size, bool force, Status* status) {
  if (page_bytes_)
    if (Arena* a = arena_of(pool, small)) return grow_arena(*a, size, force, status);
  if (force) release_free_segments();
  const size_t segment = segment_size(size);
  Block* b = add_segment(pool, small, segment, status);
  // A shared segment is a convenience; at the end of memory the request alone will do.
  const size_t alone = (size + kSegmentUnit - 1) / kSegmentUnit * kSegmentUnit;
  if (!b && force && alone < segment) b = add_segment(pool, small, alone, status);
  if (b) pool.insert(b);
  return b != nullptr;
}

Block* DeviceAllocator::allocate_slow(std::unique_lock<Mutex>& lock, StreamPool& pool, size_t bytes,
                                      size_t size, Owner owner) {
  const bool small = size <= kSmallLimit;
  if (config_.gc_threshold > 0 &&
      static_cast<double>(reserved_.now()) > config_.gc_threshold * static_cast<double>(allowed()))
    release_free_segments();
  Status status;
  if (grow(pool, small, size, false, &status)) return take(pool, size, owner);
  if (status.code != Code::kOutOfMemory) check(status, "allocating device memory");

  retries_.fetch_add(1, std::memory_order_relaxed);
  if (relieve(lock)) {
    poll_events();
    if (Block* b = take(pool, size, owner)) return b;
  }
  wait_events();
  ++stats_.num_sync_all_streams;
  if (Block* b = take(pool, size, owner)) return b;
  if (grow(pool, small, size, true, &status)) return take(pool, size, owner);
  if (status.code != Code::kOutOfMemory) check(status, "allocating device memory");
  raise_oom(lock, bytes);
}

// Without a cache every tensor is an allocation of the driver's, exactly as long as asked for: what
// memory checkers need.
Block* DeviceAllocator::allocate_directly(std::unique_lock<Mutex>& lock, StreamPool& pool,
                                          size_t bytes, Owner owner) {
  Status status;
  const bool small = bytes <= kSmallLimit;
  for (bool again : {false, true}) {
    if (again) {
      retries_.fetch_add(1, std::memory_order_relaxed);
      relieve(lock);
      wait_events();
    }
    if (Block* b = add_segment(pool, small, bytes, &status)) {
      b->in_use = true;
      count_used(b->size, owner);
      return b;
    }
    if (status.code != Code::kOutOfMemory) check(status, "allocating device memory");
  }
  raise_oom(lock, bytes);
}

bool DeviceAllocator::relieve(std::unique_lock<Mutex>& lock) {
  // The work run by the hook allocates too; what is out of memory there is simply out of memory.
  static thread_local bool inside = false;
  PressureHook hook = pressure_hook.load(std::memory_order_acquire);
  if (!hook || inside) return false;
  struct Mark {
    Mark() { inside = true; }
    ~Mark() { inside = false; }
  };
  lock.unlock();
  {
    Mark mark;
    hook(device_);
  }
  lock.lock();
  return true;
}

EventHandle DeviceAllocator::idle_event() {
  EventHandle e = nullptr;
  if (!idle_events_.empty()) {
    e = idle_events_.back();
    idle_events_.pop_back();
  } else if (!backend_->event_create(device_, false, &e).ok()) {
    return nullptr;
  }
  return e;
}

bool DeviceAllocator::await_streams(Block* b) {
  for (StreamHandle s : b->streams) {
    EventHandle e = idle_event();
    if (!e || !backend_->event_record(device_, e, s).ok()) {
      // The device is lost, or the host has no memory for an event. The stream is synchronized.
      if (e) keep_event(e);
      backend_->stream_synchronize(device_, s);
      continue;
    }
    try {
      waiting_[s].push_back({e, b});
    } catch (const std::bad_alloc&) {
      backend_->event_synchronize(device_, e);
      keep_event(e);
      continue;
    }
    ++b->waiting;
    ++num_waiting_;
  }
  b->streams.clear();
  return b->waiting != 0;
}

void DeviceAllocator::keep_event(EventHandle e) noexcept {
  try {
    idle_events_.push_back(e);
  } catch (const std::bad_alloc&) {
    backend_->event_destroy(device_, e);
  }
}

void DeviceAllocator::finish_event(Event event) {
  keep_event(event.handle);
  --num_waiting_;
  if (--event.block->waiting == 0) give_back(event.block);
}

void DeviceAllocator::poll_events() {
  for (auto& [stream, queue] : waiting_) {
    while (!queue.empty()) {
      Event event = queue.front();
      if (backend_->event_query(device_, event.handle).code == Code::kNotReady) break;
      queue.pop_front();
      finish_event(event);
    }
  }
}

// By polling: a synchronising call would take the failure of somebody's kernel with it, which is
// for the next synchronisation the user asks for.
void DeviceAllocator::wait_events() {
  while (poll_events(), num_waiting_) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

bool DeviceAllocator::is_ours(StreamHandle stream) const {
  if (!stream) return true;
  const std::vector<StreamHandle> made = streams_made(backend_, device_);
  return std::find(made.begin(), made.end(), stream) != made.end();
}

// By polling, as above. Streams that are captured have nothing queued.
bool DeviceAllocator::settle(double patience) {
  std::vector<EventHandle> events;
  auto record = [&](auto call) {
    EventHandle e = idle_event();
    if (!e) return false;
    const bool recorded = call(e).ok();
    (recorded ? events : idle_events_).push_back(e);
    return recorded;
  };
  bool others = false;
  for_each_movable([&](const StreamPool& pool) { others = others || !is_ours(pool.stream); });
  others_settled_ = others && captures_.empty() && backend_->event_record_all &&
                    record([&](EventHandle e) { return backend_->event_record_all(device_, e); });
  if (!others_settled_) {
    std::vector<StreamHandle> ours = streams_made(backend_, device_);
    ours.push_back(nullptr);
    for (StreamHandle s : ours)
      if (captures_.empty() || !is_captured(s))
        record([&](EventHandle e) { return backend_->event_record(device_, e, s); });
  }
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  bool done = true;
  for (EventHandle e : events)
    while (done && backend_->event_query(device_, e).code == Code::kNotReady) {
      done = std::chrono::duration<double>(Clock::now() - begin).count() < patience;
      std::this_thread::sleep_for(std::chrono::microseconds(10));
    }
  idle_events_.insert(idle_events_.end(), events.begin(), events.end());
  return done;
}

// The driver waits for work that still uses a segment before it takes it back.
void DeviceAllocator::release_free_segments() {
  for_each_movable([&](StreamPool& pool) {
    pool.for_each_free([&](Block* b) {
      if (!b->whole_segment()) return;
      pool.remove(b);
      const auto n = static_cast<int64_t>(b->size);
      reserved_.subtract(n);
      stats_.segment.subtract(b->small, 1);
      stats_.reserved_bytes.subtract(b->small, n);
      if (b->size >= config_.max_split) stats_.oversize_segments.subtract(1);
      ++stats_.num_device_free;
      if (history_.on()) history_.add(Action::kSegmentFree, b->ptr, b->size, pool.stream, 0);
      segments_.erase(b->ptr);
      backend_->deallocate(device_, b->ptr);
      recycle(b);
    });
  });
  if (page_bytes_) release_free_pages();
}

void DeviceAllocator::empty_cache() {
  std::lock_guard lock(mutex_);
  wait_events();
  release_free_segments();
}

std::vector<const Block*> DeviceAllocator::all_blocks() {
  std::lock_guard lock(mutex_);
  std::vector<const Block*> out;
  for_each_block([&](const Block* b) { out.push_back(b); });
  return out;
}

}  // namespace tessera::memory
