#include "tessera/profile/buffer.h"

#include <pthread.h>

#include <new>

#include "tessera/profile/record.h"

namespace tessera::profile {

Buffer::Buffer(uint32_t thread, uint64_t number) : thread_(thread), number_(number) {
  char name[32] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  thread_name_ = name;
}

Buffer::~Buffer() {
  Block* b = first_.next.load(std::memory_order_acquire);
  while (b) {
    Block* next = b->next.load(std::memory_order_acquire);
    delete b;
    b = next;
  }
}

Event* Buffer::begin_event() {
  if (last_->count.load(std::memory_order_relaxed) == kEvents) {
    if (!take_room_for(kEvents)) return nullptr;
    auto* fresh = new (std::nothrow) Block;
    if (!fresh) return nullptr;
    last_->next.store(fresh, std::memory_order_release);
    last_ = fresh;
  }
  return &last_->events[last_->count.load(std::memory_order_relaxed)];
}

void* Buffer::room(size_t bytes) {
  bytes = (bytes + 7) & ~size_t{7};
  if (bytes > room_left_) {
    room_left_ = bytes > kRoom ? bytes : kRoom;
    rooms_.push_back(std::make_unique_for_overwrite<char[]>(room_left_));
    room_at_ = rooms_.back().get();
  }
  void* at = room_at_;
  room_at_ += bytes;
  room_left_ -= bytes;
  return at;
}

const char* Buffer::copy(std::string_view text) {
  char* to = static_cast<char*>(room(text.size() + 1));
  std::memcpy(to, text.data(), text.size());
  to[text.size()] = 0;
  return to;
}

}  // namespace tessera::profile
