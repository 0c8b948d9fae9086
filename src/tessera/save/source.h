// Where a file's bytes come from: a file, or memory.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace tessera::files {

class Source {
 public:
  // Raises SystemError. What is no plain file (a pipe) is read whole.
  static std::shared_ptr<Source> open(const std::string& path);
  // `fd` stays the caller's; `name` is for messages.
  static std::shared_ptr<Source> descriptor(int fd, std::string name);
  // The memory has to live as long as the source.
  static std::shared_ptr<Source> memory(std::span<const uint8_t> bytes, std::string name);
  ~Source();
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  const std::string& name() const { return name_; }
  uint64_t size() const { return size_; }
  bool is_file() const { return fd_ >= 0; }
  // The caller has checked that they lie inside; a file that has shrunk meanwhile raises.
  void read(uint64_t offset, void* to, size_t n) const;
  std::vector<uint8_t> read(uint64_t offset, size_t n) const;
  // The whole file in memory, writes to which are not written back; raises for other sources.
  uint8_t* map() const;

 private:
  Source() = default;
  int fd_ = -1;
  std::string name_;
  uint64_t size_ = 0;
  std::vector<uint8_t> held_;  // of what could only be read once
  const uint8_t* memory_ = nullptr;
  mutable std::once_flag mapping_;
  mutable uint8_t* mapped_ = nullptr;
};

}  // namespace tessera::files
