// Copies between places, layouts, dtypes and devices.
#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "tessera/autograd/node.h"
#include "tessera/base/blocking.h"
#include "tessera/base/fork.h"
#include "tessera/call/overlap.h"
#include "tessera/call/pointwise.h"
#include "tessera/driver/current.h"
#include "tessera/fuse/stream.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/view.h"
#include "tessera/memory/allocator.h"
#include "tessera/memory/capture.h"
#include "tessera/memory/pinned.h"
#include "tessera/tensor/outcome.h"

namespace tessera {

namespace {

// Copies that are under way: their host memory is kept until the device is done with it. The mutex
// is never held while a thread waits for the device.
class InFlight {
 public:
  void keep(Exec exec, Ref<Storage> host, bool arriving) {
    const Backend& b = *accelerator();
    EventHandle done = take_idle_event(exec.device);
    if (!done) check(b.event_create(exec.device, false, &done), "copying");
    Status recorded = b.event_record(exec.device, done, exec.stream);
    if (!recorded.ok()) b.event_destroy(exec.device, done);
    check(recorded, "copying");
    if (arriving) host->arriving.fetch_add(1, std::memory_order_release);
    auto copy = std::make_shared<Copy>(exec, done, std::move(host), arriving);
    std::vector<std::shared_ptr<Copy>> finished;  // released without the lock
    std::unique_lock lock(mutex_);
    copies_.push_back(std::move(copy));
    // Removes finished copies: the oldest, and all of them when there are more than kMaxCopies.
    // Copies of one stream finish in order, those of others may be held up. A failed copy stays:
    // its error is raised where the memory is read.
    auto is_ready = [&](const Copy& c) { return b.event_query(c.device, c.done).ok(); };
    const bool many = copies_.size() > kMaxCopies;
    for (size_t i = 0; i < copies_.size();) {
      if (std::shared_ptr<Copy> next = copies_[i]; is_ready(*next)) {
        remove(*next);
        finished.push_back(std::move(next));
      } else if (many) {
        ++i;
      } else {
        break;
      }
    }
    // A stream with too many copies waits for its own: those of another may take long.
    auto is_of_stream = [&](const auto& c) {
      return c->device == exec.device && c->stream == exec.stream;
    };
    while (copies_.size() > kMaxCopies) {
      auto at = std::find_if(copies_.begin(), copies_.end(), is_of_stream);
      if (at == copies_.end()) break;
      std::shared_ptr<Copy> oldest = *at;
      wait_for(*oldest, lock);
      if (oldest->code != Code::kOk) break;
      remove(*oldest);
      finished.push_back(std::move(oldest));
    }
  }

  // Waits for copies into the memory, and with `leaving` for those out of it too. Raises the error
  // of the first that failed.
  void await(const Storage& host, bool leaving) {
    std::string why;
    Code code = Code::kOk;
    {
      std::vector<std::shared_ptr<Copy>> finished;  // released without the lock
      std::unique_lock lock(mutex_);
      for (;;) {
        auto at = std::find_if(copies_.begin(), copies_.end(), [&](const auto& c) {
          return (c->arriving || leaving) && c->host.get() == &host;
        });
        if (at == copies_.end()) break;
        std::shared_ptr<Copy> copy = *at;
        wait_for(*copy, lock);
        remove(*copy);
        if (copy->code != Code::kOk && code == Code::kOk) {
          code = copy->code;
          why = copy->why;
        }
        finished.push_back(std::move(copy));
      }
    }
    check({code, why.c_str()}, "copying to the host");
  }

  Mutex& lock() { return mutex_; }

 private:
  static constexpr size_t kMaxCopies = 256;
  struct Copy {
    Copy(Exec exec, EventHandle done, Ref<Storage> host, bool arriving)
        : device(exec.device),
          stream(exec.stream),
          done(done),
          host(std::move(host)),
          arriving(arriving) {}
    const int device;
    const StreamHandle stream;
    const EventHandle done;
    const Ref<Storage> host;
    const bool arriving;  // to the host
    bool listed = true;
    int waiting = 0;  // threads; the event is in use until it is 0
    Code code = Code::kOk;
    std::string why;
  };
  struct Idle {
    int device;
    EventHandle event;
  };

  EventHandle take_idle_event(int device) {
    std::lock_guard lock(mutex_);
    auto idle =
        std::find_if(idle_.begin(), idle_.end(), [&](const Idle& e) { return e.device == device; });
    if (idle == idle_.end()) return nullptr;
    EventHandle event = idle->event;
    idle_.erase(idle);
    return event;
  }

  // Unlocks the mutex while it waits. A device reports a failure once: the copy keeps it for other
  // threads that wait for the same copy.
  void wait_for(Copy& copy, std::unique_lock<Mutex>& lock) {
    ++copy.waiting;
    lock.unlock();
    Status status = accelerator()->event_synchronize(copy.device, copy.done);
    lock.lock();
    --copy.waiting;
    if (status.ok() || copy.code != Code::kOk) return;
    copy.code = status.code;
    copy.why = status.message ? status.message : "";
  }

  // The last thread that waits for the copy gives the event back.
  void remove(Copy& copy) {
    if (copy.listed) {
      copies_.erase(std::find_if(copies_.begin(), copies_.end(),
                                 [&](const auto& c) { return c.get() == &copy; }));
      if (copy.arriving) copy.host->arriving.fetch_sub(1, std::memory_order_release);
      copy.listed = false;
    }
    if (copy.waiting == 0) idle_.push_back({copy.device, copy.done});
  }

  Mutex mutex_;
  std::deque<std::shared_ptr<Copy>> copies_;
  std::vector<Idle> idle_;  // events that can be recorded again
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
Mutex& lock_of_copies() { return in_flight().lock(); }
const HeldDuringFork<ForkStage::kCopies, lock_of_copies> g_at_fork;

// Dense, same dtype, different devices.
void copy_across(const TensorBase& dst, const TensorBase& src, bool non_blocking) {
  fuse::run_for_reading(src,
                        src.device().is_cuda() ? fuse::Reason::kHostRead : fuse::Reason::kConsumer);
  fuse::ensure_writable(dst);
  if (dst.numel() == 0) return;
  if (has_marks()) [[unlikely]] {
    const bool waits = dst.device().is_cpu() && !(non_blocking && memory::is_pinned(dst.storage()));
    PassedMarks marks;
    if (waits)
      check_outcome(src);
    else
      marks.read(src);
    marks.write(dst, true);
  }
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
  const TensorBase& host = up ? src : dst;
  const char* what = up ? "copying to the device" : "copying to the host";
  bool pinned = memory::is_pinned(host.storage());
  std::shared_ptr<memory::Capture> capture = memory::capture_of(exec.device, exec.stream);
  if (capture && !(pinned && non_blocking))
    capture->refuse(
        up ? "copying from the host to the device (make the tensor before the capture, "
             "or copy from pinned memory with non_blocking=True)"
           : "copying to the host (.item(), .tolist(), .cpu(), printing, or a condition "
             "on a tensor)");
  check(b.copy(exec, up ? CopyKind::kHostToDevice : CopyKind::kDeviceToHost, dst.raw(), src.raw(),
               dst.nbytes(), pinned && non_blocking),
        what);
  // Note [Copies that do not wait]
  // From pageable memory a copy returns when the source has been read, into it when all is there.
  // With pinned memory and non_blocking the device works on its own: the memory is kept until then.
  // What is written into a source meanwhile is the program's affair, as in PyTorch; but whoever
  // looks at a destination through a tensor waits for it, where PyTorch would show what was there
  // before.
  if (capture) {
    host.storage().resizable = false;  // the graph has its address
    capture->keep(host.impl()->storage);
  } else if (pinned && non_blocking) {
    in_flight().keep(exec, host.impl()->storage, !up);
  } else if (pinned || !up) {
    check(b.stream_synchronize(exec.device, exec.stream), what);
  }
}

}  // namespace

void await_arrival(Storage& storage) {
  if (storage.arriving.load(std::memory_order_acquire) == kMarked) return;
  BlockingScope scope;
  in_flight().await(storage, false);
}

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
    count_write(dst);
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
  TS_CHECK(s.can_resize(), "Trying to resize storage that is not resizable");
  fuse::ensure_writable(t);
  auto longer = Ref<Storage>::make(s.device, nbytes);
  if (memory::is_pinned(s)) {
    BlockingScope scope;
    in_flight().await(s, true);  // a device may still read the memory that is freed below
    allocate_pinned(*longer);
  } else {
    allocate(*longer);
  }
  if (s.data && s.nbytes) {
    if (s.device.is_cpu())
      std::memcpy(longer->data, s.data, s.nbytes);
    else
      check(accelerator()->copy(exec_for(s.device), CopyKind::kDeviceToDevice, longer->data, s.data,
                                s.nbytes, true),
            "growing a storage");
  }
  // Other threads may have made a buffer while this one waited for the device.
  TS_CHECK(s.can_resize(), "Trying to resize storage that is not resizable");
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
