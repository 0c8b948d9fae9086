#include "tessera/distributed/packed.h"

#include <cstring>

#include "tessera/driver/current.h"
#include "tessera/driver/stream_pool.h"
#include "tessera/fuse/stream.h"
#include "tessera/memory/allocator.h"

namespace tessera::distributed {

void prepare_read(const TensorBase& t) { fuse::ensure_readable(t); }

void prepare_write(const TensorBase& t) {
  fuse::ensure_writable(t);
  count_write(t);
}

Packed::Packed(std::vector<TensorBase> tensors, Use use) : tensors_(std::move(tensors)), use_(use) {
  for (const TensorBase& t : tensors_) {
    use_ == Use::kRead ? prepare_read(t) : prepare_write(t);
    bytes_ += t.nbytes();
  }
  if (tensors_.empty()) return;
  Device d = tensors_[0].device();
  if (d.is_cpu() && tensors_.size() == 1) {
    data_ = tensors_[0].raw();
    return;
  }
  staging_ = new_unallocated({static_cast<int64_t>(bytes_)}, DType::kUInt8, Device{});
  if (d.is_cpu())
    allocate(staging_.storage());
  else
    allocate_pinned(staging_.storage());
  data_ = staging_.raw();
  if (d.is_cpu()) return;

  device_ = d.index;
  const Backend& b = *accelerator();
  StreamHandle current = current_stream(device_);
  stream_ = stream_from_pool(device_, 0);
  copies_ = std::make_shared<Copies>(device_);
  EventHandle ready = copies_->ready_;
  // Also where the device's memory is only written: what uses it now comes first.
  check(b.event_record(device_, ready, current), "recording an event");
  check(b.stream_wait_event(device_, stream_, ready), "waiting for an event");
  for (const TensorBase& t : tensors_) memory::record_stream(t.storage(), stream_);
  if (use_ != Use::kWrite) copy(true);
  check(b.event_record(device_, ready, stream_), "recording an event");
}

Packed::~Packed() {
  // The pinned memory returns to its cache, which does not track streams.
  if (copies_) accelerator()->event_synchronize(device_, copies_->ready_);
}

Packed::Copies::Copies(int device) : device_(device) {
  check(accelerator()->event_create(device, false, &ready_), "making an event");
}
Packed::Copies::~Copies() { accelerator()->event_destroy(device_, ready_); }
void Packed::Copies::join() const {
  check(accelerator()->stream_wait_event(device_, current_stream(device_), ready_),
        "waiting for a collective");
}
Status Packed::Copies::query() const { return accelerator()->event_query(device_, ready_); }

void Packed::copy(bool to_host) {
  const Backend& b = *accelerator();
  Exec exec{device_, stream_};
  char* at = data_;
  for (const TensorBase& t : tensors_) {
    if (t.nbytes() == 0) continue;
    Status s = to_host ? b.copy(exec, CopyKind::kDeviceToHost, at, t.raw(), t.nbytes(), true)
                       : b.copy(exec, CopyKind::kHostToDevice, t.raw(), at, t.nbytes(), true);
    check(s, "copying for a collective");
    at += t.nbytes();
  }
}

void Packed::fetch() {
  if (device_ >= 0) {
    check(accelerator()->event_synchronize(device_, copies_->ready_), "waiting for a copy");
    return;
  }
  if (!staging_.defined() || use_ == Use::kWrite) return;
  char* at = data_;
  for (const TensorBase& t : tensors_) {
    if (t.nbytes()) std::memcpy(at, t.raw(), t.nbytes());
    at += t.nbytes();
  }
}

void Packed::store() {
  if (use_ == Use::kRead || !staging_.defined()) return;
  if (device_ >= 0) {
    copy(false);
    check(accelerator()->event_record(device_, copies_->ready_, stream_), "recording an event");
    return;
  }
  const char* at = data_;
  for (const TensorBase& t : tensors_) {
    if (t.nbytes()) std::memcpy(t.raw(), at, t.nbytes());
    at += t.nbytes();
  }
}

}  // namespace tessera::distributed
