#include "status.h"

#include <cstdarg>
#include <cstdio>

namespace tessera::cuda {

Status fail(Code code, const char* format, ...) {
  // Large enough for the end of a compiler's log.
  thread_local char message[4096];
  va_list args;
  va_start(args, format);
  std::vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return Status{code, message};
}

}  // namespace tessera::cuda
