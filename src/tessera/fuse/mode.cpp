// Which devices have streams, when deferral is on, and what makes all of them run.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>

#include "tessera/base/fork.h"
#include "tessera/driver/current.h"
#include "tessera/driver/ending.h"
#include "tessera/driver/used.h"
#include "tessera/fuse/stream.h"
#include "tessera/memory/allocator.h"

namespace tessera::fuse {

namespace {

// One for the CPU, one for each cuda device. Never destroyed: threads may outlive static objects.
struct Streams {
  std::vector<std::unique_ptr<Stream>> all;
};

std::atomic<Streams*> g_streams{nullptr};
constinit Mutex g_making_streams;

[[gnu::noinline]] Streams& make_streams() {
  std::lock_guard lock(g_making_streams);
  if (Streams* made = g_streams.load(std::memory_order_acquire)) return *made;
  auto* made = new Streams;
  made->all.push_back(std::make_unique<Stream>(Device{}));
  for (int i = 0; i < device_count(); ++i)
    made->all.push_back(
        std::make_unique<Stream>(Device{DeviceType::kCUDA, static_cast<int16_t>(i)}));
  release_pending_storage = [](Storage* storage) {
    if (is_ending()) return;
    if (Stream* p = storage->pending.load(std::memory_order_acquire)) {
      p->release_outside(storage);
    } else {
      Ref<Storage>::adopt(storage).reset();
    }
  };
  memory::set_pressure_hook([](int device) { run_device(device, Reason::kMemory); });
  memory::set_room_hook([](int device, size_t bytes) {
    stream_of(Device{DeviceType::kCUDA, static_cast<int16_t>(device)}).make_room(bytes);
  });
  g_streams.store(made, std::memory_order_release);
  return *made;
}

Streams& streams() {
  Streams* made = g_streams.load(std::memory_order_acquire);
  return made ? *made : make_streams();
}

std::atomic<bool> g_lost_gpu{false};

template <class F>
void for_each_made(F f) {
  if (Streams* made = g_streams.load(std::memory_order_acquire))
    for (auto& stream : made->all) f(*stream);
}

const AtFork g_at_fork(
    ForkStage::kStreams,
    [] {
      g_making_streams.lock();
      for_each_made([](Stream& s) { s.lock_for_fork(); });
    },
    [] {
      for_each_made([](Stream& s) { s.unlock_after_fork(); });
      g_making_streams.unlock();
    },
    [] {
      g_lost_gpu.store(accelerator_used(), std::memory_order_relaxed);
      for_each_made([](Stream& s) { s.unlock_in_child(); });
      g_making_streams.unlock();
    });

[[gnu::noinline]] Mode mode_from_environment() {
  const char* v = std::getenv("TESSERA_FUSE");
  if (!v || !*v) return Mode::kOn;
  if (!std::strcmp(v, "0")) return Mode::kOff;
  if (!std::strcmp(v, "check")) return Mode::kCheck;
  TS_CHECK_VALUE(!std::strcmp(v, "1"), "TESSERA_FUSE must be 0, 1 or check, not '", v, "'");
  return Mode::kOn;
}

std::atomic<int> g_mode{-1};
std::atomic<int> g_lines{-1};
std::atomic<int64_t> g_tiny{-1};
constexpr int64_t kTiny = 1024;

}  // namespace

Stream& stream_of(Device d) { return *streams().all[d.is_cpu() ? 0 : 1 + d.index]; }

Mode mode() {
  int m = g_mode.load(std::memory_order_relaxed);
  if (m < 0) [[unlikely]] {
    m = static_cast<int>(mode_from_environment());
    g_mode.store(m, std::memory_order_relaxed);
  }
  return static_cast<Mode>(m);
}

bool defers(Device device) {
  return mode() != Mode::kOff && !(device.is_cuda() && g_lost_gpu.load(std::memory_order_relaxed));
}

void set_mode(Mode m) {
  if (m == Mode::kOff && mode() != Mode::kOff) run_everything(Reason::kUser);
  g_mode.store(static_cast<int>(m), std::memory_order_relaxed);
}

bool source_lines() {
  int on = g_lines.load(std::memory_order_relaxed);
  if (on < 0) [[unlikely]] {
    const char* v = std::getenv("TESSERA_FUSE_LINES");
    on = !v || std::strcmp(v, "0") != 0;
    g_lines.store(on, std::memory_order_relaxed);
  }
  return on || mode() == Mode::kCheck;
}

int64_t tiny() {
  int64_t n = g_tiny.load(std::memory_order_relaxed);
  if (n < 0) [[unlikely]] {
    const char* v = std::getenv("TESSERA_FUSE_TINY");
    n = v && *v ? std::max<int64_t>(0, std::atoll(v)) : kTiny;
    g_tiny.store(n, std::memory_order_relaxed);
  }
  return mode() == Mode::kCheck ? 0 : n;
}

void set_tiny(int64_t elements) { g_tiny.store(elements, std::memory_order_relaxed); }

void set_source_lines(bool on) { g_lines.store(on, std::memory_order_relaxed); }

void run_everything(Reason reason) {
  for (auto& s : streams().all) s->run_all(reason);
}

void run_device(int device, Reason reason) {
  stream_of(Device{DeviceType::kCUDA, static_cast<int16_t>(device)}).run_all(reason);
}

void* expose(const TensorBase& t) {
  if (has_marks()) [[unlikely]]
    PassedMarks().read(t);
  ensure_writable(t, Reason::kExposed);
  t.storage().exposed.store(true, std::memory_order_release);
  return t.raw();
}

}  // namespace tessera::fuse
