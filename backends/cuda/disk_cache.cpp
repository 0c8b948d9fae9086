#include "disk_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

namespace tessera::cuda {
namespace {

constexpr uint64_t kMagic = 0x31304e4253455354u;  // "TSESBN01"
constexpr const char* kSuffix = ".cubin";

struct Header {
  uint64_t magic;
  Hash128 name;
  uint64_t size;
  Hash128 checksum;
};

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

std::string folder_path() {
  if (const char* dir = std::getenv("TESSERA_CACHE_DIR"); dir && *dir) return dir;
  // A relative folder would be another one in each directory; XDG's rule is to ignore it.
  if (const char* dir = std::getenv("XDG_CACHE_HOME"); dir && *dir == '/')
    return std::string(dir) + "/tessera";
  if (const char* home = std::getenv("HOME"); home && *home == '/')
    return std::string(home) + "/.cache/tessera";
  return "";
}

void make_folders(const std::string& path) {
  for (size_t i = 1; i <= path.size(); ++i)
    if (i == path.size() || path[i] == '/') mkdir(path.substr(0, i).c_str(), 0700);
}

// The folder, opened and found to be ours alone; -1 otherwise. Opened once a process.
int folder() {
  static int fd = [] {
    std::string path = folder_path();
    if (path.empty()) return -1;
    make_folders(path);
    int dir = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0) return -1;
    struct stat st;
    bool ours = fstat(dir, &st) == 0 && st.st_uid == geteuid();
    // A folder the user made with an ordinary umask is closed to others here.
    if (ours && (st.st_mode & 077) != 0) ours = fchmod(dir, 0700) == 0;
    if (!ours) {
      close(dir);
      return -1;
    }
    return dir;
  }();
  return fd;
}

std::string file_name(const Hash128& name) {
  char text[48];
  std::snprintf(text, sizeof text, "%016llx%016llx%s", static_cast<unsigned long long>(name.hi),
                static_cast<unsigned long long>(name.lo), kSuffix);
  return text;
}

Hash128 checksum_of(const char* data, size_t n) {
  Hasher h(2);
  h.add_bytes(data, n);
  return h.finish();
}

bool read_all(int fd, void* to, size_t n) {
  for (char* p = static_cast<char*>(to); n > 0;) {
    ssize_t got = read(fd, p, n);
    if (got <= 0) return false;
    p += got;
    n -= static_cast<size_t>(got);
  }
  return true;
}

bool write_all(int fd, const void* from, size_t n) {
  for (const char* p = static_cast<const char*>(from); n > 0;) {
    ssize_t put = write(fd, p, n);
    if (put <= 0) return false;
    p += put;
    n -= static_cast<size_t>(put);
  }
  return true;
}

int64_t bound_in_bytes() {
  const char* text = std::getenv("TESSERA_CACHE_MB");
  int64_t mb = text && *text ? std::atoll(text) : 256;
  return std::max<int64_t>(mb, 0) << 20;
}

// Removes the files longest unused until three quarters of the bound are left.
void trim(int dir) {
  struct Entry {
    std::string name;
    int64_t size;
    struct timespec time;
  };
  int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* list = again >= 0 ? fdopendir(again) : nullptr;
  if (!list) {
    if (again >= 0) close(again);
    return;
  }
  std::vector<Entry> entries;
  int64_t total = 0;
  while (dirent* e = readdir(list)) {
    std::string name = e->d_name;
    struct stat st;
    // Ours alone, temporary files of processes that died included.
    if (name.find(kSuffix) == std::string::npos ||
        fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
      continue;
    entries.push_back({name, st.st_size, st.st_mtim});
    total += st.st_size;
  }
  closedir(list);
  int64_t bound = bound_in_bytes();
  if (total <= bound) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.time.tv_sec != b.time.tv_sec ? a.time.tv_sec < b.time.tv_sec
                                          : a.time.tv_nsec < b.time.tv_nsec;
  });
  for (const Entry& e : entries) {
    if (total <= bound / 4 * 3) break;
    if (unlinkat(dir, e.name.c_str(), 0) == 0) total -= e.size;
  }
}

}  // namespace

bool read_cached(const Hash128& name, std::vector<char>* image) {
  int dir = folder();
  if (dir < 0) return false;
  Descriptor file(openat(dir, file_name(name).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat st;
  if (!file || fstat(file.get(), &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
    return false;
  Header header;
  if (!read_all(file.get(), &header, sizeof header) || header.magic != kMagic ||
      header.name != name || static_cast<int64_t>(header.size + sizeof header) != st.st_size)
    return false;
  std::vector<char> data(header.size);
  if (!read_all(file.get(), data.data(), data.size()) ||
      checksum_of(data.data(), data.size()) != header.checksum)
    return false;
  *image = std::move(data);
  futimens(file.get(), nullptr);  // used now: it stays longest
  return true;
}

bool has_cached(const Hash128& name) {
  const int dir = folder();
  return dir >= 0 && faccessat(dir, file_name(name).c_str(), R_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void write_cached(const Hash128& name, const std::vector<char>& image) {
  int dir = folder();
  if (dir < 0) return;
  static std::atomic<int> counter{0};
  std::string final_name = file_name(name);
  std::string temporary =
      final_name + "." + std::to_string(getpid()) + "." + std::to_string(counter++);
  {
    Descriptor file(
        openat(dir, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return;
    Header header{kMagic, name, image.size(), checksum_of(image.data(), image.size())};
    if (!write_all(file.get(), &header, sizeof header) ||
        !write_all(file.get(), image.data(), image.size())) {
      unlinkat(dir, temporary.c_str(), 0);
      return;
    }
  }
  if (renameat(dir, temporary.c_str(), dir, final_name.c_str()) != 0) {
    unlinkat(dir, temporary.c_str(), 0);
    return;
  }
  // Looking through the folder at each write would cost more than the write.
  static std::atomic<int> writes{0};
  if (writes++ % 64 == 0) trim(dir);
}

}  // namespace tessera::cuda
