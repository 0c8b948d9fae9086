// Where a trace is written: a file, compressed while it is written if its name ends in .gz.
#pragma once
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace tessera::profile {

class Sink {
 public:
  // Raises when the file cannot be made.
  static std::unique_ptr<Sink> open(const std::string& path);
  virtual ~Sink() = default;
  virtual void write(std::string_view text) = 0;
  virtual void finish() = 0;  // raises when something could not be written
};

}  // namespace tessera::profile
