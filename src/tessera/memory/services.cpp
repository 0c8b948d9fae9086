// What backends get from the core: room for their kernels from the caching allocator.
#include "tessera/memory/services.h"

#include <cstdio>

#include "tessera/base/error.h"
#include "tessera/driver/bodies.h"
#include "tessera/driver/ending.h"
#include "tessera/memory/allocator.h"

namespace tessera::memory {

namespace {

Status allocate_for_kernel(int device, size_t bytes, StreamHandle stream, void** out,
                           void** handle) {
  // The message outlives the exception: it is for the caller's thread, until its next failure.
  thread_local char message[4096];
  auto keep = [](const char* text) {
    std::snprintf(message, sizeof message, "%s", text);
    return message;
  };
  try {
    *out = allocate(device, bytes, stream, handle);
    return {};
  } catch (const Error& e) {
    return {e.kind() == ErrorKind::kOutOfMemory ? Code::kOutOfMemory : Code::kFailed,
            keep(e.what())};
  } catch (const std::exception& e) {
    return {Code::kFailed, keep(e.what())};
  }
}

}  // namespace

const HostServices& host_services() {
  static constexpr HostServices services{allocate_for_kernel, deallocate, listed_bodies, at_end};
  return services;
}

}  // namespace tessera::memory
