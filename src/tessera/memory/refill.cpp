// The slow paths of the allocator: new segments, events of other streams, giving memory back.
#include <algorithm>
#include <chrono>
#include <thread>

#include "tessera/base/error.h"
#include "tessera/memory/device_allocator.h"

namespace tessera::memory {

namespace {

size_t segment_size(size_t size) {
  if (size <= kSmallLimit) return kSmallSegment;
  if (size < kLargeAlone) return kLargeSegment;
  return (size + kSegmentUnit - 1) / kSegmentUnit * kSegmentUnit;
}

}  // namespace

Block* DeviceAllocator::add_segment(StreamPool& pool, bool small, size_t bytes, Status* status) {
  const int64_t after = reserved_.now() + static_cast<int64_t>(bytes);
  if (after > limit_.load(std::memory_order_relaxed)) {
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
  reserved_.add(static_cast<int64_t>(bytes));
  pool.insert(b);
  return b;
}

Block* DeviceAllocator::allocate_slow(std::unique_lock<std::mutex>& lock, StreamPool& pool,
                                      size_t bytes, size_t size) {
  const bool small = size <= kSmallLimit;
  const size_t segment = segment_size(size);
  Status status;
  if (add_segment(pool, small, segment, &status)) return take(pool, size);
  if (status.code != Code::kOutOfMemory) check(status, "allocating device memory");

  retries_.fetch_add(1, std::memory_order_relaxed);
  if (relieve(lock)) {
    poll_events();
    if (Block* b = take(pool, size)) return b;
  }
  wait_events();
  if (Block* b = take(pool, size)) return b;
  release_free_segments();
  if (add_segment(pool, small, segment, &status)) return take(pool, size);
  // A shared segment is a convenience; at the end of memory the request alone will do.
  const size_t alone = (size + kSegmentUnit - 1) / kSegmentUnit * kSegmentUnit;
  if (alone < segment && add_segment(pool, small, alone, &status)) return take(pool, size);
  if (status.code != Code::kOutOfMemory) check(status, "allocating device memory");
  raise_oom(lock, bytes);
}

bool DeviceAllocator::relieve(std::unique_lock<std::mutex>& lock) {
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

bool DeviceAllocator::await_streams(Block* b) {
  for (StreamHandle s : b->streams) {
    EventHandle e = nullptr;
    if (!idle_events_.empty()) {
      e = idle_events_.back();
      idle_events_.pop_back();
    } else if (!backend_->event_create(device_, false, &e).ok()) {
      continue;  // the device is lost: nothing on it will touch the block any more
    }
    if (!backend_->event_record(device_, e, s).ok()) {
      idle_events_.push_back(e);
      continue;
    }
    ++b->waiting;
    ++num_waiting_;
    waiting_[s].push_back({e, b});
  }
  b->streams.clear();
  return b->waiting != 0;
}

void DeviceAllocator::finish_event(Event event) {
  idle_events_.push_back(event.handle);
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

// The driver waits for work that still uses a segment before it takes it back.
void DeviceAllocator::release_free_segments() {
  for (auto& [stream, pool] : pools_) {
    pool->for_each_free([&](Block* b) {
      if (!b->whole_segment()) return;
      pool->remove(b);
      reserved_.subtract(static_cast<int64_t>(b->size));
      segments_.erase(b->ptr);
      backend_->deallocate(device_, b->ptr);
      recycle(b);
    });
  }
}

void DeviceAllocator::empty_cache() {
  std::lock_guard lock(mutex_);
  wait_events();
  release_free_segments();
}

std::vector<const Block*> DeviceAllocator::all_blocks() {
  std::lock_guard lock(mutex_);
  std::vector<const Block*> firsts, out;
  for (auto& [address, block] : segments_) firsts.push_back(block);
  std::sort(firsts.begin(), firsts.end(),
            [](const Block* a, const Block* b) { return a->ptr < b->ptr; });
  for (const Block* b : firsts)
    for (; b; b = b->next) out.push_back(b);
  return out;
}

}  // namespace tessera::memory
