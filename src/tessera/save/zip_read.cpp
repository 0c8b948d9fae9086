#include <algorithm>

#include "tessera/save/crc32.h"
#include "tessera/save/errors.h"
#include "tessera/save/little_endian.h"
#include "tessera/save/zip.h"
#include "tessera/save/zip_format.h"

namespace tessera::files {

namespace {

constexpr uint64_t kMostEntries = 1 << 20;
constexpr uint64_t kMostDirectory = 256 << 20;
constexpr size_t kStep = 256 << 10;  // read and summed while it is in the cache

// Takes the value of a field of 32 bits from the extra field where it says so.
struct Extra64 {
  const uint8_t* at = nullptr;
  size_t left = 0;
  bool take(uint64_t& v) {
    if (v != zip::kMax32) return true;
    if (left < 8) return false;
    v = get<uint64_t>(at);
    at += 8;
    left -= 8;
    return true;
  }
};

// The part of an extra field with the sizes of 64 bits. False where the field is not well formed.
bool find_extra64(const uint8_t* at, size_t n, Extra64& out) {
  bool found = false;
  while (n >= 4) {
    uint16_t id = get<uint16_t>(at), size = get<uint16_t>(at + 2);
    if (size > n - 4) return false;
    if (id == zip::kExtra64) {
      if (found) return false;
      found = true;
      out = {at + 4, size};
    }
    at += 4 + size;
    n -= 4 + size;
  }
  return n == 0;
}

}  // namespace

bool ZipReader::looks_like_zip(const Source& source) {
  if (source.size() < 4) return false;
  uint8_t first[4];
  source.read(0, first, 4);
  return get<uint32_t>(first) == zip::kLocal;
}

void ZipReader::refuse_at(uint64_t byte, std::string_view why) const {
  refuse(Refused::What::kFormat, source_->name(), "zip archive", byte, why);
}

ZipReader::ZipReader(std::shared_ptr<Source> source) : source_(std::move(source)) {
  read_directory(find_directory());
}

ZipReader::Directory ZipReader::find_directory() const {
  uint64_t size = source_->size();
  if (size < zip::kEndSize) refuse_at(size, "shorter than any archive; the file was cut");
  uint64_t at = size - zip::kEndSize;
  std::vector<uint8_t> end = source_->read(at, zip::kEndSize);
  if (get<uint32_t>(&end[0]) != zip::kEnd)
    refuse_at(at,
              "failed finding central directory: the file was cut, or something follows the "
              "archive. Copy it again from where it came");
  if (get<uint16_t>(&end[20]) != 0) refuse_at(at + 20, "it has a comment; PyTorch's have none");
  if (get<uint32_t>(&end[4]) != 0) refuse_at(at + 4, "an archive of several disks");
  Directory out{get<uint32_t>(&end[16]), get<uint32_t>(&end[12]), get<uint16_t>(&end[10])};
  if (get<uint16_t>(&end[8]) != out.count) refuse_at(at + 8, "an archive of several disks");

  uint64_t until = at;
  std::vector<uint8_t> locator;
  if (at >= zip::kLocator64Size)
    locator = source_->read(at - zip::kLocator64Size, zip::kLocator64Size);
  if (!locator.empty() && get<uint32_t>(&locator[0]) == zip::kLocator64) {
    uint64_t where = get<uint64_t>(&locator[8]), locator_at = at - zip::kLocator64Size;
    if (where > locator_at || locator_at - where != zip::kEnd64Size)
      refuse_at(locator_at + 8, "the 64-bit end of the directory is not where it has to be");
    std::vector<uint8_t> end64 = source_->read(where, zip::kEnd64Size);
    if (get<uint32_t>(&end64[0]) != zip::kEnd64 || get<uint64_t>(&end64[4]) != zip::kEnd64Size - 12)
      refuse_at(where, "not a 64-bit end of the directory");
    Directory wide{get<uint64_t>(&end64[48]), get<uint64_t>(&end64[40]), get<uint64_t>(&end64[32])};
    bool agree = (out.offset == zip::kMax32 || out.offset == wide.offset) &&
                 (out.size == zip::kMax32 || out.size == wide.size) &&
                 (out.count == zip::kMax16 || out.count == wide.count) &&
                 get<uint64_t>(&end64[24]) == wide.count && get<uint64_t>(&end64[16]) == 0;
    if (!agree) refuse_at(where, "the two ends of the directory do not agree");
    out = wide;
    until = where;
  }
  if (out.offset > until || out.size != until - out.offset)
    refuse_at(at + 12, "the central directory is not where the archive says it is");
  if (out.count > kMostEntries || out.size > kMostDirectory ||
      out.count > out.size / zip::kCentralSize)
    refuse_at(at + 8, cat("a directory of ", out.count, " entries in ", out.size, " bytes"));
  return out;
}

void ZipReader::read_directory(const Directory& directory) {
  std::vector<uint8_t> bytes = source_->read(directory.offset, directory.size);
  entries_.reserve(directory.count);
  size_t at = 0;
  for (uint64_t i = 0; i < directory.count; ++i) {
    const uint8_t* h = bytes.data() + at;
    uint64_t here = directory.offset + at, left = bytes.size() - at;
    if (left < zip::kCentralSize || get<uint32_t>(h) != zip::kCentral)
      refuse_at(here, cat("not the directory's entry ", i));
    uint16_t flags = get<uint16_t>(h + 8), method = get<uint16_t>(h + 10);
    uint16_t name_size = get<uint16_t>(h + 28), extra_size = get<uint16_t>(h + 30),
             comment_size = get<uint16_t>(h + 32);
    uint64_t whole = zip::kCentralSize + name_size + extra_size + comment_size;
    if (left < whole) refuse_at(here, "an entry that leaves the directory");
    ZipEntry e;
    e.name.assign(reinterpret_cast<const char*>(h + zip::kCentralSize), name_size);
    e.crc = get<uint32_t>(h + 16);
    e.size = get<uint32_t>(h + 24);
    e.header = get<uint32_t>(h + 42);
    uint64_t packed = get<uint32_t>(h + 20);
    Extra64 extra;
    if (!find_extra64(h + zip::kCentralSize + name_size, extra_size, extra) ||
        !extra.take(e.size) || !extra.take(packed) || !extra.take(e.header))
      refuse_at(here, "its extra field is broken");
    check_name(e.name, here);
    if (flags & zip::kFlagEncrypted) refuse_at(here, cat("'", e.name, "' is encrypted"));
    if (method != 0)
      refuse_at(here, cat("'", e.name, "' is compressed; such files are stored as they are: ",
                          "unpack it and pack it with zip -0"));
    if (packed != e.size) refuse_at(here, cat("'", e.name, "' has two sizes"));
    if (get<uint16_t>(h + 34) != 0) refuse_at(here, "an archive of several disks");
    at += whole;
    if (e.name.ends_with('/')) {
      if (e.size) refuse_at(here, cat("the folder '", e.name, "' has content"));
    }
    check_local(e, flags);
    if (!by_name_.emplace(e.name, entries_.size()).second)
      refuse_at(here, cat("two entries are named '", e.name, "'"));
    entries_.push_back(std::move(e));
  }
  if (at != bytes.size()) refuse_at(directory.offset + at, "more than entries in the directory");
  check_layout(directory.offset);
}

void ZipReader::check_name(const std::string& name, uint64_t at) {
  auto bad = [&](std::string_view why) {
    std::string shown;
    for (char c : name.substr(0, 200)) shown += c >= ' ' && c < 127 ? c : '?';
    refuse_at(at, cat("the entry's name '", shown, "' ", why));
  };
  if (name.empty() || name.size() > 4096) bad("is empty, or too long");
  for (unsigned char c : name)
    if (c < ' ' || c == '\\' || c == 127) bad("has a character that names do not have");
  std::string_view rest = name;
  if (rest.ends_with('/')) rest.remove_suffix(1);
  size_t slash = rest.find('/');
  std::string first(rest.substr(0, slash));
  while (true) {
    slash = rest.find('/');
    std::string_view part = rest.substr(0, slash);
    if (part.empty() || part == "." || part == "..") bad("leads out of the archive");
    if (slash == std::string_view::npos) break;
    rest.remove_prefix(slash + 1);
  }
  if (entries_.empty())
    folder_ = first;
  else if (first != folder_)
    bad(cat("is not in the folder '", folder_, "' like the rest"));
}

void ZipReader::check_local(ZipEntry& e, uint16_t flags) const {
  uint64_t size = source_->size();
  if (e.header > size || size - e.header < zip::kLocalSize)
    refuse_at(std::min(e.header, size), cat("'", e.name, "' begins beyond the end of the file"));
  std::vector<uint8_t> h = source_->read(e.header, zip::kLocalSize);
  uint16_t name_size = get<uint16_t>(&h[26]), extra_size = get<uint16_t>(&h[28]);
  uint64_t rest = uint64_t{name_size} + extra_size;
  if (get<uint32_t>(&h[0]) != zip::kLocal || size - e.header - zip::kLocalSize < rest)
    refuse_at(e.header, cat("'", e.name, "' has no header here"));
  std::vector<uint8_t> tail = source_->read(e.header + zip::kLocalSize, rest);
  if (std::string_view(reinterpret_cast<const char*>(tail.data()), name_size) != e.name)
    refuse_at(e.header, cat("'", e.name, "' has another name in its own header"));
  uint16_t own_flags = get<uint16_t>(&h[6]);
  if (get<uint16_t>(&h[8]) != 0 ||
      ((own_flags ^ flags) & (zip::kFlagEncrypted | zip::kFlagDescriptor)))
    refuse_at(e.header, cat("'", e.name, "' is stored in another way in its own header"));
  uint64_t unpacked = get<uint32_t>(&h[22]), packed = get<uint32_t>(&h[18]);
  Extra64 extra;
  if (!find_extra64(tail.data() + name_size, extra_size, extra) || !extra.take(unpacked) ||
      !extra.take(packed))
    refuse_at(e.header, cat("'", e.name, "' has a broken extra field"));
  uint32_t crc = get<uint32_t>(&h[14]);
  // A writer that did not know them yet wrote zeros, and the numbers behind the bytes.
  bool later = flags & zip::kFlagDescriptor;
  bool agree = (unpacked == e.size && packed == e.size && crc == e.crc) ||
               (later && (unpacked == 0 || unpacked == e.size) &&
                (packed == 0 || packed == e.size) && (crc == 0 || crc == e.crc));
  if (!agree) refuse_at(e.header, cat("'", e.name, "' has another size or checksum in its header"));
  e.offset = e.header + zip::kLocalSize + rest;
  if (e.size > size - e.offset)
    refuse_at(e.header,
              cat("'", e.name, "' of ", e.size, " bytes goes beyond the end of the file"));
}

void ZipReader::check_layout(uint64_t end) const {
  std::vector<const ZipEntry*> order;
  for (const ZipEntry& e : entries_) order.push_back(&e);
  std::sort(order.begin(), order.end(),
            [](const ZipEntry* a, const ZipEntry* b) { return a->header < b->header; });
  uint64_t at = 0;
  for (const ZipEntry* e : order) {
    if (e->header < at) refuse_at(e->header, cat("'", e->name, "' overlaps the entry before it"));
    if (e->header - at > (at ? zip::kMostDescriptor : 0))
      refuse_at(at, cat("bytes that belong to no entry, before '", e->name, "'"));
    at = e->offset + e->size;
  }
  if (at > end) refuse_at(at, "an entry overlaps the directory");
  if (end - at > zip::kMostDescriptor) refuse_at(at, "bytes that belong to no entry");
}

const ZipEntry* ZipReader::find(std::string_view name) const {
  auto found = by_name_.find(folder_ + "/" + std::string(name));
  return found == by_name_.end() ? nullptr : &entries_[found->second];
}

void ZipReader::read(const ZipEntry& e, void* to) const {
  auto* at = static_cast<uint8_t*>(to);
  uint32_t crc = 0;
  for (uint64_t done = 0; done < e.size; done += kStep) {
    size_t n = static_cast<size_t>(std::min<uint64_t>(kStep, e.size - done));
    source_->read(e.offset + done, at + done, n);
    crc = crc32(at + done, n, crc);
  }
  check_sum(e, crc);
}

void ZipReader::check_sum(const ZipEntry& e, uint32_t crc) const {
  if (e.crc && crc != e.crc)
    refuse_at(e.offset, cat("the checksum of '", e.name, "' does not fit its ", e.size,
                            " bytes: the file is damaged. Copy it again from where it came"));
}

bool ZipReader::verify(const ZipEntry& e) const {
  std::vector<uint8_t> buffer(kStep);
  uint32_t crc = 0;
  for (uint64_t done = 0; done < e.size; done += kStep) {
    size_t n = static_cast<size_t>(std::min<uint64_t>(kStep, e.size - done));
    source_->read(e.offset + done, buffer.data(), n);
    crc = crc32(buffer.data(), n, crc);
  }
  check_sum(e, crc);
  return e.crc == crc;
}

std::vector<uint8_t> ZipReader::read(const ZipEntry& e) const {
  std::vector<uint8_t> out(static_cast<size_t>(e.size));
  read(e, out.data());
  return out;
}

}  // namespace tessera::files
