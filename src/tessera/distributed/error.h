// What goes wrong between processes: PyTorch's classes of errors.
#pragma once
#include "tessera/base/error.h"

namespace tessera::distributed {

enum class DistErrorKind : uint8_t { kDist, kBackend, kNetwork, kStore };

class DistError : public Error {
 public:
  DistError(DistErrorKind kind, std::string message)
      : Error(ErrorKind::kRuntime, std::move(message)), dist_kind_(kind) {}
  DistErrorKind dist_kind() const { return dist_kind_; }

 private:
  DistErrorKind dist_kind_;
};

template <class... Args>
[[noreturn]] void fail(DistErrorKind kind, const Args&... args) {
  throw DistError(kind, cat(args...));
}

}  // namespace tessera::distributed
