// Where a file's bytes go.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace tessera::files {

class Sink {
 public:
  virtual ~Sink() = default;
  // All of them, or it raises.
  virtual void write(const void* data, size_t n) = 0;
};

// A string grows.
class TextSink : public Sink {
 public:
  void write(const void* data, size_t n) override {
    text.append(static_cast<const char*>(data), n);
  }
  std::string text;
};

// Note [A kill at any moment]
// Bytes go to a new file in the folder of the old one, `.NAME.XXXXXX.tessera-tmp` (a long name is
// replaced by its hash, as file systems limit names to 255 bytes or fewer). commit() makes them
// durable, renames the file over the old one and makes the rename durable: whoever looks finds the
// old file or the new one, whole, whenever the process or the machine stops. A writer holds a lock
// on its new file, which goes with the process; the next save to the same name removes those
// nobody holds.
class AtomicFile : public Sink {
 public:
  // `expected` bytes are reserved, so that a full disk is found before anything is written.
  AtomicFile(const std::string& path, uint64_t expected = 0);
  ~AtomicFile() override;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  void write(const void* data, size_t n) override;
  void commit();

 private:
  void open_beside();
  void reserve(uint64_t bytes);
  void flush();
  void put(const char* data, size_t n);

  std::string path_;       // what the user said
  std::string target_;     // with links followed
  std::string temporary_;  // empty: what is there is no plain file, and is written to directly
  std::string buffer_;
  int fd_ = -1;
  uint64_t written_ = 0;
  uint64_t started_ = 0;  // up to here the disk was told to begin
};

}  // namespace tessera::files
