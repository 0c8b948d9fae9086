#include "state.h"

#include <pthread.h>

#include <algorithm>
#include <cstdlib>

namespace tessera::vgpu {

namespace {

void at_exit() {
  if (!forked.load()) state().stop();
}

std::atomic<State*> made_state{nullptr};
State* held = nullptr;  // locked by the thread that forks

void before_fork() {
  held = made_state.load();
  if (held) held->lock_for_fork();
}
void after_fork() {
  if (held) held->unlock_after_fork();
  held = nullptr;
}
void in_child() {
  // Without workers yet nothing was lost, and the child may start its own.
  for (int i = 0; held && i < held->count(); ++i)
    if (held->device(i).active()) forked.store(true);
  after_fork();
}
// While the library is loaded: see Note [Locks during a fork] in base/fork.h.
[[maybe_unused]] const int g_at_fork = pthread_atfork(before_fork, after_fork, in_child);

}  // namespace

State::State() : config_(read_config()) {
  for (int i = 0; i < config_.count; ++i) devices_.push_back(std::make_unique<Device>(i, config_));
}

State& state() {
  static State* s = [] {
    auto* made = new State;
    made_state.store(made);
    std::atexit(at_exit);
    return made;
  }();
  return *s;
}

void State::lock_for_fork() {
  for (auto& d : devices_) d->lock_for_fork();
  pinned_mutex_.lock();
}

void State::unlock_after_fork() {
  pinned_mutex_.unlock();
  for (auto& d : devices_) d->unlock_after_fork();
}

bool State::drain() {
  for (auto& d : devices_)
    if (!d->drain()) return false;
  return true;
}

void State::stop() {
  stopping.store(true);
  std::vector<std::shared_ptr<Stream>> all;
  for (auto& d : devices_)
    for (auto& s : d->streams()) all.push_back(s);
  // All must know before one is waited for: they wait for each other's events.
  for (auto& s : all) s->wake();
  for (auto& s : all) s->stop();
}

Status State::host_allocate(size_t bytes, void** out) {
  constexpr size_t kPage = 4096;
  *out = nullptr;
  if (bytes > (size_t{1} << 60))
    return fail(Code::kOutOfMemory, "more page-locked memory asked for than there can be");
  const size_t size = (std::max<size_t>(bytes, 1) + kPage - 1) / kPage * kPage;
  void* p = std::aligned_alloc(kPage, size);
  if (!p) return fail(Code::kOutOfMemory, "the host has no memory left");
  std::lock_guard lock(pinned_mutex_);
  pinned_[static_cast<const char*>(p)] = size;
  *out = p;
  return {};
}

Status State::host_deallocate(void* p) {
  if (!p) return {};
  drain();
  {
    std::lock_guard lock(pinned_mutex_);
    if (!pinned_.erase(static_cast<const char*>(p)))
      return fail(Code::kFailed, "the address to free is not page-locked memory");
  }
  std::free(p);
  return {};
}

bool State::is_pinned(const void* p) {
  std::lock_guard lock(pinned_mutex_);
  auto it = pinned_.upper_bound(static_cast<const char*>(p));
  if (it == pinned_.begin()) return false;
  --it;
  return static_cast<const char*>(p) < it->first + it->second;
}

}  // namespace tessera::vgpu
