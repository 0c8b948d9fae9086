#include <time.h>

#include <set>
#include <thread>

#include "device.h"
#include "options.h"

namespace emulator {
namespace {

std::mutex g_streams_mutex;
std::set<Stream*>& streams() {
  static auto* all = new std::set<Stream*>;
  return *all;
}

double now_ms() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

}  // namespace

Stream::Stream(Device* d) : device_(d) {
  if (options().async) std::thread([this] { serve(); }).detach();
}

CUresult Stream::run(const Work& work) {
  if (CUresult r = device_->fault; r != CUDA_SUCCESS) return r;
  CUresult r = work();
  CUresult none = CUDA_SUCCESS;
  if (r != CUDA_SUCCESS) device_->fault.compare_exchange_strong(none, r);
  return r;
}

std::shared_ptr<Capture> Stream::capture() {
  std::lock_guard lock(capture_mutex_);
  return capture_;
}

void Stream::set_capture(std::shared_ptr<Capture> capture) {
  std::lock_guard lock(capture_mutex_);
  capture_ = std::move(capture);
}

CUresult Stream::add(Work work) {
  if (CUresult r = device_->fault; r != CUDA_SUCCESS) return r;
  if (auto to = capture()) {
    to->add(this, std::move(work));
    return CUDA_SUCCESS;
  }
  if (!options().async) {
    run(work);  // an error shows at the next call, as it would on a device
    return CUDA_SUCCESS;
  }
  std::lock_guard lock(mutex_);
  queue_.push_back(std::move(work));
  changed_.notify_all();
  return CUDA_SUCCESS;
}

void Stream::serve() {
  t_current = device_;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopped_ || !queue_.empty(); });
    if (queue_.empty()) break;
    Work work = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    run(work);
    work = nullptr;
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
  lock.unlock();
  delete this;
}

bool Stream::idle() {
  std::lock_guard lock(mutex_);
  return queue_.empty() && !busy_;
}

CUresult Stream::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return queue_.empty() && !busy_; });
  return device_->fault;
}

void Stream::stop() {
  if (!options().async) {
    delete this;
    return;
  }
  std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

Stream* make_stream(Device* d) {
  Stream* s = new Stream(d);
  std::lock_guard lock(g_streams_mutex);
  streams().insert(s);
  return s;
}

void remove_stream(Stream* s) {
  {
    std::lock_guard lock(g_streams_mutex);
    streams().erase(s);
  }
  s->wait();
  s->stop();
}

Stream* stream_of(CUstream s) {
  if (s) return reinterpret_cast<Stream*>(s);
  if (!t_current) return nullptr;
  static std::mutex mutex;
  static std::map<Device*, Stream*>* defaults = new std::map<Device*, Stream*>;
  std::lock_guard lock(mutex);
  Stream*& found = (*defaults)[t_current];
  if (!found) found = make_stream(t_current);
  return found;
}

CUresult wait_for_all(Device* d) {
  std::lock_guard lock(g_streams_mutex);
  for (Stream* s : streams())
    if (s->device() == d) s->wait();
  return d->fault;
}

bool captures(Device* d) {
  std::lock_guard lock(g_streams_mutex);
  for (Stream* s : streams())
    if (s->device() == d && s->capture()) return true;
  return false;
}

CUresult Event::record(Stream* s) {
  if ((capture = s->capture())) {
    reach = capture->reach(s);
    return CUDA_SUCCESS;
  }
  uint64_t number;
  {
    std::lock_guard lock(mutex);
    number = ++recorded;
  }
  CUresult r = s->add([this, number] {
    std::lock_guard lock(mutex);
    reached = std::max(reached, number);
    time_ms = now_ms();
    changed.notify_all();
    return CUDA_SUCCESS;
  });
  return r;
}

bool Event::done() {
  std::lock_guard lock(mutex);
  return reached >= recorded;
}

void Event::wait(uint64_t number) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return reached >= number; });
}

void Event::wait_for_last() {
  uint64_t number;
  {
    std::lock_guard lock(mutex);
    number = recorded;
  }
  wait(number);
}

}  // namespace emulator

int emulator_enqueue(void* stream, std::function<int()>* work) {
  emulator::Stream* s = emulator::stream_of(static_cast<CUstream>(stream));
  return s->add([w = std::move(*work)] { return static_cast<CUresult>(w()); });
}
