// How a storage gets its memory and gives it back.
#include "tessera/tensor/storage.h"

#include "tessera/driver/current.h"
#include "tessera/memory/allocator.h"
#include "tessera/memory/block.h"
#include "tessera/memory/host.h"
#include "tessera/memory/pinned.h"

namespace tessera {

namespace {
void give_back(void* block) { memory::deallocate(block); }
void give_back_pinned(void* p) { accelerator()->host_deallocate(p); }
}  // namespace

void allocate_on(Storage& s, void* stream) {
  if (s.charged) {
    memory::uncharge(s.device.index, s.charged);
    s.charged = 0;
  }
  if (s.nbytes == 0 || s.data || s.device.is_meta()) return;
  if (s.device.is_cpu()) {
    s.data = s.owner = memory::host_allocate(s.nbytes);
    s.release = [](void* p) { memory::host_deallocate(p); };
  } else {
    s.data = memory::allocate(s.device.index, s.nbytes, stream, &s.owner, &s);
    s.release = give_back;
  }
}

void allocate(Storage& s) {
  allocate_on(s, s.device.is_cuda() ? current_stream(s.device.index) : nullptr);
}

void allocate_pinned(Storage& s) {
  const char* why = nullptr;
  const Backend* backend = accelerator(&why);
  TS_CHECK(backend, "Cannot access accelerator device when none is available: ", why);
  if (s.nbytes == 0 || s.data) return;
  check(backend->host_allocate(s.nbytes, &s.data), "allocating pinned memory");
  s.owner = s.data;
  s.release = give_back_pinned;
}

bool memory::is_pinned(const Storage& s) { return s.release == give_back_pinned; }

void memory::moved_to(const Storage& s) {
  if (s.release == give_back && s.owner) static_cast<Block*>(s.owner)->holder = &s;
}

void memory::record_stream(const Storage& s, StreamHandle stream) {
  if (s.release == give_back && s.owner) record_stream(s.owner, stream);
}

Storage::~Storage() {
  if (charged) memory::uncharge(device.index, charged);
  if (release && data) release(owner);
}

}  // namespace tessera
