#pragma once
#include <string>

#include "tessera/driver/backend.h"

namespace tessera::vgpu {

// A failure whose text lives until the calling thread's next one.
inline Status fail(Code code, std::string message) {
  static thread_local std::string last;
  last = std::move(message);
  return {code, last.c_str()};
}

}  // namespace tessera::vgpu
