#include "notes.h"

#include <cxxabi.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "cupti_api.h"
#include "graphs.h"

namespace tessera::cuda {

// A call that events time.
struct TimedNote {
  std::string name;
  DeviceActivity about;  // with the host's times, until the events are read
  CUevent begin, end;
  CUstream stream;
  bool ready = false;
};

namespace {

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Note {
  std::string name;
  DeviceActivity about;
};

// Two clocks read together.
struct Reading {
  uint64_t cupti;
  int64_t steady;
};

struct Notes {
  std::mutex mutex;
  const CuptiApi* cupti = nullptr;  // null: events
  bool registered = false;
  Reading first{};
  std::string how;
  std::vector<Note> records;  // times still CUPTI's
  std::deque<TimedNote> timed;
  struct Base {
    CUevent event = nullptr;
    int64_t steady = 0;
  };
  Base bases[kMaxDevices];
  std::unordered_map<std::string, std::string> names;  // mangled, and not
  uint64_t correlations = 0;
  // Of streams that events time: their number, and when the last work on it ended.
  struct Timed {
    int64_t number, end;
  };
  std::map<CUstream, Timed> streams;
};
Notes& notes() {
  static auto* n = new Notes;
  return *n;
}

Reading read_clocks(const CuptiApi& api) {
  Reading best{};
  int64_t shortest = INT64_MAX;
  for (int i = 0; i < 5; ++i) {
    const int64_t before = now();
    uint64_t there = 0;
    api.timestamp(&there);
    const int64_t after = now();
    if (after - before >= shortest) continue;
    shortest = after - before;
    best = {there, before + (after - before) / 2};
  }
  return best;
}

std::string demangled(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string out = status == 0 && text ? text : name;
  std::free(text);
  return out;
}

const char* place_name(uint8_t kind) {
  static constexpr const char* names[] = {"Unknown", "Pageable", "Pinned",       "Device",
                                          "Array",   "Managed",  "Device Static"};
  return kind < std::size(names) ? names[kind] : "Unknown";
}
const char* direction_name(uint8_t direction) {
  static constexpr const char* names[] = {"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                          "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};
  return direction < std::size(names) ? names[direction] : "Unknown";
}

// What every record of CUPTI's has.
template <class R>
void set_times(DeviceActivity& a, const R& r) {
  a.start_ns = static_cast<int64_t>(r.start);
  a.end_ns = static_cast<int64_t>(r.end);
  a.correlation = r.correlation;
}
// ... and every one of work on a device.
template <class R>
void set_place(DeviceActivity& a, const R& r) {
  set_times(a, r);
  a.device = static_cast<int>(r.device);
  a.stream = r.stream;
}

template <class R>
void add_copy(Notes& n, const R& r) {
  Note& to = n.records.emplace_back();
  to.name = std::string("Memcpy ") + direction_name(r.direction) + " (" + place_name(r.from) +
            " -> " + place_name(r.to) + ")";
  DeviceActivity& a = to.about;
  a.kind = DeviceActivity::Kind::kCopy;
  set_place(a, r);
  a.bytes = static_cast<int64_t>(r.bytes);
}

void add_call(Notes& n, const cupti::Call& r) {
  constexpr uint32_t kDriverDomain = 1, kRuntimeDomain = 2;
  const char* name = nullptr;
  n.cupti->function_name(r.kind == cupti::kDriver ? kDriverDomain : kRuntimeDomain, r.function,
                         &name);
  if (!name) return;
  std::string text = name;
  // cudaLaunchKernel_v7000 is cudaLaunchKernel, cuMemcpyHtoDAsync_v2 cuMemcpyHtoDAsync.
  if (const size_t v = text.rfind("_v"); v != std::string::npos) text.resize(v);
  // Only those that queue or wait.
  auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
  if (!has("Launch") && !has("Memcpy") && !has("Memset") && !has("Synchronize")) return;
  Note& to = n.records.emplace_back();
  to.name = std::move(text);
  DeviceActivity& a = to.about;
  a.kind = DeviceActivity::Kind::kCall;
  set_times(a, r);
  a.thread = r.thread;
}

void add_record(Notes& n, const cupti::Record* record) {
  switch (record->kind) {
    case cupti::kConcurrentKernel: {
      const auto& r = *reinterpret_cast<const cupti::Kernel*>(record);
      Note& to = n.records.emplace_back();
      std::string& known = n.names[r.name];
      if (known.empty()) known = demangled(r.name);
      to.name = known;
      DeviceActivity& a = to.about;
      set_place(a, r);
      for (int i = 0; i < 3; ++i) {
        a.grid[i] = r.grid[i];
        a.block[i] = r.block[i];
      }
      a.registers = r.registers;
      a.shared = int64_t{r.static_shared} + r.dynamic_shared;
      break;
    }
    case cupti::kCopy:
      add_copy(n, *reinterpret_cast<const cupti::Copy*>(record));
      break;
    case cupti::kCopyPeer:
      add_copy(n, *reinterpret_cast<const cupti::CopyPeer*>(record));
      break;
    case cupti::kSet: {
      const auto& r = *reinterpret_cast<const cupti::Set*>(record);
      Note& to = n.records.emplace_back();
      to.name = "Memset (Device)";
      DeviceActivity& a = to.about;
      a.kind = DeviceActivity::Kind::kSet;
      set_place(a, r);
      a.bytes = static_cast<int64_t>(r.bytes);
      break;
    }
    case cupti::kDriver:
    case cupti::kRuntime:
      add_call(n, *reinterpret_cast<const cupti::Call*>(record));
      break;
    default:
      break;
  }
}

constexpr size_t kBuffer = size_t{4} << 20;

void ask_buffer(uint8_t** buffer, size_t* size, size_t* most_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBuffer));
  *size = *buffer ? kBuffer : 0;
  *most_records = 0;
}

// By a thread of CUPTI's, or by whoever flushes.
void take_buffer(void*, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  Notes& n = notes();
  {
    std::lock_guard lock(n.mutex);
    cupti::Record* record = nullptr;
    while (n.cupti && n.cupti->next_record(buffer, valid, &record) == 0) add_record(n, record);
  }
  std::free(buffer);
}

// Functions that are called for every operator and neither queue work nor wait for it, by CUPTI's
// numbers for them: the current context, attributes of pointers, events, captures.
constexpr uint32_t kQuiet[] = {303, 304, 310, 119, 120, 295, 125, 499, 536, 629, 729};

constexpr uint32_t kWork[] = {cupti::kConcurrentKernel, cupti::kCopy, cupti::kSet,
                              cupti::kCopyPeer};

// Calls tell which operator a kernel is of. To ask for the few that launch, one by one, is accepted
// and gives no records (CUPTI 13.0): all are asked for, and the quiet ones taken out where that can
// be said.
bool watch_functions(const CuptiApi& api, bool on) {
  bool done = true;
  for (uint32_t kind : {cupti::kDriver, cupti::kRuntime})
    done &= (on ? api.enable(kind) : api.disable(kind)) == 0;
  if (on && api.enable_driver)
    for (uint32_t f : kQuiet) api.enable_driver(f, 0);
  return done;
}

bool begin_cupti(Notes& n, std::string* why) {
  const char* reason = nullptr;
  const CuptiApi* api = cupti_api(&reason);
  if (!api) {
    *why = reason ? reason : "";
    return false;
  }
  auto refused = [&](int result) {
    if (result == 0) return false;
    const char* text = nullptr;
    api->result_text(result, &text);
    *why = std::string("CUPTI refuses: ") + (text ? text : "?");
    return true;
  };
  if (!n.registered) {
    constexpr uint32_t kSystemThreads = 1;
    api->thread_ids(kSystemThreads);
    if (refused(api->register_callbacks(ask_buffer, take_buffer))) return false;
    n.registered = true;
  }
  for (uint32_t kind : kWork)
    if (refused(api->enable(kind))) return false;
  if (!watch_functions(*api, true)) {
    *why = "CUPTI refuses to watch calls";
    return false;
  }
  n.cupti = api;
  recorded_by_cupti.store(true);
  n.first = read_clocks(*api);
  return true;
}

// The device's time 0, for events.
Status begin_events(Notes& n) {
  const char* why = nullptr;
  int count = 0;
  if (const DriverApi* cu = driver_api(&why)) cu->cuDeviceGetCount(&count);
  for (int i = 0; i < count && i < kMaxDevices; ++i) {
    Device* d = nullptr;
    TS_TRY(acquire(i, &d));
    if (!n.bases[i].event)
      TS_TRY(check(*d, driver().cuEventCreate(&n.bases[i].event, CU_EVENT_DEFAULT), "profiling"));
    TS_TRY(check(*d, driver().cuCtxSynchronize(), "profiling"));
    TS_TRY(check(*d, driver().cuEventRecord(n.bases[i].event, d->default_stream), "profiling"));
    TS_TRY(check(*d, driver().cuEventSynchronize(n.bases[i].event), "profiling"));
    n.bases[i].steady = now();
  }
  timing_by_events.store(true);
  return ok();
}

}  // namespace

void TimedCall::begin(DeviceActivity::Kind kind, const char* name, int64_t bytes) {
  if (captures.load(std::memory_order_relaxed) && is_capturing(stream_)) return;
  Notes& n = notes();
  TimedNote note;
  note.name = name;
  note.about.kind = kind;
  note.about.bytes = bytes;
  note.about.device = device_.ordinal;
  note.stream = stream_;
  note.about.thread = static_cast<uint32_t>(syscall(SYS_gettid));
  const DriverApi& cu = driver();
  if (cu.cuEventCreate(&note.begin, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return;
  if (cu.cuEventCreate(&note.end, CU_EVENT_DEFAULT) != CUDA_SUCCESS) {
    cu.cuEventDestroy(note.begin);
    return;
  }
  note.about.start_ns = now();
  cu.cuEventRecord(note.begin, stream_);
  std::lock_guard lock(n.mutex);
  note.about.correlation = ++n.correlations;
  n.timed.push_back(std::move(note));
  note_ = &n.timed.back();
}

void TimedCall::end() {
  driver().cuEventRecord(note_->end, stream_);
  std::lock_guard lock(notes().mutex);
  note_->about.end_ns = now();
  note_->ready = true;
}

Status profile_begin(const char** how) try {
  Notes& n = notes();
  std::string why;
  {
    std::lock_guard lock(n.mutex);
    n.records.clear();
    n.timed.clear();
    if (begin_cupti(n, &why)) {
      n.how = "CUPTI";
      *how = n.how.c_str();
      return ok();
    }
    n.cupti = nullptr;
    n.how = "CUDA events around each call, not CUPTI: " + why;
    *how = n.how.c_str();
  }
  return begin_events(n);
} catch (const std::exception& e) {
  return fail(Code::kFailed, "CUDA backend: %s", e.what());
}

namespace {

// CUPTI's time on the steady clock; the two may drift apart a little.
void hand_over(Notes& n, std::vector<Note>& records, const ActivitySink& sink) {
  const Reading last = read_clocks(*n.cupti);
  const auto span = static_cast<double>(static_cast<int64_t>(last.cupti - n.first.cupti));
  const double rate = span > 1e6 ? static_cast<double>(last.steady - n.first.steady) / span : 1.0;
  auto steady = [&](int64_t t) {
    const auto since = static_cast<double>(t - static_cast<int64_t>(n.first.cupti));
    return n.first.steady + static_cast<int64_t>(since * rate);
  };
  for (Note& note : records) {
    note.about.name = note.name.c_str();
    note.about.start_ns = steady(note.about.start_ns);
    note.about.end_ns = steady(note.about.end_ns);
    sink.take(sink.to, note.about);
  }
}

void hand_over(Notes& n, std::deque<TimedNote>& timed, const ActivitySink& sink) {
  for (TimedNote& note : timed) {
    DeviceActivity a = note.about;
    const bool kernel = a.kind == DeviceActivity::Kind::kKernel;
    a.kind = DeviceActivity::Kind::kCall;
    a.name = kernel ? "cuLaunchKernel" : "cuMemcpyAsync";
    sink.take(sink.to, a);
    const Notes::Base& base = n.bases[note.about.device];
    float start = 0, length = 0;
    const DriverApi& cu = driver();
    if (base.event && cu.event_elapsed(&start, base.event, note.begin) == CUDA_SUCCESS &&
        cu.event_elapsed(&length, note.begin, note.end) == CUDA_SUCCESS) {
      a = note.about;
      a.name = note.name.c_str();
      // Times are floats of milliseconds: of two neighbours the later one gives way.
      constexpr int64_t kFirst = 7;  // the default stream's number in PyTorch's traces
      const auto number = kFirst + static_cast<int64_t>(n.streams.size());
      Notes::Timed& on = n.streams.try_emplace(note.stream, Notes::Timed{number, 0}).first->second;
      a.stream = on.number;
      a.start_ns = base.steady + static_cast<int64_t>(static_cast<double>(start) * 1e6);
      a.end_ns = a.start_ns + static_cast<int64_t>(static_cast<double>(length) * 1e6);
      a.start_ns = std::max(a.start_ns, on.end);
      a.end_ns = on.end = std::max(a.end_ns, a.start_ns);
      sink.take(sink.to, a);
    }
    cu.cuEventDestroy(note.begin);
    cu.cuEventDestroy(note.end);
  }
}

}  // namespace

Status profile_take(const ActivitySink* sink) try {
  Notes& n = notes();
  if (n.cupti) {
    constexpr uint32_t kForced = 1;
    n.cupti->flush(kForced);
    std::vector<Note> records;
    {
      std::lock_guard lock(n.mutex);
      records.swap(n.records);
    }
    hand_over(n, records, *sink);
    return ok();
  }
  std::deque<TimedNote> timed;
  {
    std::lock_guard lock(n.mutex);
    while (!n.timed.empty() && n.timed.front().ready) {
      timed.push_back(std::move(n.timed.front()));
      n.timed.pop_front();
    }
  }
  hand_over(n, timed, *sink);
  return ok();
} catch (const std::exception& e) {
  return fail(Code::kFailed, "CUDA backend: %s", e.what());
}

Status profile_end() {
  Notes& n = notes();
  timing_by_events.store(false);
  recorded_by_cupti.store(false);
  if (!n.cupti) return ok();
  watch_functions(*n.cupti, false);
  for (uint32_t kind : kWork) n.cupti->disable(kind);
  return ok();
}

}  // namespace tessera::cuda
