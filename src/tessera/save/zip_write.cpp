#include <algorithm>

#include "tessera/save/crc32.h"
#include "tessera/save/little_endian.h"
#include "tessera/save/zip.h"
#include "tessera/save/zip_format.h"

namespace tessera::files {

namespace {

constexpr uint64_t kAlignment = 64;

// Only what does not fit into 32 bits, in the order the format asks for.
std::string extra64(std::initializer_list<uint64_t> values) {
  std::string big, out;
  for (uint64_t v : values)
    if (v >= zip::kMax32) files::put<uint64_t>(big, v);
  if (big.empty()) return out;
  files::put<uint16_t>(out, zip::kExtra64);
  files::put<uint16_t>(out, static_cast<uint16_t>(big.size()));
  return out + big;
}
uint32_t in32(uint64_t v) { return v >= zip::kMax32 ? zip::kMax32 : static_cast<uint32_t>(v); }

}  // namespace

void ZipWriter::put(const std::string& bytes) {
  sink_.write(bytes.data(), bytes.size());
  at_ += bytes.size();
}

void ZipWriter::add(std::string_view name, const void* data, uint64_t size) {
  ZipEntry entry{folder_ + "/" + std::string(name), at_, 0, size, crc32(data, size)};
  // Both sizes, or none: a local header may not have only one of them in the extra field.
  std::string extra = size >= zip::kMax32 ? extra64({size, size}) : std::string();
  uint64_t before = at_ + zip::kLocalSize + entry.name.size() + extra.size() + 4;
  uint64_t padding = (kAlignment - before % kAlignment) % kAlignment;
  files::put<uint16_t>(extra, zip::kExtraPadding);
  files::put<uint16_t>(extra, static_cast<uint16_t>(padding));
  extra.append(padding, 'Z');

  std::string header;
  files::put<uint32_t>(header, zip::kLocal);
  files::put<uint16_t>(header, size >= zip::kMax32 ? 45 : 20);  // version that can read it
  files::put<uint16_t>(header, zip::kFlagUtf8);
  files::put<uint16_t>(header, 0);  // stored
  files::put<uint32_t>(header, zip::kDate);
  files::put<uint32_t>(header, entry.crc);
  files::put<uint32_t>(header, in32(size));
  files::put<uint32_t>(header, in32(size));
  files::put<uint16_t>(header, static_cast<uint16_t>(entry.name.size()));
  files::put<uint16_t>(header, static_cast<uint16_t>(extra.size()));
  put(header + entry.name + extra);
  entry.offset = at_;
  sink_.write(data, size);
  at_ += size;
  entries_.push_back(std::move(entry));
}

void ZipWriter::finish() {
  uint64_t begin = at_;
  for (const ZipEntry& e : entries_) {
    std::string extra =
        e.size >= zip::kMax32 ? extra64({e.size, e.size, e.header}) : extra64({e.header});
    std::string header;
    files::put<uint32_t>(header, zip::kCentral);
    files::put<uint16_t>(header, 45);
    files::put<uint16_t>(header, extra.empty() ? 20 : 45);
    files::put<uint16_t>(header, zip::kFlagUtf8);
    files::put<uint16_t>(header, 0);
    files::put<uint32_t>(header, zip::kDate);
    files::put<uint32_t>(header, e.crc);
    files::put<uint32_t>(header, in32(e.size));
    files::put<uint32_t>(header, in32(e.size));
    files::put<uint16_t>(header, static_cast<uint16_t>(e.name.size()));
    files::put<uint16_t>(header, static_cast<uint16_t>(extra.size()));
    header.append(10, '\0');  // no comment, disk 0, no attributes
    files::put<uint32_t>(header, in32(e.header));
    put(header + e.name + extra);
  }
  uint64_t size = at_ - begin, count = entries_.size(), end = at_;
  bool big = begin >= zip::kMax32 || size >= zip::kMax32 || count >= zip::kMax16;
  std::string tail;
  if (big) {
    files::put<uint32_t>(tail, zip::kEnd64);
    files::put<uint64_t>(tail, zip::kEnd64Size - 12);
    files::put<uint16_t>(tail, 45);
    files::put<uint16_t>(tail, 45);
    files::put<uint64_t>(tail, 0);  // disks
    for (uint64_t v : {count, count, size, begin}) files::put<uint64_t>(tail, v);
    files::put<uint32_t>(tail, zip::kLocator64);
    files::put<uint32_t>(tail, 0);
    files::put<uint64_t>(tail, end);
    files::put<uint32_t>(tail, 1);
  }
  auto count16 = static_cast<uint16_t>(std::min<uint64_t>(count, zip::kMax16));
  files::put<uint32_t>(tail, zip::kEnd);
  files::put<uint32_t>(tail, 0);  // disks
  files::put<uint16_t>(tail, count16);
  files::put<uint16_t>(tail, count16);
  files::put<uint32_t>(tail, in32(size));
  files::put<uint32_t>(tail, in32(begin));
  files::put<uint16_t>(tail, 0);  // comment
  put(tail);
}

uint64_t ZipWriter::most_bytes(std::span<const uint64_t> sizes, size_t name_bytes) {
  uint64_t total = 2 * name_bytes + 128;
  for (uint64_t size : sizes)
    total += size + zip::kLocalSize + zip::kCentralSize + 64 + 4 + 20 + 28;
  return total;
}

}  // namespace tessera::files
