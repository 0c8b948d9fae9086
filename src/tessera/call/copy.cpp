// Copies between places, layouts, dtypes and devices.
#include <algorithm>
#include <cstring>
#include <deque>
#include <mutex>
#include <vector>

#include "tessera/autograd/node.h"
#include "tessera/base/blocking.h"
#include "tessera/call/overlap.h"
#include "tessera/call/pointwise.h"
#include "tessera/driver/current.h"
#include "tessera/fuse/stream.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/view.h"
#include "tessera/memory/allocator.h"
#include "tessera/memory/pinned.h"

namespace tessera {

namespace {

// Host memory is let go only when the device has read it.
class InFlight {
 public:
  void keep(Exec exec, Ref<Storage> source) {
    const Backend& b = *accelerator();
    std::lock_guard lock(mutex_);
    EventHandle done = nullptr;
    auto idle = std::find_if(idle_.begin(), idle_.end(),
                             [&](const Idle& e) { return e.device == exec.device; });
    if (idle != idle_.end()) {
      done = idle->event;
      idle_.erase(idle);
    } else {
      check(b.event_create(exec.device, false, &done), "copying to the device");
    }
    Status recorded = b.event_record(exec.device, done, exec.stream);
    if (!recorded.ok()) b.event_destroy(exec.device, done);
    check(recorded, "copying to the device");
    copies_.push_back({exec.device, done, std::move(source)});
    // Finished ones go, and of the others there are never more than a loader runs ahead.
    while (!copies_.empty()) {
      const Copy& oldest = copies_.front();
      Status status = copies_.size() > kMost ? b.event_synchronize(oldest.device, oldest.done)
                                             : b.event_query(oldest.device, oldest.done);
      if (status.code == Code::kNotReady) break;
      idle_.push_back({oldest.device, oldest.done});
      copies_.pop_front();
    }
  }

 private:
  static constexpr size_t kMost = 256;
  struct Copy {
    int device;
    EventHandle done;
    Ref<Storage> source;
  };
  std::mutex mutex_;
  std::deque<Copy> copies_;
  struct Idle {
    int device;
    EventHandle event;
  };
  std::vector<Idle> idle_;  // for the next
};

// What `later` does from now on comes after what `earlier` has now.
void put_in_order(const Backend& b, Exec earlier, Exec later) {
  EventHandle done = nullptr;
  check(b.event_create(earlier.device, false, &done), "copying between devices");
  Status status = b.event_record(earlier.device, done, earlier.stream);
  if (status.ok()) status = b.stream_wait_event(later.device, later.stream, done);
  std::string why = status.message ? status.message : "";
  b.event_destroy(earlier.device, done);
  check({status.code, why.c_str()}, "copying between devices");
}

InFlight& in_flight() {
  static auto* copies = new InFlight;  // never destroyed: the device may be gone by then
  return *copies;
}

// Dense, same dtype, different devices.
void copy_across(const TensorBase& dst, const TensorBase& src, bool non_blocking) {
  fuse::ensure_readable(src,
                        src.device().is_cuda() ? fuse::Reason::kHostRead : fuse::Reason::kConsumer);
  fuse::ensure_writable(dst);
  if (dst.numel() == 0) return;
  BlockingScope scope;
  const Backend& b = *accelerator();
  if (dst.device().is_cuda() && src.device().is_cuda()) {
    // After what makes the source, and before what writes into it or uses its memory again: the two
    // devices wait for each other, and nobody for them.
    Exec from = exec_for(src.device()), to = exec_for(dst.device());
    put_in_order(b, from, to);
    check(b.copy_peer(to, dst.raw(), to.device, src.raw(), from.device, dst.nbytes()),
          "copying between devices");
    put_in_order(b, to, from);
    return;
  }
  bool up = dst.device().is_cuda();
  Exec exec = exec_for(up ? dst.device() : src.device());
  bool pinned = up && memory::is_pinned(src.storage());
  check(b.copy(exec, up ? CopyKind::kHostToDevice : CopyKind::kDeviceToHost, dst.raw(), src.raw(),
               dst.nbytes(), pinned && non_blocking),
        up ? "copying to the device" : "copying to the host");
  // Note [Copies that do not wait]
  // From pageable memory a copy returns when the source has been read. From pinned memory the
  // device reads it later: with non_blocking the memory is kept until then (what is written into it
  // meanwhile is the program's affair, as in PyTorch), otherwise we wait. To the host we wait
  // always: a tensor that is not there yet would be read as garbage.
  if (pinned && non_blocking)
    in_flight().keep(exec, src.impl()->storage);
  else if (pinned || !up)
    check(b.stream_synchronize(exec.device, exec.stream),
          up ? "copying to the device" : "copying to the host");
}

}  // namespace

void copy_into(const TensorBase& dst, const TensorBase& src, bool non_blocking) {
  if (dst.device() == src.device()) {
    static const Op& op = get_op("copy_");
    Value args[] = {Value(dst), Value(src), Value(false)};
    op.record->run(Call{op, args});
    return;
  }
  if (dst.device().is_meta()) return;
  TS_CHECK_IMPLEMENTED(!src.device().is_meta(), "Cannot copy out of meta tensor; no data!");
  autograd::GradMode off(false);
  TensorBase from = src.dtype() == dst.dtype() ? src : op::_to_dtype(src, dst.dtype());
  if (!(from.sizes() == dst.sizes())) from = op::expand(from, dst.sizes().span());
  bool alike = from.strides() == dst.strides() && is_dense(dst);
  if (!alike) from = op::contiguous(from);
  if (alike || dst.is_contiguous()) {
    copy_across(dst, from, non_blocking);
    dst.storage().version.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  TensorBase staged = new_empty(dst.sizes(), dst.dtype(), dst.device());
  copy_across(staged, from, non_blocking);
  copy_into(dst, staged, false);
}

TensorBase host_data(const TensorBase& t) {
  autograd::GradMode off(false);
  TS_CHECK_IMPLEMENTED(!t.device().is_meta(), "Cannot copy out of meta tensor; no data!");
  TensorBase dense = op::contiguous(t.device().is_cpu() ? t : op::_to_device(t, Device{}));
  fuse::ensure_readable(dense, fuse::Reason::kHostRead);
  return dense;
}

void grow_storage(const TensorBase& t, size_t nbytes) {
  Storage& s = t.storage();
  if (nbytes <= s.nbytes) return;
  bool exposed = s.exposed.load(std::memory_order_relaxed);
  TS_CHECK(!exposed || !s.device.is_cpu() || s.owner == s.data,
           "Trying to resize storage that is not resizable");
  fuse::ensure_writable(t);
  auto longer = Ref<Storage>::make(s.device, nbytes);
  allocate(*longer);
  if (s.data && s.nbytes) {
    if (s.device.is_cpu())
      std::memcpy(longer->data, s.data, s.nbytes);
    else
      check(accelerator()->copy(exec_for(s.device), CopyKind::kDeviceToDevice, longer->data, s.data,
                                s.nbytes, true),
            "growing a storage");
  }
  if (exposed) {  // somebody may hold its address: it stays where it is, and only `t` moves
    t.impl()->storage = std::move(longer);
    return;
  }
  std::swap(s.data, longer->data);
  std::swap(s.owner, longer->owner);
  std::swap(s.release, longer->release);
  std::swap(s.nbytes, longer->nbytes);
  memory::moved_to(s);
  memory::moved_to(*longer);
}

Dims host_ints(const TensorBase& t) {
  autograd::GradMode off(false);
  TensorBase host = host_data(t.dtype() == DType::kInt64 ? t : op::_to_dtype(t, DType::kInt64));
  Dims out(static_cast<size_t>(t.numel()));
  if (t.numel() > 0) std::memcpy(out.data(), host.raw(), host.nbytes());
  return out;
}

Scalar host_scalar(const TensorBase& t) {
  TS_CHECK(t.numel() == 1, "a Tensor with ", t.numel(), " elements cannot be converted to Scalar");
  return read_scalar(host_data(t));
}

void fill(const TensorBase& dst, Scalar value) {
  static const Op& op = get_op("fill_");
  Value args[] = {Value(dst), Value(value)};
  op.record->run(Call{op, args});
}

}  // namespace tessera
