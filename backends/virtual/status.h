#pragma once
#include <string>

#include "tessera/driver/backend.h"

namespace tessera::vgpu {

// A failure whose text lives until the calling thread's next one.
inline Status fail(Code code, std::string message) {
  // Initial-exec takes a few bytes of the room each thread keeps for libraries loaded later. It is
  // a plain load, and GCC 12's leak checker crashes at exit over the general model.
  static thread_local std::string last __attribute__((tls_model("initial-exec")));
  last = std::move(message);
  return {code, last.c_str()};
}

}  // namespace tessera::vgpu
