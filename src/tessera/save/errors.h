// What saving and loading raise: a refused file says where in it and why, the system's errors keep
// their number.
#pragma once
#include <cstdint>
#include <string>

#include "tessera/base/error.h"

namespace tessera::files {

// The file is broken, or asks for what is not allowed.
class Refused : public Error {
 public:
  // kPickle is what Python calls an UnpicklingError; kEmpty an EOFError.
  enum class What : uint8_t { kFormat, kPickle, kEmpty };
  Refused(What what, std::string message)
      : Error(ErrorKind::kRuntime, std::move(message)), what_(what) {}
  What kind_of_refusal() const { return what_; }

 private:
  What what_;
};

// The system refused: Python's OSError with this number.
class SystemError : public Error {
 public:
  SystemError(int code, std::string path, std::string_view doing, std::string reason)
      : Error(ErrorKind::kRuntime, cat(doing, " '", path, "': ", reason)),
        code_(code),
        path_(std::move(path)),
        reason_(std::move(reason)) {}
  int code() const { return code_; }
  const std::string& path() const { return path_; }
  // What the system says, without the path.
  const std::string& reason() const { return reason_; }

 private:
  int code_;
  std::string path_, reason_;
};

// "cannot open 'x.pt': No such file or directory", from errno.
[[noreturn]] void raise_system(const std::string& path, std::string_view doing,
                               std::string_view more = {});
// "x.pt: data.pkl, byte 12: ..."; an empty entry is left out.
[[noreturn]] void refuse(Refused::What what, const std::string& file, std::string_view entry,
                         uint64_t byte, std::string_view why);

}  // namespace tessera::files
