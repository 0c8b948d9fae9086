// Events: a place in a stream, taken when the event is recorded.
#include "events.h"

#include "state.h"

namespace tessera::vgpu {

namespace {

// Recording costs no task unless the time is wanted: the place says when it has been passed.
struct Mark {
  std::shared_ptr<Stream> stream;
  uint64_t position = 0;
  std::atomic<int64_t> time_ns{0};
};

struct Event {
  explicit Event(bool with_time) : timing(with_time) {}
  std::shared_ptr<Mark> mark() {
    std::lock_guard lock(mutex);
    return last;
  }
  const bool timing;
  std::mutex mutex;
  std::shared_ptr<Mark> last;  // null before the first recording: that counts as done
};

Event* event(EventHandle e) { return static_cast<Event*>(e); }

Status stopped() { return fail(Code::kFailed, "the process is exiting: the wait was given up"); }

}  // namespace

Status event_create(int device, bool timing, EventHandle* out) {
  return on_device(device, [&](Device&) -> Status {
    *out = new Event(timing);
    return {};
  });
}

Status event_destroy(int device, EventHandle e) {
  return on_device(device, [&](Device&) -> Status {
    delete event(e);
    return {};
  });
}

Status event_record(int device, EventHandle e, StreamHandle s) {
  return on_stream(device, s, [&](Stream& stream) -> Status {
    auto mark = std::make_shared<Mark>();
    mark->stream = stream.shared_from_this();
    if (event(e)->timing) {
      mark->position = stream.submit(make_task([mark](Stream&) -> Status {
        const auto now = std::chrono::steady_clock::now().time_since_epoch();
        mark->time_ns.store(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
        return {};
      }));
    } else {
      mark->position = stream.submitted();
    }
    std::lock_guard lock(event(e)->mutex);
    event(e)->last = std::move(mark);
    return {};
  });
}

Status event_query(int device, EventHandle e) {
  return on_device(device, [&](Device&) -> Status {
    auto mark = event(e)->mark();
    if (mark && !mark->stream->reached(mark->position)) return {Code::kNotReady, nullptr};
    return {};
  });
}

Status event_synchronize(int device, EventHandle e) {
  return on_device(device, [&](Device& d) -> Status {
    auto mark = event(e)->mark();
    if (!mark) return d.take_failure();
    if (!mark->stream->wait(mark->position)) return stopped();
    return mark->stream->device().take_failure();
  });
}

Status event_elapsed_ms(int device, EventHandle begin, EventHandle end, float* out) {
  return on_device(device, [&](Device&) -> Status {
    auto a = event(begin)->mark(), b = event(end)->mark();
    if (!event(begin)->timing || !event(end)->timing || !a || !b)
      return fail(Code::kFailed,
                  "Both events must be recorded, and created with timing, before calculating "
                  "elapsed time.");
    if (!a->stream->reached(a->position) || !b->stream->reached(b->position))
      return fail(Code::kNotReady,
                  "Both events must be completed before calculating elapsed time.");
    *out = static_cast<float>(static_cast<double>(b->time_ns.load() - a->time_ns.load()) * 1e-6);
    return {};
  });
}

Status stream_wait_event(int device, StreamHandle s, EventHandle e) {
  return on_stream(device, s, [&](Stream& stream) -> Status {
    auto mark = event(e)->mark();
    if (!mark || mark->stream.get() == &stream || mark->stream->reached(mark->position)) return {};
    // No cycle of waits can form: what a mark stands for was queued before this wait is.
    stream.submit(make_task([mark = std::move(mark)](Stream&) -> Status {
      mark->stream->wait(mark->position);
      return {};
    }));
    return {};
  });
}

}  // namespace tessera::vgpu
