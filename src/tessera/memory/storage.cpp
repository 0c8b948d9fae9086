// How a storage gets its memory and gives it back.
#include "tessera/tensor/storage.h"

#include "tessera/driver/current.h"
#include "tessera/memory/allocator.h"
#include "tessera/memory/block.h"
#include "tessera/memory/host.h"

namespace tessera {

namespace {
void give_back(void* block) { memory::deallocate(block); }
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
