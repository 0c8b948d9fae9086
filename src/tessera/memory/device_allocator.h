// The caching allocator of one device, written over the driver table alone.
//
// Note [How memory is found]
// Requests are rounded to 512 bytes; those of up to 1 MiB and the larger ones live apart. A request
// takes the smallest free block of its stream that fits, and leaves the rest. On a miss the
// stream's arena grows: the place in its addresses that needs the fewest new pages is chosen, and
// pages come first from memory that is wholly free elsewhere (of this stream, then of others, when
// nothing is queued any more) and only then from the driver. Devices without pages, and
// expandable_segments:False, get segments of 2, 20 or more MiB instead, as PyTorch's.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "tessera/base/mutex.h"
#include "tessera/memory/allocator.h"
#include "tessera/memory/arena.h"
#include "tessera/memory/config.h"
#include "tessera/memory/history.h"
#include "tessera/memory/stats.h"

namespace tessera::memory {

// A count with its high-water mark, readable without the lock.
class Gauge {
 public:
  // Returns the new count.
  int64_t add(int64_t n) {
    const int64_t now = now_.fetch_add(n, std::memory_order_relaxed) + n;
    raise_peak(now);
    return now;
  }
  // Leaves the peak alone: for what was counted before.
  void add_quietly(int64_t n) { now_.fetch_add(n, std::memory_order_relaxed); }
  void subtract(int64_t n) { now_.fetch_sub(n, std::memory_order_relaxed); }
  int64_t now() const { return now_.load(std::memory_order_relaxed); }
  int64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  void reset_peak() { peak_.store(now(), std::memory_order_relaxed); }
  void raise_peak(int64_t v) {
    int64_t old = peak();
    while (v > old && !peak_.compare_exchange_weak(old, v, std::memory_order_relaxed)) {
    }
  }

 private:
  std::atomic<int64_t> now_{0};
  std::atomic<int64_t> peak_{0};
};

using PressureHook = void (*)(int device);
extern std::atomic<PressureHook> pressure_hook;
using RoomHook = void (*)(int device, size_t bytes);
extern std::atomic<RoomHook> room_hook;

// Of captured graphs; see Note [Memory of captured graphs].
struct PrivatePool {
  PoolId id;
  int users = 0;
  std::vector<StreamPool*> of_streams;
};

class DeviceAllocator {
 public:
  DeviceAllocator(const Backend* backend, int device, const Config& config = memory::config());
  ~DeviceAllocator();
  DeviceAllocator(const DeviceAllocator&) = delete;
  int device() const { return device_; }

  Block* allocate(size_t bytes, StreamHandle stream, const void* holder = nullptr,
                  Owner owner = Owner::kProgram);
  void deallocate(Block* b) noexcept;
  void record_stream(Block* b, StreamHandle stream);

  // See allocator.h for these.
  Usage usage() const;
  Charge charge(size_t bytes);
  void uncharge(size_t bytes);
  void set_unstored(size_t bytes);
  void clear_unstored(size_t bytes);
  void hide(size_t bytes);
  void unhide(size_t bytes);
  bool surely_fits(int64_t bytes);
  void guard_room(bool on);
  void empty_cache();
  void use_pool(PoolId id, StreamHandle stream);
  void leave_pool(PoolId id);
  void begin_capture(PoolId id, uint64_t capture);
  void end_capture(uint64_t capture);
  void set_fraction(double fraction);

  const Gauge& used() const { return used_; }
  // Most that had memory at one time; never below what is counted as in use now.
  int64_t peak_allocated();
  const Gauge& reserved() const { return reserved_; }
  void reset_peak();
  void reset_accumulated();
  int64_t num_alloc_retries() const { return retries_.load(std::memory_order_relaxed); }
  int64_t num_ooms() const { return ooms_.load(std::memory_order_relaxed); }
  std::vector<NamedCount> stats();

  History& history() { return history_; }
  // Segments, blocks and what was recorded, as text that Python's json reads; see snapshot.cpp.
  std::string snapshot();

  // For tests: the allocation after `n` others is out of memory, and with `permanent` all later
  // ones. -1: none.
  void fail_after(int64_t n, bool permanent);

  // Held across fork, so that a child can still free.
  Mutex& mutex() { return mutex_; }

  // For tests: every block, by segment or arena in address order.
  std::vector<const Block*> all_blocks();

 private:
  struct Event {
    EventHandle handle;
    Block* block;
  };
  // A piece of an arena's addresses.
  struct Spot {
    size_t begin = 0, end = 0;
    size_t pages = 0;  // to be mapped
  };
  struct Loose {  // pages that are mapped nowhere
    PageHandle handle;
    uint32_t count;
  };
  struct Donor {
    Block* block;
    size_t first;
    uint32_t count;
  };

  struct Capture {
    uint64_t id;
    PrivatePool* pool;
  };

  StreamPool& pool_of(StreamHandle stream);
  // Private pools (private_pool.cpp).
  StreamPool* captured_pool_of(StreamHandle stream);
  StreamPool& private_pool_of(PrivatePool& graphs, StreamHandle stream);
  bool is_captured(StreamHandle stream) const;
  // Every pool whose free memory may be given back or moved.
  template <class F>
  void for_each_movable(F f) const;
  void make_room(size_t bytes);
  Block* take(StreamPool& pool, size_t size, Owner owner);
  Block* handed_out(Block* b, size_t requested, const void* holder, SourceRef source,
                    uint32_t stack);
  Block* allocate_slow(std::unique_lock<Mutex>& lock, StreamPool& pool, size_t bytes, size_t size,
                       Owner owner);
  Block* allocate_directly(std::unique_lock<Mutex>& lock, StreamPool& pool, size_t bytes,
                           Owner owner);
  void count_used(size_t bytes, Owner owner);
  // Calls the pressure hook, if there is one, without the lock.
  bool relieve(std::unique_lock<Mutex>& lock);
  // More memory for the pool, of at least `size` in one piece. False, with the reason in *status,
  // when the driver (or the fraction) refuses. `force`: whatever is free may be moved.
  bool grow(StreamPool& pool, bool small, size_t size, bool force, Status* status);
  Block* add_segment(StreamPool& pool, bool small, size_t bytes, Status* status);

  // Arenas (arena.cpp).
  Arena* arena_of(StreamPool& pool, bool small);
  bool grow_arena(Arena& a, size_t size, bool force, Status* status);
  Spot cheapest_spot(const Arena& a, size_t size) const;
  size_t loosen(size_t pages, const Arena& keep, const Spot& spot, bool force,
                std::vector<Loose>* out);
  void collect_donors(const StreamPool& pool, const Arena& keep, const Spot& spot, size_t most,
                      std::vector<Donor>* out) const;
  void unmap(const Donor& donor, std::vector<Loose>* out);
  bool map_run(Arena& a, size_t first, size_t count, std::vector<Loose>* loose, Status* status);
  void drop_run(Arena& a, size_t first, size_t end);
  void destroy(std::vector<Loose>* loose);
  void extend_to(Arena& a, size_t top);
  void make_hole(Block* b, size_t begin, size_t end);
  void fill_hole(Arena& a, size_t begin, size_t end);
  Block* split(Block* b, size_t size);
  void release_free_pages();
  void trim(Arena& a);

  void give_back(Block* b);
  Block* merge(Block* left, Block* right);
  bool await_streams(Block* b);
  void poll_events();
  void wait_events();
  // Whether what is queued so far is done, on every stream, at the latest after so many seconds.
  // Streams of other libraries are left out, and the memory that was taken on them has to stay
  // where it is, unless the driver can tell of all work at once: one that was destroyed cannot be
  // asked, and nobody tells of that.
  bool settle(double patience = std::numeric_limits<double>::infinity());
  bool may_move();
  bool is_ours(StreamHandle stream) const;
  bool is_settled(const StreamPool& pool) const { return others_settled_ || is_ours(pool.stream); }
  void finish_event(Event event);
  EventHandle idle_event();
  void release_free_segments();
  void count_split(const Block* b, int sign);
  Block* new_block();
  // Makes sure that the next new_block() does not throw.
  void prepare_spare();
  void keep_event(EventHandle e) noexcept;
  void recycle(Block* b);
  int64_t allowed() const { return limit_.load(std::memory_order_relaxed); }
  [[noreturn]] void raise_oom(std::unique_lock<Mutex>& lock, size_t bytes);
  std::string oom_text(size_t bytes, int64_t largest, int64_t split,
                       const std::string& holders) const;
  std::string holders_text() const;
  template <class F>
  void for_each_block(F f) const;

  const Backend* backend_;
  const int device_;
  const Config config_;
  size_t page_bytes_ = 0;  // 0: segments
  int64_t total_ = 0;
  std::atomic<int64_t> limit_{0};
  Gauge used_;  // see Note [Figures of a device]
  Gauge reserved_;
  std::atomic<int64_t> real_{0};    // blocks in use; written under the lock
  std::atomic<int64_t> hidden_{0};  // this and the next: written under the lock of deferred work
  std::atomic<int64_t> unstored_{0};
  // Bytes that surely_fits() has found room for, and the same while guard_room() is on.
  std::atomic<int64_t> known_room_{0};
  std::atomic<int64_t> guard_{std::numeric_limits<int64_t>::max()};  // the largest: off
  std::atomic<int64_t> retries_{0};
  std::atomic<int64_t> ooms_{0};
  History history_;

  Mutex mutex_;  // guards what follows
  Stats stats_;
  StreamPool* last_pool_ = nullptr;
  std::unordered_map<StreamHandle, std::unique_ptr<StreamPool>> pools_;
  std::deque<PrivatePool> private_pools_;
  std::deque<StreamPool> private_streams_;  // theirs, and of those that are gone
  std::vector<Capture> captures_;           // under way
  Block* deferred_ = nullptr;  // freed during a capture, used by other streams; by free_next
  std::unordered_map<StreamHandle, std::deque<Event>> waiting_;  // in order of recording
  size_t num_waiting_ = 0;
  std::vector<EventHandle> idle_events_;
  bool others_settled_ = false;  // by the last settle()
  std::deque<Block> storage_;
  std::deque<Arena> arenas_;
  // See Note [When pages move].
  const std::chrono::steady_clock::time_point made_at_ = std::chrono::steady_clock::now();
  double moving_seconds_ = 0, waiting_seconds_ = 0;
  int64_t most_in_use_ = 0;
  size_t moved_bytes_ = 0;
  int64_t fail_in_ = -1;
  bool fail_on_ = false;
  Block* spare_ = nullptr;
  std::unordered_map<char*, Block*> segments_;  // first block of each, by address
};

template <class F>
void DeviceAllocator::for_each_movable(F f) const {
  for (auto& [stream, pool] : pools_)
    if (captures_.empty() || !is_captured(stream)) f(*pool);
  for (const StreamPool& pool : private_streams_)
    if (pool.orphan) f(const_cast<StreamPool&>(pool));
}

// By segment or arena, in address order.
template <class F>
void DeviceAllocator::for_each_block(F f) const {
  std::vector<const Block*> firsts;
  for (auto& [address, block] : segments_) firsts.push_back(block);
  for (const Arena& a : arenas_)
    if (a.first) firsts.push_back(a.first);
  std::sort(firsts.begin(), firsts.end(),
            [](const Block* a, const Block* b) { return a->ptr < b->ptr; });
  for (const Block* b : firsts)
    for (; b; b = b->next) f(b);
}

}  // namespace tessera::memory
