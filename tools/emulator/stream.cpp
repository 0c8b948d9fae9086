#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <thread>

#include "device.h"
#include "observe.h"
#include "options.h"

void (*emulator_observer)(const emulator::Observed& piece) = nullptr;

namespace emulator {

thread_local Label t_label;

namespace {

std::mutex g_streams_mutex;
std::set<Stream*>& streams() {
  static auto* all = new std::set<Stream*>;
  return *all;
}

uint64_t real_ns() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
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
  if (!emulator_observer) return add_unobserved(std::move(work));
  static std::atomic<uint32_t> numbers{0};
  Observed call;
  const Label label = t_label;
  call.piece = Piece::kCall;
  call.name = label.piece == Piece::kSet ? "set" : label.name;
  call.direction = label.direction;
  call.correlation = ++numbers;
  call.thread = static_cast<uint32_t>(syscall(SYS_gettid));
  call.start_ns = real_ns();
  const CUresult result = add_unobserved([=, this, name = std::string(label.name)] {
    Observed done = call;
    done.piece = label.piece;
    done.name = name.c_str();
    done.bytes = label.bytes;
    done.device = device_->ordinal;
    done.stream = reinterpret_cast<uintptr_t>(this) >> 4;
    done.start_ns = real_ns();
    const CUresult r = work();
    done.end_ns = real_ns();
    if (auto* to = emulator_observer) to(done);
    return r;
  });
  call.end_ns = real_ns();
  if (auto* to = emulator_observer) to(call);
  return result;
}

CUresult Stream::add_unobserved(Work work) {
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

bool is_stream(CUstream s) {
  std::lock_guard lock(g_streams_mutex);
  return !s || streams().count(reinterpret_cast<Stream*>(s)) != 0;
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

// Done when the last of them gets there.
CUresult Event::record_all(Device* d) {
  std::lock_guard all(g_streams_mutex);
  std::vector<Stream*> of_device;
  for (Stream* s : streams())
    if (s->device() == d) of_device.push_back(s);
  uint64_t number;
  {
    std::lock_guard lock(mutex);
    number = ++recorded;
    if (of_device.empty()) reached = number;
  }
  auto left = std::make_shared<std::atomic<size_t>>(of_device.size());
  for (Stream* s : of_device)
    s->add_unobserved([this, number, left] {
      if (--*left > 0) return CUDA_SUCCESS;
      std::lock_guard lock(mutex);
      reached = std::max(reached, number);
      changed.notify_all();
      return CUDA_SUCCESS;
    });
  return CUDA_SUCCESS;
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
  if (emulator::options().idle) return s->add([] { return CUDA_SUCCESS; });
  return s->add([w = std::move(*work)] { return static_cast<CUresult>(w()); });
}
