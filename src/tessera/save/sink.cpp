#include "tessera/save/sink.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <random>
#include <string_view>
#include <utility>

#include "tessera/save/errors.h"

namespace tessera::files {

namespace {

constexpr size_t kBuffer = 1 << 16;
constexpr size_t kStep = 16 << 20;  // the disk gets its work in pieces of this size
constexpr std::string_view kSuffix = ".tessera-tmp";

std::string directory_of(const std::string& path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}
std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Returns the beginning of the names of temporary files for `name`.
std::string temporary_prefix(const std::string& name) {
  constexpr size_t kMaxName = 100;
  if (name.size() <= kMaxName) return cat(".", name, ".");
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (unsigned char c : name) hash = (hash ^ c) * 0x100000001b3;
  constexpr char digits[] = "0123456789abcdef";
  std::string out = ".";
  for (int shift = 60; shift >= 0; shift -= 4) out += digits[hash >> shift & 15];
  return out + ".";
}

// Links at the end are followed, so that the file they lead to is replaced and not they.
std::string follow_links(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) return path;
  char* real = realpath(path.c_str(), nullptr);
  if (!real) return path;  // leads nowhere: the link is replaced
  std::string out = real;
  std::free(real);
  return out;
}

// Removes what savers of this name left when they were killed.
void sweep(const std::string& directory, const std::string& prefix) {
  DIR* dir = opendir(directory.c_str());
  if (!dir) return;
  while (dirent* entry = readdir(dir)) {
    std::string_view name = entry->d_name;
    // Exactly what open_beside() makes: prefix, six letters, suffix.
    if (name.size() != prefix.size() + 6 + kSuffix.size() || !name.starts_with(prefix) ||
        !name.ends_with(kSuffix))
      continue;
    int fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) continue;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) unlinkat(dirfd(dir), entry->d_name, 0);
    close(fd);
  }
  closedir(dir);
}

// Six letters that nobody guesses and no other saver has.
std::string random_letters() {
  constexpr std::string_view letters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  std::random_device source;
  std::string out;
  for (int i = 0; i < 6; ++i) out += letters[source() % letters.size()];
  return out;
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path, uint64_t expected)
    : path_(path), target_(follow_links(path)) {
  struct stat info;
  bool there = stat(target_.c_str(), &info) == 0;
  if (there && S_ISDIR(info.st_mode)) {
    errno = EISDIR;
    raise_system(path_, "cannot save to");
  }
  if (there && !S_ISREG(info.st_mode)) {
    fd_ = open(target_.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0) raise_system(path_, "cannot save to");
    return;
  }
  open_beside();
  try {
    // Whoever could read the old file can read the new one.
    if (there && fchmod(fd_, info.st_mode & 07777) != 0)
      raise_system(path_, "cannot set the permissions of");
    if (expected) reserve(expected);
  } catch (...) {
    close(fd_);
    unlink(temporary_.c_str());
    throw;
  }
}

void AtomicFile::open_beside() {
  std::string directory = directory_of(target_), prefix = temporary_prefix(name_of(target_));
  if (name_of(target_).empty()) {
    errno = EISDIR;
    raise_system(path_, "cannot save to");
  }
  sweep(directory, prefix);
  for (int attempt = 0; attempt < 100; ++attempt) {
    temporary_ = cat(directory, "/", prefix, random_letters(), kSuffix);
    fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0 && errno == EEXIST) continue;
    if (fd_ < 0)
      raise_system(path_, "cannot save to",
                   cat(" (a new file has to be made in the directory '", directory, "')"));
    // Between the two calls another saver may have taken it for a dead one's. A file system without
    // locks has nobody who sweeps.
    struct stat info;
    bool ours = flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (ours && (fstat(fd_, &info) != 0 || info.st_nlink != 0)) return;
    close(fd_);
    unlink(temporary_.c_str());
  }
  errno = EAGAIN;
  raise_system(path_, "cannot save to");
}

void AtomicFile::reserve(uint64_t bytes) {
  if (fallocate(fd_, 0, 0, static_cast<off_t>(bytes)) == 0) return;
  if (errno != ENOSPC && errno != EDQUOT && errno != EFBIG) return;  // a disk that cannot: go on
  int code = errno;
  struct statvfs disk;
  uint64_t free = fstatvfs(fd_, &disk) == 0 ? uint64_t{disk.f_bavail} * disk.f_frsize : 0;
  errno = code;
  raise_system(path_, "cannot save to",
               cat(" (", bytes, " bytes are needed, ", free,
                   " are free; what was saved there before is unchanged)"));
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::put(const char* data, size_t n) {
  while (n) {
    ssize_t done = ::write(fd_, data, std::min(n, kStep));
    if (done < 0) {
      if (errno == EINTR) continue;
      raise_system(path_, "cannot write to",
                   cat(" (after ", written_, " bytes",
                       temporary_.empty() ? ")" : "; what was saved there before is unchanged)"));
    }
    data += done;
    n -= static_cast<size_t>(done);
    written_ += static_cast<uint64_t>(done);
    // The disk writes while we go on; all of it at the end takes longer, and the system slows down
    // whoever leaves too much for later.
    if (!temporary_.empty() && written_ - started_ >= kStep) {
      sync_file_range(fd_, static_cast<off_t>(started_), static_cast<off_t>(written_ - started_),
                      SYNC_FILE_RANGE_WRITE);
      started_ = written_;
    }
  }
}

void AtomicFile::flush() {
  put(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void AtomicFile::write(const void* data, size_t n) {
  const char* bytes = static_cast<const char*>(data);
  if (buffer_.size() + n > kBuffer) flush();
  if (n > kBuffer)
    put(bytes, n);
  else
    buffer_.append(bytes, n);
}

void AtomicFile::commit() {
  flush();
  if (!temporary_.empty()) {
    if (ftruncate(fd_, static_cast<off_t>(written_)) != 0) raise_system(path_, "cannot write to");
    if (fsync(fd_) != 0) raise_system(path_, "cannot make durable");
    if (rename(temporary_.c_str(), target_.c_str()) != 0) raise_system(path_, "cannot save to");
    temporary_.clear();
    int directory = open(directory_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory >= 0) {
      fsync(directory);  // some file systems do not know how: the rename stands all the same
      close(directory);
    }
  }
  int fd = std::exchange(fd_, -1);
  if (close(fd) != 0) raise_system(path_, "cannot write to");
}

}  // namespace tessera::files
