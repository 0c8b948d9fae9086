// Events: a place in a stream, taken when the event is recorded.
#include "events.h"

#include "capture.h"
#include "state.h"

namespace tessera::vgpu {

namespace {

// Recording costs no task unless the time is wanted: the place says when it has been passed.
struct Mark {
  std::shared_ptr<Stream> stream;
  uint64_t position = 0;
  std::atomic<int64_t> time_ns{0};
  std::vector<std::pair<std::shared_ptr<Stream>, uint64_t>> others;  // of event_record_all
  bool reached() const {
    for (const auto& [other, there] : others)
      if (!other->reached(there)) return false;
    return !stream || stream->reached(position);
  }
  // Of an event recorded in a capture: it stands for tasks there, and is never done.
  std::shared_ptr<Capture> capture;
  Capture::Reach reach;
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

Status captured() {
  return fail(Code::kFailed,
              "the event was recorded in a capture: it can be waited for there, not looked at");
}

Status stopped() { return fail(Code::kFailed, "the process is exiting: the wait was given up"); }

}  // namespace

namespace {

// A stream that waits for captured work is captured from then on.
Status wait_in_capture(Stream& stream, const Mark& mark, std::shared_ptr<Capture> mine) {
  if (!mark.capture || mark.capture->ended()) {
    std::string why = mark.capture ? "the event was recorded in a capture that has ended"
                                   : "a stream that is being captured cannot wait for an event "
                                     "that was recorded outside the capture";
    if (mine) mine->invalidate(why);
    return fail(Code::kFailed, why);
  }
  if (mine && mine != mark.capture)
    return fail(Code::kFailed,
                "two captures cannot become one: a stream of one waits for the other");
  if (!mine) {
    mark.capture->join(stream.shared_from_this());
    stream.set_capture(mark.capture);
  }
  mark.capture->wait(stream, mark.reach);
  return {};
}

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
    if ((mark->capture = stream.capture())) {
      mark->reach = mark->capture->reach(stream);
    } else if (event(e)->timing) {
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

Status event_record_all(int device, EventHandle e) {
  return on_device(device, [&](Device& d) -> Status {
    auto mark = std::make_shared<Mark>();
    for (const auto& s : d.streams()) mark->others.emplace_back(s, s->submitted());
    std::lock_guard lock(event(e)->mutex);
    event(e)->last = std::move(mark);
    return {};
  });
}

Status event_query(int device, EventHandle e) {
  return on_device(device, [&](Device&) -> Status {
    auto mark = event(e)->mark();
    if (mark && mark->capture) return captured();
    if (mark && !mark->reached()) return {Code::kNotReady, nullptr};
    return {};
  });
}

Status event_synchronize(int device, EventHandle e) {
  return on_device(device, [&](Device& d) -> Status {
    auto mark = event(e)->mark();
    if (!mark) return d.take_failure();
    if (mark->capture) return captured();
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
    if (a->capture || b->capture) return captured();
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
    std::shared_ptr<Capture> mine = stream.capture();
    if (mark && (mark->capture || mine)) return wait_in_capture(stream, *mark, mine);
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
