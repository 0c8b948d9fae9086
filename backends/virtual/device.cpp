#include "device.h"

#include <algorithm>
#include <cstdio>

namespace tessera::vgpu {

namespace {
constinit std::mutex creating;  // a default stream
}

// Called for the devices in order; the first also locks what they share.
void Device::lock_for_fork() {
  if (index_ == 0) creating.lock();
  streams_mutex_.lock();
  memory_mutex_.lock();
  failure_mutex_.lock();
}

void Device::unlock_after_fork() {
  failure_mutex_.unlock();
  memory_mutex_.unlock();
  streams_mutex_.unlock();
  if (index_ == 0) creating.unlock();
}

Stream* Device::create_stream() {
  auto made = std::make_shared<Stream>(*this);
  active_.store(true, std::memory_order_relaxed);
  made->start();
  std::lock_guard lock(streams_mutex_);
  streams_.push_back(made);
  return made.get();
}

Stream* Device::stream(StreamHandle handle, Status* status) {
  Stream* s = static_cast<Stream*>(handle);
  if (!s) {
    s = default_stream_.load(std::memory_order_acquire);
    if (s) return s;
    std::lock_guard lock(creating);
    s = default_stream_.load(std::memory_order_acquire);
    if (!s) {
      s = create_stream();
      default_stream_.store(s, std::memory_order_release);
    }
    return s;
  }
  if (&s->device() == this) return s;
  *status =
      fail(Code::kFailed, "the stream belongs to device " + std::to_string(s->device().index()) +
                              ", not to device " + std::to_string(index_));
  return nullptr;
}

std::vector<std::shared_ptr<Stream>> Device::streams() {
  std::lock_guard lock(streams_mutex_);
  return streams_;
}

void Device::destroy_stream(Stream* stream) {
  std::shared_ptr<Stream> mine;
  {
    std::lock_guard lock(streams_mutex_);
    auto it = std::find_if(streams_.begin(), streams_.end(),
                           [&](const auto& s) { return s.get() == stream; });
    if (it == streams_.end()) return;
    mine = std::move(*it);
    streams_.erase(it);
  }
  mine->stop();
}

bool Device::drain() {
  for (const auto& s : streams())
    if (!s->wait(s->submitted())) return false;
  return true;
}

void Device::report(Status status) {
  std::lock_guard lock(failure_mutex_);
  if (failure_code_ != Code::kOk) return;
  failure_code_ = status.code;
  std::snprintf(failure_text_, sizeof failure_text_, "%s",
                status.message ? status.message : "a kernel failed");
  if (status.code == Code::kDeviceFault) faulted_.store(true, std::memory_order_relaxed);
  failed_.store(true, std::memory_order_release);
}

Status Device::take_failure() {
  if (!failed_.load(std::memory_order_acquire)) return {};
  std::lock_guard lock(failure_mutex_);
  if (failure_code_ == Code::kOk) return {};
  Status status = fail(failure_code_, failure_text_);
  if (failure_code_ != Code::kDeviceFault) {
    failure_code_ = Code::kOk;
    failed_.store(false, std::memory_order_release);
  }
  return status;
}

}  // namespace tessera::vgpu
