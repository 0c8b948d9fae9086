#include "state.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace tessera::vgpu {

namespace {

constexpr auto kDrainLimit = std::chrono::seconds(5);
// For the task that a worker is at when the limit has passed.
constexpr auto kStopLimit = std::chrono::seconds(1);
constexpr auto kOthersWait = std::chrono::seconds(10);

std::atomic<State*> g_state{nullptr};

void leave_now(int status, void*) {
  std::fflush(nullptr);
  _exit(status);
}

State* held = nullptr;  // locked by the thread that forks

void before_fork() {
  held = g_state.load();
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
    g_state.store(made);
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

bool State::drain_until(Stream::Clock::time_point deadline) {
  for (auto& d : devices_)
    for (auto& s : d->streams())
      if (!s->wait_until(s->submitted(), deadline)) return false;
  return true;
}

void State::end() {
  if (forked.load() || ended_.exchange(true)) return;
  ending_thread_.store(gettid());
  ending.store(true);
  const bool drained = drain_until(Stream::Clock::now() + kDrainLimit);
  stopping.store(true);
  std::vector<std::shared_ptr<Stream>> all;
  for (auto& d : devices_)
    for (auto& s : d->streams()) all.push_back(s);
  // All must know before one is waited for: they wait for each other's events.
  for (auto& s : all) s->wake();
  // An idle worker only has to be scheduled, which may take long on a busy machine.
  const auto deadline = Stream::Clock::now() + (drained ? kDrainLimit : kStopLimit);
  bool stopped = true;
  for (auto& s : all) stopped &= s->stop_until(deadline);
  abandoned_.store(!drained || !stopped);
  if (abandoned_.load())
    std::fprintf(stderr,
                 "tessera: the virtual GPU had work queued %d s after the process began to end; it "
                 "was abandoned\n",
                 static_cast<int>(kDrainLimit.count()));
  if (!stopped) on_exit(leave_now, nullptr);
}

Status State::usable_at_end() const {
  if (gettid() == ending_thread_.load() && !abandoned_.load()) return {};
  if (gettid() != ending_thread_.load()) std::this_thread::sleep_for(kOthersWait);
  return fail(Code::kFailed, "the process is exiting: the virtual GPU has stopped");
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

extern "C" __attribute__((visibility("default"))) void tessera_backend_end() {
  using namespace tessera::vgpu;
  if (State* s = g_state.load()) s->end();
}
