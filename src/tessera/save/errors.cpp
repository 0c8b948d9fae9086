#include "tessera/save/errors.h"

#include <cerrno>
#include <cstring>

namespace tessera::files {

void raise_system(const std::string& path, std::string_view doing, std::string_view more) {
  int code = errno;
  throw SystemError(code, path, doing, cat(std::strerror(code), more));
}

void refuse(Refused::What what, const std::string& file, std::string_view entry, uint64_t byte,
            std::string_view why) {
  std::string place = entry.empty() ? cat(file, ": ") : cat(file, ": ", entry, ", ");
  throw Refused(what, cat(place, "byte ", byte, ": ", why));
}

}  // namespace tessera::files
