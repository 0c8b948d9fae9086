// The caching allocator of one device, written over the driver table alone.
#pragma once
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "tessera/memory/block.h"

namespace tessera::memory {

// A count with its high-water mark.
class Gauge {
 public:
  void add(int64_t n) { raise_peak(now_.fetch_add(n, std::memory_order_relaxed) + n); }
  // Leaves the peak alone: for what was counted before.
  void add_quietly(int64_t n) { now_.fetch_add(n, std::memory_order_relaxed); }
  void subtract(int64_t n) { now_.fetch_sub(n, std::memory_order_relaxed); }
  bool add_within(int64_t n, int64_t limit);
  int64_t now() const { return now_.load(std::memory_order_relaxed); }
  int64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  void reset_peak() { peak_.store(now(), std::memory_order_relaxed); }

 private:
  void raise_peak(int64_t v) {
    int64_t old = peak();
    while (v > old && !peak_.compare_exchange_weak(old, v, std::memory_order_relaxed)) {
    }
  }
  std::atomic<int64_t> now_{0};
  std::atomic<int64_t> peak_{0};
};

using PressureHook = void (*)(int device);
extern std::atomic<PressureHook> pressure_hook;

class DeviceAllocator {
 public:
  DeviceAllocator(const Backend* backend, int device);
  ~DeviceAllocator();
  DeviceAllocator(const DeviceAllocator&) = delete;

  Block* allocate(size_t bytes, StreamHandle stream);
  void deallocate(Block* b) noexcept;
  void record_stream(Block* b, StreamHandle stream);

  bool try_charge(size_t bytes);
  void uncharge(size_t bytes);
  void hide(size_t bytes);
  void unhide(size_t bytes);
  void empty_cache();
  void set_fraction(double fraction);

  const Gauge& used() const { return used_; }
  const Gauge& reserved() const { return reserved_; }
  void reset_peak();
  int64_t num_alloc_retries() const { return retries_.load(std::memory_order_relaxed); }
  int64_t num_ooms() const { return ooms_.load(std::memory_order_relaxed); }

  // Held across fork, so that a child can still free.
  std::mutex& mutex() { return mutex_; }

  // For tests: every block, by segment in address order.
  std::vector<const Block*> all_blocks();

 private:
  struct Event {
    EventHandle handle;
    Block* block;
  };

  StreamPool& pool_of(StreamHandle stream);
  Block* take(StreamPool& pool, size_t size);
  Block* allocate_slow(std::unique_lock<std::mutex>& lock, StreamPool& pool, size_t bytes,
                       size_t size);
  // Calls the pressure hook, if there is one, without the lock.
  bool relieve(std::unique_lock<std::mutex>& lock);
  // Null, with the reason in *status, when the driver (or the fraction) refuses.
  Block* add_segment(StreamPool& pool, bool small, size_t bytes, Status* status);
  void give_back(Block* b);
  Block* merge(Block* left, Block* right);
  bool await_streams(Block* b);
  void poll_events();
  void wait_events();
  void finish_event(Event event);
  void release_free_segments();
  Block* new_block();
  void recycle(Block* b);
  [[noreturn]] void raise_oom(std::unique_lock<std::mutex>& lock, size_t bytes);
  std::string oom_text(size_t bytes, int64_t largest, int64_t split) const;

  const Backend* backend_;
  const int device_;
  int64_t total_ = 0;
  std::atomic<int64_t> limit_{0};
  Gauge used_;  // blocks and charges
  Gauge reserved_;
  std::atomic<int64_t> charged_{0};
  std::atomic<int64_t> hidden_{0};
  std::atomic<int64_t> retries_{0};
  std::atomic<int64_t> ooms_{0};

  std::mutex mutex_;  // guards what follows
  StreamPool* last_pool_ = nullptr;
  std::unordered_map<StreamHandle, std::unique_ptr<StreamPool>> pools_;
  std::unordered_map<StreamHandle, std::deque<Event>> waiting_;  // in order of recording
  size_t num_waiting_ = 0;
  std::vector<EventHandle> idle_events_;
  std::deque<Block> storage_;
  Block* spare_ = nullptr;
  std::unordered_map<char*, Block*> segments_;  // first block of each, by address
};

}  // namespace tessera::memory
