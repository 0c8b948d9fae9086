#pragma once
#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "tessera/driver/backend.h"

namespace tessera::vgpu {

// A failure whose text is valid until the calling thread's next one; longer texts are cut.
// Allocates nothing: it is called where memory has run out, and by destructors of static objects.
inline Status fail(Code code, std::string_view message) noexcept {
  static thread_local char last[1024];
  const size_t n = std::min(message.size(), sizeof last - 1);
  std::memmove(last, message.data(), n);
  last[n] = '\0';
  return {code, last};
}

}  // namespace tessera::vgpu
