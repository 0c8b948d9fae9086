// Copies run on the stream's worker. As on a real device, one into pageable host memory returns
// when it is done, one into page-locked memory at once.
#include "copies.h"

#include <cstring>

#include "capture.h"
#include "notes.h"
#include "state.h"

namespace tessera::vgpu {

namespace {

// Up to here an unstable source is copied aside; beyond, waiting is cheaper than copying twice.
constexpr size_t kSnapshot = size_t{64} << 10;

Status foreign(const char* which) {
  return fail(Code::kFailed, std::string("an illegal memory access was encountered: the ") + which +
                                 " of a copy is not in device memory");
}

const char* copy_label(CopyKind kind, bool pinned) {
  switch (kind) {
    case CopyKind::kHostToDevice:
      return pinned ? "Memcpy HtoD (Pinned -> Device)" : "Memcpy HtoD (Pageable -> Device)";
    case CopyKind::kDeviceToHost:
      return pinned ? "Memcpy DtoH (Device -> Pinned)" : "Memcpy DtoH (Device -> Pageable)";
    default:
      return "Memcpy DtoD (Device -> Device)";
  }
}

Task* labelled(Task* task, const char* label, size_t bytes) {
  task->label = label;
  task->activity = DeviceActivity::Kind::kCopy;
  task->bytes = static_cast<int64_t>(bytes);
  return task;
}

struct Snapshot : Task {
  void* dst;
  size_t size;
  double rate;
  char* data() { return reinterpret_cast<char*>(this + 1); }
};

Task* snapshot(void* dst, const void* src, size_t bytes, double rate) {
  auto* t = new (::operator new(sizeof(Snapshot) + bytes)) Snapshot;
  t->dst = dst;
  t->size = bytes;
  t->rate = rate;
  std::memcpy(t->data(), src, bytes);
  t->run = [](Task* task, Stream& stream) -> Status {
    auto* self = static_cast<Snapshot*>(task);
    std::memcpy(self->dst, self->data(), self->size);
    stream.model_transfer(static_cast<int64_t>(self->size), self->rate);
    return {};
  };
  t->destroy = [](Task* task) { ::operator delete(static_cast<Snapshot*>(task)); };
  return t;
}

Task* move_task(void* dst, const void* src, size_t bytes, double rate) {
  return make_task([=](Stream& stream) -> Status {
    std::memmove(dst, src, bytes);
    stream.model_transfer(static_cast<int64_t>(bytes), rate);
    return {};
  });
}

Status finish(Stream& stream, uint64_t position) {
  if (!stream.wait(position))
    return fail(Code::kFailed, "the process is exiting: the copy was given up");
  return {};
}

}  // namespace

Status copy(Exec exec, CopyKind kind, void* dst, const void* src, size_t bytes,
            bool source_stable) {
  if (bytes == 0) return {};
  return on_stream(exec.device, exec.stream, [&](Stream& stream) -> Status {
    Device& d = stream.device();
    const Config& c = d.config();
    void* from = const_cast<void*>(src);
    if (kind != CopyKind::kDeviceToHost && !(dst = d.bytes_at(dst))) return foreign("target");
    if (kind != CopyKind::kHostToDevice && !(from = d.bytes_at(from))) return foreign("source");
    // What returns when it is done cannot be kept for later.
    const bool waits = kind == CopyKind::kDeviceToHost   ? !state().is_pinned(dst)
                       : kind == CopyKind::kHostToDevice ? !source_stable
                                                         : false;
    if (waits)
      if (auto capture = stream.capture()) {
        capture->invalidate(kCapturing);
        return fail(Code::kFailed, kCapturing);
      }
    const char* label =
        profiling.load(std::memory_order_relaxed)
            ? copy_label(kind, state().is_pinned(kind == CopyKind::kDeviceToHost ? dst : from))
            : nullptr;
    if (kind == CopyKind::kDeviceToHost) {
      const bool wait = !state().is_pinned(dst);
      const uint64_t position =
          stream.submit(labelled(move_task(dst, from, bytes, c.d2h), label, bytes));
      if (!wait) return {};
      Status status = finish(stream, position);
      return status.ok() ? d.take_failure() : status;
    }
    if (kind == CopyKind::kDeviceToDevice) {
      stream.submit(labelled(move_task(dst, from, bytes, c.mem), label, bytes));
      return {};
    }
    if (!source_stable && bytes <= kSnapshot) {
      stream.submit(labelled(snapshot(dst, from, bytes, c.h2d), label, bytes));
      return {};
    }
    const uint64_t position =
        stream.submit(labelled(move_task(dst, from, bytes, c.h2d), label, bytes));
    return source_stable ? Status{} : finish(stream, position);
  });
}

Status copy_peer(Exec exec, void* dst, int dst_device, const void* src, int src_device,
                 size_t bytes) {
  if (bytes == 0) return {};
  return on_stream(exec.device, exec.stream, [&](Stream& stream) -> Status {
    State& s = state();
    for (int device : {dst_device, src_device})
      if (device < 0 || device >= s.count()) return no_device(device);
    void* to = s.device(dst_device).bytes_at(dst);
    void* from = s.device(src_device).bytes_at(const_cast<void*>(src));
    if (!to) return foreign("target");
    if (!from) return foreign("source");
    stream.submit(labelled(move_task(to, from, bytes, stream.device().config().mem),
                           "Memcpy PtoP (Device -> Device)", bytes));
    return {};
  });
}

}  // namespace tessera::vgpu
