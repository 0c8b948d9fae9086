// Memory that tensors share. While its content is only pending, a storage has no memory yet.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tessera/base/device.h"
#include "tessera/base/dtype.h"
#include "tessera/base/ref.h"

namespace tessera {

namespace fuse {
class Stream;
}

class Storage final : public RefCounted {
 public:
  Storage(Device device, size_t nbytes) : device(device), nbytes(nbytes) {}
  ~Storage();

  const Device device;
  size_t nbytes;
  void* data = nullptr;

  // Bumped by every in-place write, so that what was made of the bytes is known to be old.
  std::atomic<uint32_t> version{0};
  // How many of those autograd is not to see (counted_apart in tensor.h).
  std::atomic<uint32_t> writes_apart{0};

  // How `data` is given back: the allocator's handle, or the foreign owner's release function.
  void* owner = nullptr;
  void (*release)(void* owner) = nullptr;

  // Its address has left us or came from outside: an operator that touches it runs when called.
  // Set once, never cleared.
  std::atomic<bool> exposed{false};

  // Note [Memory that stays in place]
  // Memory that Tessera did not allocate is not resizable. Memory seen by NumPy arrays, memoryviews
  // and DLPack consumers is not resizable while such a buffer is alive: the buffer has the address.
  // `exposed` alone does not forbid resizing, as in PyTorch after data_ptr().
  bool resizable = true;
  std::atomic<uint32_t> buffers{0};  // live buffers over the memory
  bool can_resize() const { return resizable && buffers.load(std::memory_order_acquire) == 0; }

  // Note [Pending state of a storage]
  // `pending` is the stream whose work still reads or writes this storage, null when there is none;
  // readable without a lock. The fields below are guarded by that stream's lock.
  //   pending_refs  references held by pending work: use_count() - pending_refs is the number of
  //                 owners outside
  //   pending_writes  pending operators that write it
  //   writer        the pending operator that wrote it last, null if none is pending
  //   charged       bytes charged to the allocator for memory it will need
  std::atomic<fuse::Stream*> pending{nullptr};
  // Number of copies from a device into this pinned memory in flight; readers wait for them
  // (await_arrival). The highest bit is kMarked: see Note [Poisoned tensors] in outcome.h.
  std::atomic<uint32_t> arriving{0};
  uint32_t pending_refs = 0;
  uint32_t pending_writes = 0;
  void* writer = nullptr;
  size_t charged = 0;
  bool hidden = false;  // only pending work keeps it: not counted as allocated
  // A slot of the run that is under way, valid for that run's number only.
  uint32_t run = 0;
  uint32_t slot = 0;

  // What it was made for, to be named in reports of device memory: not kept up to date.
  struct Made {
    DType dtype = DType::kUInt8;
    int8_t ndim = -1;       // -1: not known
    int64_t sizes[4] = {};  // the first of them
  };
  Made made;
  void made_for(const int64_t* sizes, int ndim, DType dtype) {
    if (!device.is_cuda()) return;
    made.dtype = dtype;
    made.ndim = static_cast<int8_t>(ndim);
    for (int i = 0; i < ndim && i < 4; ++i) made.sizes[i] = sizes[i];
  }

  bool owned_outside() const { return use_count() > pending_refs; }
};

// Waits for copies into the storage; raises what the device reports.
void await_arrival(Storage& storage);
inline void ensure_arrived(Storage& storage) {
  if (storage.arriving.load(std::memory_order_acquire)) [[unlikely]]
    await_arrival(storage);
}

// Gives `storage` memory now: host memory, or device memory ordered on the current stream (or on
// `stream`, where pending work of another thread's runs).
void allocate(Storage& storage);
void allocate_on(Storage& storage, void* stream);
// Page-locked host memory, which the accelerator copies from at its full speed.
void allocate_pinned(Storage& storage);

}  // namespace tessera
