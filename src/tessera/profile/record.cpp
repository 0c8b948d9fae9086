#include "tessera/profile/record.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <new>

#include "tessera/base/fork.h"

namespace tessera::profile {

std::atomic<uint32_t> wanted{0};
MarkHooks mark_hooks;

namespace {

struct Profiles {
  Mutex mutex;
  int on = 0;
  int wants[6] = {};  // how many want each bit of What
  uint64_t threads = 0;
  std::vector<std::shared_ptr<Buffer>> buffers;
};
Profiles& profiles() {
  static auto* all = new Profiles;  // threads may note something while the process ends
  return *all;
}

// A forked child is not profiled: its events would never be read.
const AtFork g_at_fork(
    ForkStage::kProfile, [] { profiles().mutex.lock(); }, [] { profiles().mutex.unlock(); },
    [] {
      wanted.store(0);
      profiles().mutex.unlock();
    });

std::atomic<uint64_t> g_generation{0};
std::atomic<int64_t> g_room{0};
std::atomic<int64_t> g_dropped{0};

int64_t most_events() {
  static const int64_t most = [] {
    const char* v = std::getenv("TESSERA_PROFILE_MAX_EVENTS");
    const int64_t n = v && *v ? std::atoll(v) : 0;
    return n > 0 ? n : int64_t{16} << 20;
  }();
  return most;
}

// Without a constructor or destructor, so that looking at it costs little. A thread that ends may
// still run deferred work, after its other variables are gone: that is not noted any more.
struct ThisThread {
  Buffer* buffer;
  uint64_t generation;
  Scope* scope;
  bool ended;
};
constinit thread_local ThisThread t_this{};

// Keeps the thread's buffer while the thread may write to it.
struct Holder {
  std::shared_ptr<Buffer> buffer;
  ~Holder() {
    t_this.ended = true;
    t_this.buffer = nullptr;
  }
};

[[gnu::noinline]] void new_buffer(ThisThread& t) {
  thread_local Holder holder;
  Profiles& p = profiles();
  std::lock_guard lock(p.mutex);
  holder.buffer = std::make_shared<Buffer>(static_cast<uint32_t>(syscall(SYS_gettid)), ++p.threads);
  t.buffer = holder.buffer.get();
  t.generation = g_generation.load(std::memory_order_relaxed);
  if (p.on) p.buffers.push_back(holder.buffer);
}

Buffer* buffer_of(ThisThread& t) {
  const uint64_t generation = g_generation.load(std::memory_order_acquire);
  if (t.generation != generation || !t.buffer) [[unlikely]]
    new_buffer(t);
  return t.buffer;
}

void set_wanted(const Profiles& p) {
  uint32_t all = 0;
  for (int bit = 0; bit < 6; ++bit)
    if (p.wants[bit]) all |= 1u << bit;
  wanted.store(all, std::memory_order_relaxed);
}

}  // namespace

void enter(uint32_t what) {
  Profiles& p = profiles();
  std::lock_guard lock(p.mutex);
  if (p.on++ == 0) {
    p.buffers.clear();
    g_generation.fetch_add(1, std::memory_order_release);
    g_room.store(most_events(), std::memory_order_relaxed);
    g_dropped.store(0, std::memory_order_relaxed);
  }
  for (int bit = 0; bit < 6; ++bit) p.wants[bit] += (what >> bit & 1) != 0;
  set_wanted(p);
}

void leave(uint32_t what) {
  Profiles& p = profiles();
  std::vector<std::shared_ptr<Buffer>> gone;  // let go without the lock
  std::lock_guard lock(p.mutex);
  for (int bit = 0; bit < 6; ++bit) p.wants[bit] -= (what >> bit & 1) != 0;
  set_wanted(p);
  if (--p.on == 0) gone.swap(p.buffers);
}

std::vector<std::shared_ptr<const Buffer>> buffers() {
  Profiles& p = profiles();
  std::lock_guard lock(p.mutex);
  return {p.buffers.begin(), p.buffers.end()};
}

int64_t dropped() { return g_dropped.load(std::memory_order_relaxed); }

bool take_room_for(int64_t events) {
  return g_room.fetch_sub(events, std::memory_order_relaxed) >= events;
}

Buffer& own_buffer() {
  ThisThread& t = t_this;
  if (t.ended) [[unlikely]]
    return *new Buffer(0, 0);  // nobody reads it; what is told to it lives on
  return *buffer_of(t);
}

Scope* current_scope() { return t_this.scope; }

Scope::Scope(Kind kind, const char* name)
    : buffer_(nullptr), outer_(nullptr), name_(name), kind_(kind), id_(0) {
  ThisThread& t = t_this;
  if (t.ended) [[unlikely]]
    return;
  Buffer* const buffer = buffer_of(t);
  generation_ = t.generation;
  id_ = buffer->next_id();
  const uint32_t w = what();
  if (w & kStacks) {
    std::vector<SourceRef>& calls = buffer->new_sources();
    SourceRef::capture_stack(&calls);
    stack_ = calls.data();
    stack_size_ = static_cast<uint32_t>(calls.size());
  }
  if ((w & kMarks) && mark_hooks.push) {
    mark_hooks.push(name);
    marked_ = true;
  }
  // Last: the destructor of an object whose constructor throws does not run.
  buffer_ = buffer;
  outer_ = t.scope;
  t.scope = this;
  start_ = ticks();
}

void Scope::end() {
  if (!buffer_) return;
  const int64_t now = ticks();
  if (marked_ && mark_hooks.pop) mark_hooks.pop();
  ThisThread& t = t_this;
  // A user's scope may be ended out of order, or by another thread.
  if (t.scope == this) {
    t.scope = outer_;
  } else {
    for (Scope* s = t.scope; s; s = s->outer_)
      if (s->outer_ == this) s->outer_ = outer_;
  }
  // Of an earlier profile the buffer may be gone.
  if (t.generation == generation_ && t.buffer == buffer_) {
    if (Event* e = buffer_->begin_event()) {
      *e = {kind_, 0, count, start_, now, name_, id_, sequence, amount, data, stack_, stack_size_};
      buffer_->publish();
    } else {
      g_dropped.fetch_add(1, std::memory_order_relaxed);
    }
  }
  buffer_ = nullptr;
}

void note_memory(int device, const void* address, int64_t bytes, int64_t allocated) {
  if (t_this.ended) [[unlikely]]
    return;
  Buffer* buffer = nullptr;
  try {
    buffer = &own_buffer();
  } catch (const std::bad_alloc&) {  // destructors give memory back
  }
  Event* e = buffer ? buffer->begin_event() : nullptr;
  if (!e) {
    g_dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  Buffer& b = *buffer;
  const int64_t now = ticks();
  *e = {Kind::kMemory,
        static_cast<int16_t>(device),
        0,
        now,
        now,
        "[memory]",
        reinterpret_cast<uintptr_t>(address),
        allocated,
        bytes,
        nullptr,
        nullptr,
        0};
  b.publish();
}

}  // namespace tessera::profile
