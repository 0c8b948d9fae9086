#include "state.h"

#include <pthread.h>

#include <algorithm>
#include <cstdlib>

namespace tessera::vgpu {

namespace {

void at_exit() {
  if (!forked.load()) state().stop();
}

void in_child() {
  // Without workers yet nothing was lost, and the child may start its own.
  State& s = state();
  for (int i = 0; i < s.count(); ++i)
    if (s.device(i).active()) forked.store(true);
}

}  // namespace

State::State() : config_(read_config()) {
  for (int i = 0; i < config_.count; ++i) devices_.push_back(std::make_unique<Device>(i, config_));
}

State& state() {
  static State* s = [] {
    auto* made = new State;
    std::atexit(at_exit);
    return made;
  }();
  static const int handler = pthread_atfork(nullptr, nullptr, in_child);
  (void)handler;
  return *s;
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
