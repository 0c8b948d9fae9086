// How a storage gets its memory and gives it back.
#include "tessera/tensor/storage.h"

#include <utility>

#include "tessera/driver/current.h"
#include "tessera/memory/allocator.h"
#include "tessera/memory/block.h"
#include "tessera/memory/host.h"
#include "tessera/profile/record.h"
#include "tessera/tensor/outcome.h"

namespace tessera {

namespace {
void give_back(void* block) { memory::deallocate(block); }
void give_back_host(void* p) { memory::host_deallocate(p); }

// Host memory taken while profiles were on, as PyTorch counts it.
std::atomic<int64_t> g_profiled{0};
void note_host(const void* p, int64_t bytes) {
  profile::note_memory(-1, p, bytes, g_profiled.fetch_add(bytes) + bytes);
}
}  // namespace

// A storage that is `hidden` here is the result of a deferred operator, without memory so far.
void allocate_on(Storage& s, void* stream) {
  const size_t charged = std::exchange(s.charged, 0);
  if (charged) memory::uncharge(s.device.index, charged);
  if (s.nbytes == 0 || s.data || s.device.is_meta()) return;
  if (s.device.is_cpu()) {
    s.data = s.owner = memory::host_allocate(s.nbytes);
    s.release = give_back_host;
    if (profile::what() & profile::kBytes) [[unlikely]]
      note_host(s.data, static_cast<int64_t>(s.nbytes));
  } else {
    using memory::Owner;
    try {
      s.data = memory::allocate(s.device.index, s.nbytes, stream, &s.owner, &s,
                                s.hidden ? Owner::kDeferredWork : Owner::kProgram);
    } catch (...) {
      if (charged && memory::charge(s.device.index, charged) != memory::Charge::kTooLarge)
        s.charged = charged;
      throw;
    }
    s.release = give_back;
    if (s.hidden) memory::clear_unstored(s.device.index, s.nbytes);
  }
}

void allocate(Storage& s) {
  allocate_on(s, s.device.is_cuda() ? current_stream(s.device.index) : nullptr);
}

void memory::moved_to(const Storage& s) {
  if (s.release == give_back && s.owner) static_cast<Block*>(s.owner)->holder = &s;
}

void memory::record_stream(const Storage& s, StreamHandle stream) {
  if (s.release == give_back && s.owner) record_stream(s.owner, stream);
}

Storage::~Storage() {
  if (arriving.load(std::memory_order_relaxed) & kMarked) [[unlikely]]
    drop_marks(*this);
  if (charged) memory::uncharge(device.index, charged);
  if (!release || !data) return;
  if ((profile::what() & profile::kBytes) && release == give_back_host) [[unlikely]]
    note_host(data, -static_cast<int64_t>(nbytes));
  release(owner);
}

}  // namespace tessera
