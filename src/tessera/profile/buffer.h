// What one thread has noted: appended by that thread alone, read by any.
#pragma once
#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <string_view>
#include <vector>

#include "tessera/profile/event.h"

namespace tessera::profile {

// Note [Nobody waits]
// A thread fills the next place of its last block, then publishes it by raising the block's count;
// blocks never move. A reader sees what is published and everything those events point to. So no
// lock is taken where events are noted, also not when a profile ends while threads still work.
class Buffer {
 public:
  Buffer(uint32_t thread, uint64_t number);
  ~Buffer();
  Buffer(const Buffer&) = delete;

  // By its thread: a place to fill, and the end of that. Null when the profile is full.
  Event* begin_event();
  void publish() {
    last_->count.store(last_->count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  // Room that lives as long as the buffer, aligned to 8 bytes.
  void* room(size_t bytes);
  const char* copy(std::string_view text);
  // Lives as long; to be filled before the event is published.
  std::vector<SourceRef>& new_sources() { return sources_.emplace_back(); }
  uint64_t next_id() { return number_ << 40 | ++ids_; }

  // By anybody.
  template <class F>
  void each(F f) const {
    for (const Block* b = &first_; b; b = b->next.load(std::memory_order_acquire)) {
      const uint32_t n = b->count.load(std::memory_order_acquire);
      for (uint32_t i = 0; i < n; ++i) f(b->events[i]);
    }
  }
  uint32_t thread() const { return thread_; }
  const std::string& thread_name() const { return thread_name_; }

 private:
  static constexpr uint32_t kEvents = 512;
  static constexpr size_t kRoom = size_t{64} << 10;
  struct Block {
    std::atomic<uint32_t> count{0};
    std::atomic<Block*> next{nullptr};
    Event events[kEvents];
  };

  const uint32_t thread_;
  const uint64_t number_;
  std::string thread_name_;
  uint64_t ids_ = 0;
  Block first_;
  Block* last_ = &first_;
  std::deque<std::unique_ptr<char[]>> rooms_;
  size_t room_left_ = 0;
  char* room_at_ = nullptr;
  std::deque<std::vector<SourceRef>> sources_;
};

}  // namespace tessera::profile
