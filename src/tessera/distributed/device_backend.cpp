#include "tessera/distributed/device_backend.h"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <future>

#include "tessera/base/blocking.h"
#include "tessera/distributed/error.h"
#include "tessera/distributed/job.h"
#include "tessera/distributed/packed.h"
#include "tessera/distributed/process_group.h"
#include "tessera/distributed/sha256.h"
#include "tessera/driver/about.h"
#include "tessera/driver/current.h"
#include "tessera/driver/stream_pool.h"
#include "tessera/memory/allocator.h"

namespace tessera::distributed {

const DeviceEngineTable* find_device_engine(std::string* why) {
  const char* text = nullptr;
  const Backend* backend = accelerator(&text);
  if (!backend) {
    if (why) *why = text ? text : "there is no GPU";
    return nullptr;
  }
  void* library = dlopen(backend_file(backend->name).c_str(), RTLD_NOW | RTLD_NOLOAD);
  auto entry = library ? reinterpret_cast<DeviceEngineEntry>(dlsym(library, kDeviceEngineEntryName))
                       : nullptr;
  const DeviceEngineTable* table = entry ? entry() : nullptr;
  if (!table || table->version != kDeviceEngineVersion) {
    if (why) *why = cat("the backend ", backend->name, " has no collectives of its own");
    return nullptr;
  }
  if (const char* missing = table->missing()) {
    if (why) *why = missing;
    return nullptr;
  }
  return table;
}

struct DeviceBackend::Lines {
  int device;
  StreamHandle stream;
  Lines(int device, StreamHandle stream) : device(device), stream(stream) {}
  std::unique_ptr<DeviceEngine> engine;
  std::atomic<int64_t> queued{0};  // calls so far
};

struct DeviceBackend::Event {
  int device;
  EventHandle handle = nullptr;
  explicit Event(int device) : device(device) {
    check(accelerator()->event_create(device, false, &handle), "making an event");
  }
  ~Event() { accelerator()->event_destroy(device, handle); }
  Event(const Event&) = delete;
  void record(StreamHandle s) const {
    check(accelerator()->event_record(device, handle, s), "recording an event");
  }
  void hold(StreamHandle s) const {
    check(accelerator()->stream_wait_event(device, s, handle), "waiting for an event");
  }
  // Calls of a batch are recorded when the batch ends: the event says nothing before.
  std::atomic<bool> queued{false};
  Status query() const { return accelerator()->event_query(device, handle); }
};

DeviceBackend::DeviceBackend(ProcessGroup& group, std::shared_ptr<Store> store,
                             const DeviceEngineTable& table)
    : group_(group), store_(std::move(store)), table_(table), thread_([this] { watch(); }) {}

DeviceBackend::~DeviceBackend() {
  // Collectives in flight end or fail first: a program may read the results of a destroyed group.
  // After this rank has left the job the process is ending by an error, and waits for nothing.
  const bool waits = !group_.job()->has_left();
  if (!flush(waits ? group_.timeout() + std::chrono::seconds(5) : Milliseconds(0))) {
    std::exception_ptr error = std::make_exception_ptr(
        DistError(DistErrorKind::kBackend, cat("the group '", group_.name(), "' was destroyed")));
    abort(error);
    set_reported(error);
  }
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

// NCCL would wait for ever, or say "invalid usage".
void DeviceBackend::check_devices_differ(int device) {
  DeviceProps props{};
  check(accelerator()->device_props(device, &props), "asking a device");
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  std::string uuid(reinterpret_cast<const char*>(props.uuid), sizeof props.uuid);
  store_->set(cat("device/", group_.rank()), cat(host, " ", hex(uuid)));
  std::map<std::string, int> seen;
  for (int r = 0; r < group_.size(); ++r) {
    std::string at = group_.job()->await(*store_, cat("device/", r),
                                         group_.ranks()[static_cast<size_t>(r)], group_.timeout());
    auto [first, fresh] = seen.emplace(at, r);
    if (!fresh)
      fail(DistErrorKind::kBackend, "NCCL needs a GPU for each rank: ranks ",
           group_.ranks()[first->second], " and ", group_.ranks()[r], " both use ", props.name, " ",
           hex(uuid).substr(0, 8), " of host ", at.substr(0, at.find(' ')),
           ". Call torch.cuda.set_device(LOCAL_RANK) first, or use the backend mpi or gloo, which "
           "share a GPU through host memory");
  }
}

std::shared_ptr<DeviceBackend::Lines> DeviceBackend::lines_of(int device) {
  auto find = [&]() -> std::shared_ptr<Lines> {
    std::lock_guard lock(mutex_);
    auto at = lines_.find(device);
    return at == lines_.end() ? nullptr : at->second;
  };
  if (std::shared_ptr<Lines> made = find()) return made;
  BlockingScope others_go_on;
  std::lock_guard making(making_);
  if (std::shared_ptr<Lines> made = find()) return made;
  std::string id;
  if (group_.size() > 1) check_devices_differ(device);
  if (group_.rank() == 0) {
    id = table_.unique_id();
    if (group_.size() > 1) store_->set("id", id);
  } else {
    id = group_.job()->await(*store_, "id", group_.ranks()[0], group_.timeout());
  }
  auto lines = std::make_shared<Lines>(device, stream_from_pool(device, -1));
  // It blocks until all ranks are there: on a thread that is left behind if they do not come.
  auto made = std::make_shared<std::promise<std::unique_ptr<DeviceEngine>>>();
  auto future = made->get_future();
  std::thread([made, make = table_.make, device, rank = group_.rank(), size = group_.size(), id] {
    try {
      made->set_value(make(device, rank, size, id));
    } catch (...) {
      made->set_exception(std::current_exception());
    }
  }).detach();
  if (future.wait_for(group_.timeout()) != std::future_status::ready)
    fail(DistErrorKind::kBackend, "not all ranks of the group '", group_.name(),
         "' came to make a communicator of NCCL's within ", group_.timeout().count(), " ms");
  try {
    lines->engine = future.get();
  } catch (const std::runtime_error& e) {
    fail(DistErrorKind::kBackend, e.what());
  }
  std::lock_guard lock(mutex_);
  return lines_[device] = lines;
}

WorkPtr DeviceBackend::run(Request r) {
  int device = current_device();
  if (!r.inputs.empty())
    device = r.inputs[0].device().index;
  else if (!r.outputs.empty())
    device = r.outputs[0].device().index;
  std::shared_ptr<Lines> shared = lines_of(device);
  Lines& lines = *shared;
  if (r.kind == Collective::kBarrier)
    r.outputs = {
        new_empty({1}, DType::kFloat32, Device{DeviceType::kCUDA, static_cast<int16_t>(device)})};
  for (const TensorBase& t : r.inputs) prepare_read(t);
  for (const TensorBase& t : r.outputs) prepare_write(t);
  auto done = std::make_shared<Event>(device);
  auto work = std::make_shared<Work>(r.text, r.result);
  Completion& completion = *work->completion();
  // Messages too: the group fails as a whole, and its stream keeps their order.
  completion.domain = shared.get();
  completion.number = ++lines.queued;
  if (r.kind == Collective::kBarrier) completion.set_blocking();
  completion.on_query([done, weak = std::weak_ptr<Lines>(shared)] {
    using Progress = Completion::Progress;
    if (!done->queued) return Progress::kRunning;
    const Status status = done->query();
    if (status.code == Code::kNotReady) return Progress::kRunning;
    // After an error of the library kernels may end without having done their work.
    if (auto at = weak.lock(); !status.ok() || (at && !at->engine->error().empty()))
      return Progress::kRefused;
    return Progress::kPassed;
  });
  completion.on_join([done] { done->hold(current_stream(done->device)); });
  BlockingScope others_go_on;
  done->record(current_stream(device));
  done->hold(lines.stream);
  for (const auto* list : {&r.inputs, &r.outputs})
    for (const TensorBase& t : *list) memory::record_stream(t.storage(), lines.stream);
  try {
    queue(r, lines);
  } catch (const std::runtime_error& e) {
    if (auto error = group_.failure()) {
      set_reported(error);
      std::rethrow_exception(error);
    }
    fail(DistErrorKind::kBackend, group_.title(r), ", failed: ", e.what());
  }
  {
    // Without the tensors: record_stream keeps their memory, and one that ended on the thread which
    // watches would want Python's lock there, where it may have been made.
    std::lock_guard lock(mutex_);
    if (!in_batch_) {
      done->record(lines.stream);
      done->queued = true;
    }
    completion.finish();
    under_way_.push_back(
        {std::make_shared<const Request>(r.described()), work->completion(), Clock::now()});
    if (in_batch_) batched_.push_back({done, shared, std::move(r)});
  }
  watch_outcome(work->completion());
  changed_.notify_all();
  return work;
}

void DeviceBackend::queue(const Request& r, Lines& l) {
  DeviceEngine& e = *l.engine;
  const TensorBase& typed = r.outputs.empty() ? r.inputs[0] : r.outputs[0];
  const DType dtype = typed.dtype();
  const size_t item = itemsize(dtype);
  const int size = group_.size(), rank = group_.rank();
  const Exec exec{l.device, l.stream};
  auto count = [](const TensorBase& t) { return static_cast<size_t>(t.numel()); };
  // One piece of memory in place of a list.
  auto together = [&](const std::vector<TensorBase>& list) {
    if (list.size() == 1) return list[0];
    int64_t n = 0;
    for (const TensorBase& t : list) n += t.numel();
    TensorBase all = new_empty({n}, dtype, list[0].device());
    memory::record_stream(all.storage(), l.stream);
    return all;
  };
  auto copy_parts = [&](const std::vector<TensorBase>& list, const TensorBase& all, bool in) {
    if (list.size() == 1) return;
    char* at = all.raw();
    for (const TensorBase& t : list) {
      check(accelerator()->copy(exec, CopyKind::kDeviceToDevice, in ? at : t.raw(),
                                in ? t.raw() : at, t.nbytes(), true),
            "copying for a collective");
      at += t.nbytes();
    }
  };
  std::vector<DeviceEngine::Message> sends, receives;
  // Parts of tensors for or from each rank.
  auto parts = [&](const std::vector<TensorBase>& list, const std::vector<int64_t>& split,
                   std::vector<DeviceEngine::Message>& to) {
    char* at = list[0].raw();
    for (int i = 0; i < size; ++i) {
      if (list.size() > 1) at = list[static_cast<size_t>(i)].raw();
      const auto n = static_cast<size_t>(split[static_cast<size_t>(i)]);
      if (n) to.push_back({at, n, i});
      at += n * item;
    }
  };
  switch (r.kind) {
    case Collective::kAllReduce:
    case Collective::kBarrier:
      return e.all_reduce(typed.raw(), typed.raw(), count(typed), dtype, r.op, l.stream);
    case Collective::kReduce:
      return e.reduce(typed.raw(), typed.raw(), count(typed), dtype, r.op, r.peer, l.stream);
    case Collective::kBroadcast:
      return e.broadcast(typed.raw(), count(typed), dtype, r.peer, l.stream);
    case Collective::kAllGather: {
      TensorBase all = together(r.outputs);
      e.all_gather(r.inputs[0].raw(), all.raw(), count(r.inputs[0]), dtype, l.stream);
      return copy_parts(r.outputs, all, false);
    }
    case Collective::kReduceScatter: {
      TensorBase all = together(r.inputs);
      copy_parts(r.inputs, all, true);
      return e.reduce_scatter(all.raw(), typed.raw(), count(typed), dtype, r.op, l.stream);
    }
    case Collective::kGather:
      if (r.inputs[0].numel() == 0) return;
      sends.push_back({r.inputs[0].raw(), count(r.inputs[0]), r.peer});
      if (r.peer == rank)
        parts(r.outputs, std::vector<int64_t>(static_cast<size_t>(size), r.inputs[0].numel()),
              receives);
      return e.exchange(sends, receives, dtype, l.stream);
    case Collective::kScatter:
      if (typed.numel() == 0) return;
      receives.push_back({typed.raw(), count(typed), r.peer});
      if (r.peer == rank)
        parts(r.inputs, std::vector<int64_t>(static_cast<size_t>(size), typed.numel()), sends);
      return e.exchange(sends, receives, dtype, l.stream);
    case Collective::kAllToAll:
      parts(r.inputs, r.to, sends);
      parts(r.outputs, r.from, receives);
      return e.exchange(sends, receives, dtype, l.stream);
    case Collective::kSend:
      return e.exchange({{r.inputs[0].raw(), count(r.inputs[0]), r.peer}}, {}, dtype, l.stream);
    case Collective::kReceive:
      if (r.peer < 0) throw std::runtime_error("NCCL receives from one rank only, not from any");
      return e.exchange({}, {{typed.raw(), count(typed), r.peer}}, dtype, l.stream);
  }
}

void DeviceBackend::begin_batch() {
  auto lines = lines_of(current_device());
  lines->engine->begin_batch();
  std::lock_guard lock(mutex_);
  in_batch_ = true;
}

void DeviceBackend::end_batch() {
  auto lines = lines_of(current_device());
  std::vector<Batched> all;
  {
    std::lock_guard lock(mutex_);
    in_batch_ = false;
    all.swap(batched_);
  }
  std::exception_ptr refused;
  try {
    lines->engine->end_batch();
  } catch (const std::runtime_error& e) {
    refused = group_.failure();
    if (!refused)
      refused = all.empty() ? std::current_exception()
                            : group_.fail(all[0].request, e.what(), ProcessGroup::Cause::kKnown);
  }
  for (Batched& b : all) {
    b.done->record(b.lines->stream);
    b.done->queued = true;
  }
  changed_.notify_all();
  if (!refused) return;
  set_reported(refused);
  std::rethrow_exception(refused);
}

void DeviceBackend::watch() {
  using State = CollectiveOutcome::State;
  std::unique_lock lock(mutex_);
  while (!stop_) {
    while (!under_way_.empty() && under_way_.front().completion->state() != State::kOpen)
      under_way_.pop_front();
    if (under_way_.empty()) {
      idle_.notify_all();
      changed_.wait(lock);
      continue;
    }
    if (!in_batch_) {
      UnderWay first = under_way_.front();
      std::string error;
      for (auto& [device, lines] : lines_)
        if (error.empty()) error = lines->engine->error();
      const bool late = Clock::now() - first.began > group_.timeout();
      const bool refused = first.completion->is_failing();
      if (late || refused || !error.empty()) {
        if (error.empty() && refused) error = "the device reports an error";
        // They stay undecided until the error is known.
        for (UnderWay& u : under_way_) u.completion->freeze();
        lock.unlock();
        using Cause = ProcessGroup::Cause;
        // Aborts, unless another thread has made the error and is about to.
        fail_all(group_.fail(*first.request, error, late ? Cause::kTime : Cause::kUnknown));
        lock.lock();
        continue;
      }
    }
    changed_.wait_for(lock, Milliseconds(50));
  }
}

void DeviceBackend::fail_all(std::exception_ptr error) {
  std::list<UnderWay> all;
  {
    std::lock_guard lock(mutex_);
    all.swap(under_way_);
  }
  for (UnderWay& u : all) u.completion->fail(error);
  idle_.notify_all();
}

void DeviceBackend::abort(std::exception_ptr error) {
  std::vector<std::shared_ptr<Lines>> all;
  {
    std::lock_guard lock(mutex_);
    for (auto& [device, lines] : lines_) all.push_back(lines);
  }
  // First, so that no thread takes the end of an aborted kernel for success.
  fail_all(error);
  for (auto& lines : all) lines->engine->abort();
}

bool DeviceBackend::flush(Milliseconds patience) {
  const Deadline deadline = Clock::now() + patience;
  std::unique_lock lock(mutex_);
  while (!under_way_.empty()) {
    if (Clock::now() >= deadline) return false;
    changed_.notify_all();
    idle_.wait_until(lock, std::min(deadline, Clock::now() + Milliseconds(10)));
    while (!under_way_.empty() &&
           under_way_.front().completion->state() != CollectiveOutcome::State::kOpen)
      under_way_.pop_front();
  }
  return true;
}

int64_t DeviceBackend::oldest_collective() {
  std::lock_guard lock(mutex_);
  for (UnderWay& u : under_way_)
    if (!u.request->is_point_to_point() && u.completion->state() == CollectiveOutcome::State::kOpen)
      return u.request->sequence;
  return 0;
}

std::shared_ptr<const Request> DeviceBackend::oldest_after(int64_t upto) {
  std::lock_guard lock(mutex_);
  for (UnderWay& u : under_way_)
    if (u.completion->state() == CollectiveOutcome::State::kOpen &&
        (u.request->is_point_to_point() ? upto < 0 : u.request->sequence > upto))
      return u.request;
  return nullptr;
}

}  // namespace tessera::distributed
