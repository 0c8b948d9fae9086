// Pending work of a thread runs when the thread ends: nobody else may ever come by to ask for it.
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "tessera/driver/current.h"
#include "tessera/fuse/stream.h"

namespace tessera::fuse {

namespace {

std::atomic<bool> g_exiting{false};

template <class Work>
void for_each_stream(Work work) {
  work(stream_of(Device{}));
  for (int i = 0; i < device_count(); ++i)
    work(stream_of(Device{DeviceType::kCUDA, static_cast<int16_t>(i)}));
}

void run_left_by(std::thread::id thread) {
  for_each_stream([thread](Stream& s) {
    try {
      s.run_left_by(thread);
    } catch (...) {
      // What could not run is pending still; whoever reads it gets the error.
    }
  });
}

// Note [The end of a thread]
// By now some of the thread's thread-local objects are gone, the allocator's lists among them, in
// an order that depends on which was used first. So the work runs on a fresh thread; this one
// waits, and a reader that comes after the end finds everything done.
struct Watch {
  bool armed = false;
  ~Watch() {
    // The process ends with its main thread: what nobody read by then, nobody will.
    if (!armed || g_exiting.load() || getpid() == gettid()) return;
    std::thread::id self = std::this_thread::get_id();
    bool any = false;
    for_each_stream([&](Stream& s) { any |= s.leave(self); });
    if (!any) return;
    try {
      std::thread(run_left_by, self).join();
    } catch (...) {
      // No thread to be had: the next use of what is pending runs it.
    }
  }
};

thread_local Watch t_watch;

}  // namespace

void watch_this_thread() {
  static const bool registered = [] { return std::atexit([] { g_exiting.store(true); }) == 0; }();
  (void)registered;
  t_watch.armed = true;
}

}  // namespace tessera::fuse
