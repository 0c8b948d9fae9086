#include "pack.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tessera/base/library_path.h"

namespace tessera::cuda {
namespace {

constexpr char kMagic[] = "tessera kernel pack 1: ";
constexpr size_t kMagicBytes = sizeof kMagic - 1;
constexpr uint64_t kMostEntries = 1u << 20;

Hash128 checksum_of(const void* data, size_t n) {
  Hasher h(4);
  h.add_bytes(data, n);
  return h.finish();
}
Hash128 checksum_of(const PackHeader& header, const std::vector<PackEntry>& table) {
  Hasher h(5);
  h.add_bytes(&header, offsetof(PackHeader, checksum));
  h.add_bytes(table.data(), table.size() * sizeof(PackEntry));
  return h.finish();
}

bool read_at(int fd, void* to, size_t n, uint64_t offset) {
  for (char* p = static_cast<char*>(to); n > 0;) {
    ssize_t got = pread(fd, p, n, static_cast<off_t>(offset));
    if (got <= 0) return false;
    p += got;
    n -= static_cast<size_t>(got);
    offset += static_cast<uint64_t>(got);
  }
  return true;
}

// The path that the environment names, or that of the file in this library's own folder.
std::string choose_path() {
  if (const char* named = std::getenv("TESSERA_KERNEL_PACK"); named && *named)
    return std::strcmp(named, "0") == 0 ? "" : named;
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&choose_path), &info) == 0 || !info.dli_fname ||
      !is_absolute_path(info.dli_fname))
    return "";
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/') + 1) + "tessera_cuda.pack";
}

}  // namespace

std::unique_ptr<PackFile> PackFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  std::unique_ptr<PackFile> pack(new PackFile(fd));
  pack->path_ = path;
  return pack->read() ? std::move(pack) : nullptr;
}

PackFile::~PackFile() { close(fd_); }

bool PackFile::read() {
  struct stat st;
  PackHeader& h = header_;
  if (fstat(fd_, &st) != 0 || !S_ISREG(st.st_mode) || !read_at(fd_, &h, sizeof h, 0) ||
      std::memcmp(h.line, kMagic, kMagicBytes) != 0 || h.line[sizeof h.line - 1] != 0 ||
      h.size != static_cast<uint64_t>(st.st_size) || h.count > kMostEntries ||
      h.size < sizeof h + h.count * sizeof(PackEntry))
    return false;
  table_.resize(h.count);
  if (!read_at(fd_, table_.data(), table_.size() * sizeof(PackEntry), sizeof h)) return false;
  if (checksum_of(h, table_) != h.checksum) return false;
  for (size_t i = 0; i < table_.size(); ++i) {
    const PackEntry& e = table_[i];
    if (e.offset > h.size || e.size > h.size - e.offset) return false;
    if (i > 0 && !(table_[i - 1].name < e.name)) return false;
  }
  return true;
}

bool PackFile::find(const Hash128& name, std::vector<char>* image) const {
  auto it = std::lower_bound(table_.begin(), table_.end(), name,
                             [](const PackEntry& e, const Hash128& n) { return e.name < n; });
  if (it == table_.end() || it->name != name) return false;
  if (!image) return true;
  std::vector<char> data(it->size);
  if (!read_at(fd_, data.data(), data.size(), it->offset) ||
      checksum_of(data.data(), data.size()) != it->checksum)
    return false;
  *image = std::move(data);
  return true;
}

std::vector<int> PackFile::archs_for(int arch) const {
  std::vector<int> out;
  for (int a : header_.archs) {
    if (a <= 0) break;
    if (a / 10 == arch / 10 && a <= arch) out.push_back(a);
  }
  std::sort(out.rbegin(), out.rend());
  return out;
}

std::string PackFile::about() const { return header_.line + kMagicBytes; }

bool write_pack(const std::string& path, std::vector<PackItem> items, int toolkit,
                const std::vector<int>& archs) {
  std::sort(items.begin(), items.end(),
            [](const PackItem& a, const PackItem& b) { return a.name < b.name; });
  auto same = [](const PackItem& a, const PackItem& b) { return a.name == b.name; };
  items.erase(std::unique(items.begin(), items.end(), same), items.end());
  PackHeader h{};
  std::string listed;
  for (size_t i = 0; i < archs.size() && i < kPackArchs; ++i) {
    h.archs[i] = archs[i];
    listed += " sm_" + std::to_string(archs[i]);
  }
  std::snprintf(h.line, sizeof h.line, "%s%zu kernels for%s, CUDA %d.%d", kMagic, items.size(),
                listed.c_str(), toolkit / 1000, toolkit % 1000 / 10);
  h.count = items.size();
  h.toolkit = toolkit;
  h.size = sizeof h + items.size() * sizeof(PackEntry);
  std::vector<PackEntry> table;
  for (const PackItem& item : items) {
    table.push_back(
        {item.name, h.size, item.image.size(), checksum_of(item.image.data(), item.image.size())});
    h.size += item.image.size();
  }
  h.checksum = checksum_of(h, table);
  const std::string temporary = path + "." + std::to_string(getpid());
  std::FILE* f = std::fopen(temporary.c_str(), "wb");
  if (!f) return false;
  auto put = [&](const void* data, size_t n) { return std::fwrite(data, 1, n, f) == n; };
  bool ok = put(&h, sizeof h) && put(table.data(), table.size() * sizeof(PackEntry));
  for (const PackItem& item : items) ok = ok && put(item.image.data(), item.image.size());
  ok = std::fclose(f) == 0 && ok;
  if (ok && std::rename(temporary.c_str(), path.c_str()) == 0) return true;
  unlink(temporary.c_str());
  return false;
}

std::string pack_path() {
  static const std::string* path = new std::string(choose_path());
  return *path;
}

const PackFile* installed_pack() {
  // Leaked: other threads may look while the process ends.
  static const PackFile* pack = [] {
    const std::string path = pack_path();
    return path.empty() ? nullptr : PackFile::open(path).release();
  }();
  return pack;
}

}  // namespace tessera::cuda
