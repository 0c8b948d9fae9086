// From a backend's status to the error a caller sees.
#include <new>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/driver/backend.h"

namespace tessera {

void raise_status(Status status, const char* what) {
  const char* text = status.message && *status.message ? status.message : "no message";
  // A backend whose own bookkeeping found no memory hands the exception's text on.
  if (std::string_view(text) == std::bad_alloc().what()) throw std::bad_alloc();
  switch (status.code) {
    case Code::kOutOfMemory:
      // The allocator's own report is complete.
      if (std::string_view(text).starts_with("CUDA out of memory. Tried"))
        raise(ErrorKind::kOutOfMemory, text);
      raise(ErrorKind::kOutOfMemory, cat(what, ": ", text));
    case Code::kUnsupported:
      raise(ErrorKind::kNotImplemented, cat(what, ": ", text));
    case Code::kInvalid:
      // The kernel worded it for the user, as PyTorch words it: nothing is put before it.
      raise(ErrorKind::kIndex, text);
    case Code::kRefused:
      raise(ErrorKind::kRuntime, text);
    default:
      raise(ErrorKind::kRuntime, cat(what, ": ", text));
  }
}

}  // namespace tessera
