// What backends get from the core: room for their kernels from the caching allocator.
#include "tessera/memory/services.h"

#include "tessera/base/error.h"
#include "tessera/driver/bodies.h"
#include "tessera/driver/ending.h"
#include "tessera/memory/allocator.h"

namespace tessera::memory {

namespace {

Status allocate_for_kernel(int device, size_t bytes, StreamHandle stream, void** out,
                           void** handle) {
  // The message outlives the exception: it is for the caller's thread, until its next failure.
  thread_local std::string message;
  try {
    *out = allocate(device, bytes, stream, handle);
    return {};
  } catch (const Error& e) {
    message = e.what();
    return {e.kind() == ErrorKind::kOutOfMemory ? Code::kOutOfMemory : Code::kFailed,
            message.c_str()};
  } catch (const std::exception& e) {
    message = e.what();
    return {Code::kFailed, message.c_str()};
  }
}

}  // namespace

const HostServices& host_services() {
  static constexpr HostServices services{allocate_for_kernel, deallocate, listed_bodies, at_end};
  return services;
}

}  // namespace tessera::memory
