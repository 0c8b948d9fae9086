#include "tessera/driver/watch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "tessera/base/fork.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;
using Count = std::atomic<int64_t>;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

void add(Count& count, int64_t n) { count.fetch_add(n, std::memory_order_relaxed); }

struct Copies {
  Count copies{0}, bytes{0}, pageable_copies{0}, pageable_bytes{0}, wait_ns{0};
};

constexpr int kStreams = 64;  // of a device that are looked at

struct Counters {
  Count launches{0}, graphs{0}, between_bytes{0}, synchronized{0}, synchronized_ns{0}, busy{0};
  Copies to_device, to_host;
  std::atomic<int> streams{0};
  std::atomic<StreamHandle> stream[kStreams] = {};
};

struct Watch {
  Backend gpu_table, cpu_table;
  const Backend* gpu = nullptr;  // what they call
  const Backend* cpu = nullptr;
  Counters device[kWatchedDevices];
  Count cpu_launches{0}, cpu_ns{0};
  Count samples{0}, busy{0}, loading{0}, launching{0}, idle{0}, loading_at_all{0};
  std::atomic<int> loaders{0};
  Count began{0}, ended{0};

  // Held while streams are asked whether they have work: not during a capture, which a question
  // would end, nor while one is destroyed.
  Mutex looking;
  int captures = 0;

  Mutex pinned_mutex;
  std::map<const char*, size_t> pinned;

  std::mutex sampler_mutex;
  std::condition_variable stop;
  bool stopping = false;
  std::thread sampler;
};

// Never destroyed: work may be queued until the process ends.
Watch& watch() {
  static Watch* w = new Watch;
  return *w;
}

const AtFork g_at_fork(
    ForkStage::kWatch,
    [] {
      watch().looking.lock();
      watch().pinned_mutex.lock();
    },
    [] {
      watch().pinned_mutex.unlock();
      watch().looking.unlock();
    });

bool wanted() {
  static const bool on = [] {
    const char* value = std::getenv("TESSERA_WATCH");
    return value && *value && std::strcmp(value, "0") != 0;
  }();
  return on;
}

Counters& counters(int device) {
  return watch().device[std::clamp(device, 0, kWatchedDevices - 1)];
}

void note_stream(Counters& c, StreamHandle stream) {
  const int known = c.streams.load(std::memory_order_acquire);
  for (int i = 0; i < known; ++i)
    if (c.stream[i].load(std::memory_order_relaxed) == stream) return;
  std::lock_guard lock(watch().looking);
  const int n = c.streams.load();
  for (int i = 0; i < n; ++i)
    if (c.stream[i].load() == stream) return;
  if (n == kStreams) return;
  c.stream[n].store(stream);
  c.streams.store(n + 1, std::memory_order_release);
}

void forget_stream(Counters& c, StreamHandle stream) {
  std::lock_guard lock(watch().looking);
  const int n = c.streams.load();
  for (int i = 0; i < n; ++i) {
    if (c.stream[i].load() != stream) continue;
    c.stream[i].store(c.stream[n - 1].load());
    c.streams.store(n - 1);
    return;
  }
}

bool is_pinned(const void* p) {
  Watch& w = watch();
  std::lock_guard lock(w.pinned_mutex);
  auto it = w.pinned.upper_bound(static_cast<const char*>(p));
  if (it == w.pinned.begin()) return false;
  --it;
  return static_cast<const char*>(p) < it->first + it->second;
}

Status launched(Exec exec, Status status, int64_t n = 1) {
  Counters& c = counters(exec.device);
  if (status.ok()) add(c.launches, n);
  note_stream(c, exec.stream);
  return status;
}

// ---- the accelerator's table
// --------------------------------------------------------------------

Status run_group(Exec exec, const GroupProgram* p) {
  return launched(exec, watch().gpu->run_group(exec, p));
}
Status run_groups(Exec exec, const GroupProgram* const* p, int count) {
  return launched(exec, watch().gpu->run_groups(exec, p, count), count);
}
Status run_reduce(Exec exec, const ReduceProgram* p) {
  return launched(exec, watch().gpu->run_reduce(exec, p));
}
Status run_joined(Exec exec, const JoinedProgram* p) {
  return launched(exec, watch().gpu->run_joined(exec, p));
}
Status run_kernel(Exec exec, const char* name, const KernelArgs* args) {
  return launched(exec, watch().gpu->run_kernel(exec, name, args));
}

Status graph_launch(int device, GraphHandle g, StreamHandle s) {
  Status status = watch().gpu->graph_launch(device, g, s);
  Counters& c = counters(device);
  add(c.graphs, 1);
  note_stream(c, s);
  return status;
}

Status copy(Exec exec, CopyKind kind, void* dst, const void* src, size_t bytes, bool stable) {
  const int64_t begin = now_ns();
  Status status = watch().gpu->copy(exec, kind, dst, src, bytes, stable);
  Counters& c = counters(exec.device);
  note_stream(c, exec.stream);
  if (kind == CopyKind::kDeviceToDevice) {
    add(c.launches, 1);
    return status;
  }
  const bool up = kind == CopyKind::kHostToDevice;
  Copies& n = up ? c.to_device : c.to_host;
  add(n.copies, 1);
  add(n.bytes, static_cast<int64_t>(bytes));
  add(n.wait_ns, now_ns() - begin);
  if (!is_pinned(up ? src : dst)) {
    add(n.pageable_copies, 1);
    add(n.pageable_bytes, static_cast<int64_t>(bytes));
  }
  return status;
}

Status copy_peer(Exec exec, void* dst, int dst_device, const void* src, int src_device,
                 size_t bytes) {
  Counters& c = counters(src_device);
  add(c.between_bytes, static_cast<int64_t>(bytes));
  note_stream(counters(exec.device), exec.stream);
  return watch().gpu->copy_peer(exec, dst, dst_device, src, src_device, bytes);
}

template <class F>
Status waited(int device, F wait) {
  const int64_t begin = now_ns();
  Status status = wait();
  Counters& c = counters(device);
  add(c.synchronized, 1);
  add(c.synchronized_ns, now_ns() - begin);
  return status;
}
Status stream_synchronize(int device, StreamHandle s) {
  return waited(device, [&] { return watch().gpu->stream_synchronize(device, s); });
}
Status device_synchronize(int device) {
  return waited(device, [&] { return watch().gpu->device_synchronize(device); });
}
Status event_synchronize(int device, EventHandle e) {
  return waited(device, [&] { return watch().gpu->event_synchronize(device, e); });
}

Status stream_destroy(int device, StreamHandle s) {
  forget_stream(counters(device), s);
  return watch().gpu->stream_destroy(device, s);
}

Status capture_begin(int device, StreamHandle s, CaptureMode mode) {
  Watch& w = watch();
  std::lock_guard lock(w.looking);
  Status status = w.gpu->capture_begin(device, s, mode);
  if (status.ok()) ++w.captures;
  return status;
}
Status capture_end(int device, StreamHandle s, GraphHandle* out) {
  Watch& w = watch();
  Status status = w.gpu->capture_end(device, s, out);
  std::lock_guard lock(w.looking);
  w.captures = std::max(w.captures - 1, 0);
  return status;
}

Status host_allocate(size_t bytes, void** out) {
  Watch& w = watch();
  Status status = w.gpu->host_allocate(bytes, out);
  if (!status.ok()) return status;
  std::lock_guard lock(w.pinned_mutex);
  w.pinned[static_cast<const char*>(*out)] = bytes;
  return status;
}
Status host_deallocate(void* p) {
  Watch& w = watch();
  {
    std::lock_guard lock(w.pinned_mutex);
    w.pinned.erase(static_cast<const char*>(p));
  }
  return w.gpu->host_deallocate(p);
}

// ---- the CPU's table
// ----------------------------------------------------------------------------

// A kernel may run others: only the outermost is timed.
thread_local int depth = 0;

template <class F>
Status timed(F run) {
  if (depth > 0) return run();
  Watch& w = watch();
  ++depth;
  const int64_t begin = now_ns();
  Status status = run();
  add(w.cpu_ns, now_ns() - begin);
  add(w.cpu_launches, 1);
  --depth;
  return status;
}
Status cpu_run_group(Exec exec, const GroupProgram* p) {
  return timed([&] { return watch().cpu->run_group(exec, p); });
}
Status cpu_run_reduce(Exec exec, const ReduceProgram* p) {
  return timed([&] { return watch().cpu->run_reduce(exec, p); });
}
Status cpu_run_joined(Exec exec, const JoinedProgram* p) {
  return timed([&] { return watch().cpu->run_joined(exec, p); });
}
Status cpu_run_kernel(Exec exec, const char* name, const KernelArgs* args) {
  return timed([&] { return watch().cpu->run_kernel(exec, name, args); });
}

// ---- looking
// ------------------------------------------------------------------------------------

int64_t all_launches(Watch& w) {
  int64_t n = 0;
  for (Counters& c : w.device) n += c.launches.load() + c.graphs.load() + c.to_device.copies.load();
  return n;
}

bool works(Watch& w, int device) {
  Counters& c = w.device[device];
  const int n = c.streams.load(std::memory_order_acquire);
  for (int i = 0; i < n; ++i)
    if (w.gpu->stream_query(device, c.stream[i].load()).code == Code::kNotReady) return true;
  return false;
}

void look(Watch& w, int64_t* seen) {
  bool any = false;
  {
    std::lock_guard lock(w.looking);
    if (w.captures > 0) return;
    if (w.gpu)
      for (int d = 0; d < kWatchedDevices; ++d)
        if (works(w, d)) {
          add(w.device[d].busy, 1);
          any = true;
        }
  }
  const bool loads = w.loaders.load() > 0;
  const int64_t launches = all_launches(w);
  add(w.samples, 1);
  if (loads) add(w.loading_at_all, 1);
  add(any ? w.busy : loads ? w.loading : launches != *seen ? w.launching : w.idle, 1);
  *seen = launches;
}

void sample(Watch& w) {
  int64_t seen = all_launches(w);
  std::unique_lock lock(w.sampler_mutex);
  while (!w.stop.wait_for(lock, std::chrono::milliseconds(1), [&] { return w.stopping; }))
    look(w, &seen);
}

void clear(Watch& w) {
  for (Counters& c : w.device) {
    for (Count* n :
         {&c.launches, &c.graphs, &c.between_bytes, &c.synchronized, &c.synchronized_ns, &c.busy})
      n->store(0);
    for (Copies* k : {&c.to_device, &c.to_host})
      for (Count* n : {&k->copies, &k->bytes, &k->pageable_copies, &k->pageable_bytes, &k->wait_ns})
        n->store(0);
  }
  for (Count* n : {&w.cpu_launches, &w.cpu_ns, &w.samples, &w.busy, &w.loading, &w.launching,
                   &w.idle, &w.loading_at_all})
    n->store(0);
}

CopyCount read(const Copies& c) {
  return {c.copies.load(), c.bytes.load(), c.pageable_copies.load(), c.pageable_bytes.load(),
          c.wait_ns.load()};
}

}  // namespace

namespace detail {

const Backend* watched_accelerator(const Backend* inner) {
  if (!wanted() || !inner) return inner;
  Watch& w = watch();
  Backend& t = w.gpu_table = *inner;
  t.run_group = run_group;
  if (t.run_groups) t.run_groups = run_groups;
  t.run_reduce = run_reduce;
  t.run_joined = run_joined;
  t.run_kernel = run_kernel;
  if (t.graph_launch) t.graph_launch = graph_launch;
  t.copy = copy;
  t.copy_peer = copy_peer;
  t.stream_synchronize = stream_synchronize;
  t.device_synchronize = device_synchronize;
  t.event_synchronize = event_synchronize;
  t.stream_destroy = stream_destroy;
  if (t.capture_begin) {
    t.capture_begin = capture_begin;
    t.capture_end = capture_end;
  }
  t.host_allocate = host_allocate;
  t.host_deallocate = host_deallocate;
  std::lock_guard lock(w.looking);
  w.gpu = inner;
  return &t;
}

const Backend* watched_cpu(const Backend* inner) {
  if (!wanted() || !inner) return inner;
  Watch& w = watch();
  w.cpu = inner;
  Backend& t = w.cpu_table = *inner;
  t.run_group = cpu_run_group;
  t.run_reduce = cpu_run_reduce;
  if (t.run_joined) t.run_joined = cpu_run_joined;
  t.run_kernel = cpu_run_kernel;
  return &t;
}

}  // namespace detail

void watch_start() {
  watch_stop();
  Watch& w = watch();
  clear(w);
  w.began.store(now_ns());
  w.ended.store(0);
  if (!wanted()) return;
  w.stopping = false;
  w.sampler = std::thread([&w] { sample(w); });
}

void watch_stop() {
  Watch& w = watch();
  if (!w.sampler.joinable()) return;
  {
    std::lock_guard lock(w.sampler_mutex);
    w.stopping = true;
  }
  w.stop.notify_all();
  w.sampler.join();
  w.ended.store(now_ns());
}

void watch_loading(bool begins) { watch().loaders.fetch_add(begins ? 1 : -1); }

Activity watch_read() {
  Watch& w = watch();
  Activity a;
  a.watching = wanted();
  const int64_t end = w.ended.load() ? w.ended.load() : now_ns();
  a.seconds = w.began.load() ? static_cast<double>(end - w.began.load()) * 1e-9 : 0;
  a.samples = w.samples.load();
  a.busy = w.busy.load();
  a.loading = w.loading.load();
  a.launching = w.launching.load();
  a.idle = w.idle.load();
  a.loading_at_all = w.loading_at_all.load();
  a.cpu_launches = w.cpu_launches.load();
  a.cpu_ns = w.cpu_ns.load();
  for (int d = 0; d < kWatchedDevices; ++d) {
    const Counters& c = w.device[d];
    a.device[d] = {c.launches.load(),        c.graphs.load(),        read(c.to_device),
                   read(c.to_host),          c.between_bytes.load(), c.synchronized.load(),
                   c.synchronized_ns.load(), c.busy.load()};
    if (c.streams.load() > 0) a.devices = d + 1;
  }
  return a;
}

}  // namespace tessera
