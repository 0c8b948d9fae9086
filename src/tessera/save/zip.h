// Zip archives as PyTorch's files are: entries stored as they are, their bytes at multiples of 64.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/save/sink.h"
#include "tessera/save/source.h"

namespace tessera::files {

struct ZipEntry {
  std::string name;
  uint64_t header = 0;  // where its local header begins
  uint64_t offset = 0;  // ... and its bytes
  uint64_t size = 0;
  uint32_t crc = 0;  // 0: the writer left it out
};

// Reads the central directory and holds it against every local header: names, sizes and methods
// agree, entries neither overlap nor leave room between them, names are plain. What is odd is
// refused, so that no two readers can see different files in one.
class ZipReader {
 public:
  explicit ZipReader(std::shared_ptr<Source> source);
  static bool looks_like_zip(const Source& source);

  const Source& source() const { return *source_; }
  const std::vector<ZipEntry>& entries() const { return entries_; }
  // Without the folder that all entries lie in; null where there is none.
  const ZipEntry* find(std::string_view name) const;
  // The folder, without its slash.
  const std::string& folder() const { return folder_; }
  // The checksum is compared where the writer kept one.
  void read(const ZipEntry& entry, void* to) const;
  // Reads the entry and keeps nothing; false where the writer kept no checksum.
  bool verify(const ZipEntry& entry) const;
  std::vector<uint8_t> read(const ZipEntry& entry) const;

 private:
  struct Directory {
    uint64_t offset = 0, size = 0, count = 0;
  };
  Directory find_directory() const;
  void read_directory(const Directory& directory);
  void check_local(ZipEntry& entry, uint16_t flags) const;
  void check_name(const std::string& name, uint64_t at);
  void check_layout(uint64_t end) const;
  void check_sum(const ZipEntry& entry, uint32_t crc) const;
  [[noreturn]] void refuse_at(uint64_t byte, std::string_view why) const;

  std::shared_ptr<Source> source_;
  std::string folder_;
  std::vector<ZipEntry> entries_;
  std::map<std::string, size_t, std::less<>> by_name_;  // ordered: hashes of text collide
};

// Writes entries one after another; sizes and places beyond 32 bits where they are needed.
class ZipWriter {
 public:
  ZipWriter(Sink& sink, std::string folder) : sink_(sink), folder_(std::move(folder)) {}
  void add(std::string_view name, const void* data, uint64_t size);
  void add(std::string_view name, std::string_view data) { add(name, data.data(), data.size()); }
  void finish();
  // Bytes of a whole archive with entries of these sizes, or a little more.
  static uint64_t most_bytes(std::span<const uint64_t> sizes, size_t name_bytes);

 private:
  void put(const std::string& bytes);

  Sink& sink_;
  std::string folder_;
  uint64_t at_ = 0;
  std::vector<ZipEntry> entries_;
};

}  // namespace tessera::files
