#include "tessera/face/profiler.h"

#include <dlfcn.h>

#include <cstring>

#include "tessera/base/blocking.h"
#include "tessera/base/fork.h"
#include "tessera/driver/current.h"
#include "tessera/driver/used.h"
#include "tessera/fuse/stream.h"
#include "tessera/profile/chrome.h"
#include "tessera/profile/sink.h"

namespace tessera::profiler {

namespace {

// The accelerator's own notes, shared by all profiles that are on.
class Devices {
 public:
  Mutex& lock() { return mutex_; }
  static Devices& get() {
    static auto* all = new Devices;
    return *all;
  }
  bool begin() {
    const Backend* b = accelerator();
    if (!b || !b->profile_begin || device_count() == 0) return false;
    std::lock_guard lock(mutex_);
    if (on_ == 0) {
      const char* how = nullptr;
      check(b->profile_begin(&how), "profiling the device");
      how_ = how ? how : "";
      activities_.clear();
    }
    ++on_;
    return true;
  }
  // All that was noted since the first of the profiles that are on.
  std::vector<profile::Activity> take() {
    std::lock_guard lock(mutex_);
    collect();
    return activities_;
  }
  void end() {
    std::lock_guard lock(mutex_);
    if (--on_ > 0) return;
    const Backend* b = accelerator();
    if (b && b->profile_end) b->profile_end();
    activities_.clear();
  }
  std::string how() {
    std::lock_guard lock(mutex_);
    return how_;
  }

 private:
  void collect() {
    const Backend* b = accelerator();
    if (!b || !b->profile_take) return;
    const ActivitySink sink{
        this, [](void* to, const DeviceActivity& a) { static_cast<Devices*>(to)->add(a); }};
    check(b->profile_take(&sink), "profiling the device");
  }
  void add(const DeviceActivity& a) {
    profile::Activity& to = activities_.emplace_back();
    to.kind = static_cast<profile::Activity::Kind>(a.kind);
    to.name = a.name ? a.name : "?";
    to.start = a.start_ns;
    to.end = a.end_ns;
    to.correlation = a.correlation;
    to.thread = a.thread;
    to.device = a.device;
    to.stream = a.stream;
    to.bytes = a.bytes;
    std::copy_n(a.grid, 3, to.grid);
    std::copy_n(a.block, 3, to.block);
    to.registers = a.registers;
    to.shared = a.shared;
  }

  Mutex mutex_;
  int on_ = 0;
  std::string how_;
  std::vector<profile::Activity> activities_;
};

Mutex& lock_of_devices() { return Devices::get().lock(); }
const HeldDuringFork<ForkStage::kDeviceProfile, lock_of_devices> g_at_fork;

void wait_for_devices() {
  if (!accelerator_used()) return;
  BlockingScope scope;
  for (int d = 0; d < device_count(); ++d)
    check(accelerator()->device_synchronize(d), "waiting for the device at the end of a profile");
}

std::string device_properties() {
  std::string out = "[";
  if (accelerator_used())
    for (int d = 0; d < device_count(); ++d) {
      DeviceProps p{};
      if (!accelerator()->device_props(d, &p).ok()) continue;
      if (out.size() > 1) out += ", ";
      out += cat("{\"id\": ", d, ", \"name\": ");
      profile::append_json(out, p.name);
      out += cat(", \"totalGlobalMem\": ", p.total_memory, ", \"computeMajor\": ", p.major,
                 ", \"computeMinor\": ", p.minor, ", \"maxThreadsPerBlock\": ", p.threads_per_block,
                 ", \"maxThreadsPerMultiprocessor\": ", p.threads_per_multiprocessor,
                 ", \"regsPerMultiprocessor\": ", p.registers_per_multiprocessor,
                 ", \"warpSize\": ", p.warp_size, ", \"sharedMemPerBlock\": ", p.shared_per_block,
                 ", \"sharedMemPerMultiprocessor\": ", p.shared_per_multiprocessor,
                 ", \"numSms\": ", p.multiprocessors, "}");
    }
  return out + "]";
}

}  // namespace

Profile::Profile(ProfileOptions options, bool started) : options_(options) {
  what_ = profile::kScopes;
  if (options.record_shapes) what_ |= profile::kShapes;
  if (options.profile_memory) what_ |= profile::kBytes;
  if (options.with_stack) what_ |= profile::kStacks;
  if (options.with_flops) what_ |= profile::kFlops;
  if (started) start();
}

Profile::~Profile() { release(); }

void Profile::release() {
  if (started_) profile::leave(what_);
  if (on_device_) Devices::get().end();
  started_ = prepared_ = on_device_ = false;
}

void Profile::prepare() {
  if (prepared_) return;
  prepared_ = true;
  if (options_.cuda) on_device_ = Devices::get().begin();
}

void Profile::start() {
  TS_CHECK(!started_, "the profile has been started already");
  prepare();
  fuse::run_everything(fuse::Reason::kUser);  // what came before is not of it
  profile::enter(what_);
  started_ = true;
  begin_ = profile::steady_ns();
}

void Profile::stop() {
  TS_CHECK(started_, "the profile was not started");
  fuse::run_everything(fuse::Reason::kUser);
  wait_for_devices();
  const int64_t end = profile::steady_ns();
  std::vector<profile::Activity> activities;
  if (on_device_) activities = Devices::get().take();
  trace_ = std::make_shared<profile::Trace>(profile::buffers(), std::move(activities), begin_, end,
                                            what_);
  trace_->dropped = profile::dropped();
  if (on_device_) {
    trace_->measured_by = Devices::get().how();
    trace_->set_uses_device(true);
  }
  release();
}

const profile::Trace& Profile::trace() const {
  TS_CHECK(trace_, "Profiler didn't finish running");
  return *trace_;
}

std::vector<profile::Row> Profile::key_averages(bool by_input_shape, int by_stack) const {
  return profile::key_averages(trace(), by_input_shape, by_stack);
}

profile::TableOptions Profile::table_options() const {
  profile::TableOptions o;
  o.memory = options_.profile_memory;
  o.flops = options_.with_flops;
  if (trace().uses_device()) o.device = "cuda";
  return o;
}

std::string Profile::table(const std::string& sort_by, int64_t row_limit) const {
  profile::TableOptions o = table_options();
  o.sort_by = sort_by;
  o.row_limit = row_limit;
  return profile::table(key_averages(), o);
}

void Profile::add_metadata_json(const std::string& key, std::string value) {
  metadata_[key] = std::move(value);
}

profile::Written Profile::export_chrome_trace(const std::string& path) {
  trace();
  trace_->metadata = metadata_;
  trace_->metadata.emplace("deviceProperties", device_properties());
  return profile::write_chrome_trace(*trace_, path);
}

void Profile::export_stacks(const std::string& path, const std::string& metric) const {
  const bool device = metric == "self_cuda_time_total";
  TS_CHECK_VALUE(device || metric == "self_cpu_time_total",
                 "metric should be one of: ['self_cpu_time_total', 'self_cuda_time_total']");
  std::unique_ptr<profile::Sink> file = profile::Sink::open(path);
  for (const profile::TraceEvent& e : trace().events()) {
    if (!profile::is_listed(e)) continue;
    const int64_t us = (device ? e.self_device_ns : e.self_ns) / 1000;
    std::vector<std::string> stack = trace().stack(e);
    if (us <= 0 || stack.empty()) continue;
    std::string line;
    for (size_t i = stack.size(); i-- > 0;) {
      for (char& c : stack[i])
        if (std::strchr(" ;\t\n", c)) c = '_';
      line += (line.empty() ? "" : ";") + stack[i];
    }
    file->write(cat(line, " ", us, "\n"));
  }
  file->finish();
}

RecordFunction::RecordFunction(std::string_view name, std::string_view arguments) {
  if (!profile::recording()) return;
  profile::Buffer& buffer = profile::own_buffer();
  scope_ = std::make_unique<profile::Scope>(profile::Kind::kUser, buffer.copy(name));
  if (!arguments.empty()) {
    scope_->data = buffer.copy(arguments);
    scope_->count = static_cast<uint32_t>(arguments.size());
  }
  thread_ = buffer.thread();
}

void RecordFunction::end() {
  if (!scope_) return;
  // Of another thread's scopes it cannot be taken out: it stays, and tells nothing.
  if (thread_ != profile::own_buffer().thread())
    (void)scope_.release();
  else
    scope_.reset();
}

void emit_ranges(bool on) {
  static const bool found = [] {
    void* library = dlopen("libnvToolsExt.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    static int (*push)(const char*);
    static int (*pop)();
    push = reinterpret_cast<int (*)(const char*)>(dlsym(library, "nvtxRangePushA"));
    pop = reinterpret_cast<int (*)()>(dlsym(library, "nvtxRangePop"));
    if (!push || !pop) return false;
    profile::mark_hooks = {[](const char* name) { push(name); }, [] { pop(); }};
    return true;
  }();
  if (!found) return;
  if (on)
    profile::enter(profile::kMarks);
  else
    profile::leave(profile::kMarks);
}

std::string device_times() { return Devices::get().how(); }

}  // namespace tessera::profiler
