// Everything that looks at a device from outside runs the pending work first, and says why.
#include "tessera/face/streams.h"

#include "tessera/base/blocking.h"
#include "tessera/driver/current.h"
#include "tessera/driver/stream_pool.h"
#include "tessera/face/cuda.h"
#include "tessera/fuse/stream.h"
#include "tessera/memory/capture.h"

namespace tessera::cuda {

using fuse::Reason;

namespace {

int resolve(int device) {
  return resolve_device(Device{DeviceType::kCUDA, static_cast<int16_t>(device)}).index;
}

bool is_done(Status status, const char* what) {
  if (status.code == Code::kNotReady) return false;
  check(status, what);
  return true;
}

StreamHandle new_stream(int device, int priority) {
  TS_CHECK(priority <= 0, "Expected cuda stream priority to be less than or equal to 0, got ",
           priority);
  return stream_from_pool(device, priority);
}

}  // namespace

Stream::Stream(int device, int priority)
    : device_(resolve(device)), handle_(new_stream(device_, priority)) {}

Stream Stream::external(void* handle, int device) { return Stream(resolve(device), handle); }

int Stream::priority() const { return stream_priority(device_, handle_); }

bool Stream::query() const {
  memory::refuse_in_capture(device_, handle_, "Stream.query()");
  fuse::run_device(device_, Reason::kEvent);
  return is_done(accelerator()->stream_query(device_, handle_), "asking a stream");
}

void Stream::synchronize() const {
  memory::refuse_in_capture(device_, handle_, "Stream.synchronize()");
  fuse::run_device(device_, Reason::kSynchronize);
  BlockingScope scope;
  check(accelerator()->stream_synchronize(device_, handle_), "synchronizing a stream");
  raise_unreported_failure();
}

void Stream::wait_event(const Event& event) const { event.wait(*this); }
void Stream::wait_stream(const Stream& other) const { wait_event(other.record_event()); }

Event Stream::record_event() const {
  Event event;
  event.record(*this);
  return event;
}

struct Event::State {
  bool timing;
  int device = -1;
  EventHandle handle = nullptr;
  bool captured = false;  // recorded last in a capture: it is part of a graph, and never done

  explicit State(bool timing) : timing(timing) {}
  State(const State&) = delete;
  ~State() {
    if (handle) accelerator()->event_destroy(device, handle);
  }
};

Event::Event(EventOptions options) : state_(std::make_shared<State>(options.enable_timing)) {}

void Event::record() const { record(current_stream()); }

void Event::record(const Stream& stream) const {
  State& s = *state_;
  int d = stream.device_index();
  fuse::run_device(d, Reason::kEvent);
  TS_CHECK(!s.handle || d == s.device, "Event device ", s.device,
           " does not match recording stream's device ", d, ".");
  if (!s.handle) {
    check(accelerator()->event_create(d, s.timing, &s.handle), "creating an event");
    s.device = d;
  }
  s.captured = memory::capture_of(d, stream.handle()) != nullptr;
  check(accelerator()->event_record(d, s.handle, stream.handle()), "recording an event");
}

static void refuse_captured(bool captured, const char* what) {
  TS_CHECK(!captured, what,
           ": the event was recorded in a capture, so it belongs to a graph; only streams of that "
           "capture can wait for it");
}

void Event::wait() const {
  if (state_->handle) wait(current_stream());
}

void Event::wait(const Stream& stream) const {
  const State& s = *state_;
  if (!s.handle) return;
  fuse::run_device(stream.device_index(), Reason::kEvent);
  check(accelerator()->stream_wait_event(stream.device_index(), stream.handle(), s.handle),
        "waiting for an event");
}

bool Event::query() const {
  const State& s = *state_;
  if (!s.handle) return true;
  memory::refuse_beside_capture(s.device, false, "Event.query()");
  refuse_captured(s.captured, "Event.query()");
  fuse::run_device(s.device, Reason::kEvent);
  return is_done(accelerator()->event_query(s.device, s.handle), "asking an event");
}

void Event::synchronize() const {
  const State& s = *state_;
  if (!s.handle) return;
  memory::refuse_beside_capture(s.device, false, "Event.synchronize()");
  refuse_captured(s.captured, "Event.synchronize()");
  fuse::run_device(s.device, Reason::kEvent);
  BlockingScope scope;
  check(accelerator()->event_synchronize(s.device, s.handle), "waiting for an event");
  raise_unreported_failure();
}

float Event::elapsed_time(const Event& end) const {
  const State &a = *state_, &b = *end.state_;
  TS_CHECK_VALUE(a.timing && b.timing,
                 "Both events must be created with argument 'enable_timing=True'.");
  TS_CHECK_VALUE(a.handle && b.handle,
                 "Both events must be recorded before calculating elapsed time.");
  TS_CHECK(a.device == b.device, "The events are of two devices, cuda:", a.device,
           " and cuda:", b.device, ": only times of one device can be compared");
  TS_CHECK(query() && end.query(),
           "Both events must be completed before calculating elapsed time: call synchronize() on "
           "the second one first");
  float ms = 0;
  check(accelerator()->event_elapsed_ms(a.device, a.handle, b.handle, &ms), "comparing two events");
  return ms;
}

int Event::device_index() const { return state_->device; }
EventHandle Event::handle() const { return state_->handle; }

Stream current_stream(int device) {
  int d = resolve(device);
  return Stream(d, tessera::current_stream(d));
}

Stream default_stream(int device) { return Stream(resolve(device), StreamHandle{}); }

void set_stream(const Stream& stream) {
  int d = stream.device_index();
  set_device(d);
  if (stream.handle() == tessera::current_stream(d)) return;
  fuse::run_device(d, Reason::kStream);
  set_current_stream(d, stream.handle());
}

PriorityRange priority_range(int device) {
  PriorityRange range{0, 0};
  int d = resolve(device);
  check(accelerator()->priority_range(d, &range.least, &range.greatest), "asking for priorities");
  return range;
}

DeviceGuard::DeviceGuard(int device) : before_(current_device()) { set_device(device); }

DeviceGuard::~DeviceGuard() {
  try {
    set_device(before_);
  } catch (...) {  // pending work that fails is reported by whoever looks at its results
  }
}

StreamGuard::StreamGuard(const Stream& stream)
    : device_(stream.device_index()), before_(current_stream(stream.device_index())) {
  set_stream(stream);
}

StreamGuard::~StreamGuard() {
  try {
    set_stream(before_);
  } catch (...) {
  }
}

}  // namespace tessera::cuda
