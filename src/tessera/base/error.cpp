#include "tessera/base/error.h"

#include <charconv>
#include <cstdio>

namespace tessera {

void raise(ErrorKind kind, std::string message) { throw Error(kind, std::move(message)); }

void raise_internal(const char* expression, const char* file, int line,
                    const std::string& message) {
  raise(ErrorKind::kInternal,
        cat("internal error in Tessera (a bug, please report it): ", expression, " failed at ",
            file, ":", line, message.empty() ? "" : ": ", message));
}

namespace detail {

void append(std::string& out, int64_t v) {
  char buf[24];
  auto [end, ec] = std::to_chars(buf, buf + sizeof buf, v);
  out.append(buf, end);
}

void append(std::string& out, uint64_t v) {
  char buf[24];
  auto [end, ec] = std::to_chars(buf, buf + sizeof buf, v);
  out.append(buf, end);
}

void append(std::string& out, double v) {
  char buf[32];
  int n = std::snprintf(buf, sizeof buf, "%g", v);
  out.append(buf, static_cast<size_t>(n));
}

}  // namespace detail
}  // namespace tessera
