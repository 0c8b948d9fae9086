#include "tessera/save/source.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tessera/save/errors.h"

namespace tessera::files {

std::shared_ptr<Source> Source::open(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) raise_system(path, "cannot open");
  try {
    auto made = descriptor(fd, path);
    close(fd);
    return made;
  } catch (...) {
    close(fd);
    throw;
  }
}

std::shared_ptr<Source> Source::descriptor(int fd, std::string name) {
  std::shared_ptr<Source> out(new Source);
  out->name_ = std::move(name);
  struct stat info;
  if (fstat(fd, &info) != 0) raise_system(out->name_, "cannot read");
  if (S_ISDIR(info.st_mode)) {
    errno = EISDIR;
    raise_system(out->name_, "cannot read");
  }
  if (S_ISREG(info.st_mode)) {
    out->fd_ = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (out->fd_ < 0) raise_system(out->name_, "cannot read");
    out->size_ = static_cast<uint64_t>(info.st_size);
    return out;
  }
  constexpr size_t kStep = 1 << 20;
  for (;;) {
    size_t had = out->held_.size();
    out->held_.resize(had + kStep);
    ssize_t n = ::read(fd, out->held_.data() + had, kStep);
    if (n < 0 && errno != EINTR) raise_system(out->name_, "cannot read");
    out->held_.resize(had + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (n == 0) break;
  }
  out->memory_ = out->held_.data();
  out->size_ = out->held_.size();
  return out;
}

std::shared_ptr<Source> Source::memory(std::span<const uint8_t> bytes, std::string name) {
  std::shared_ptr<Source> out(new Source);
  out->name_ = std::move(name);
  out->memory_ = bytes.data();
  out->size_ = bytes.size();
  return out;
}

Source::~Source() {
  if (mapped_) munmap(mapped_, size_);
  if (fd_ >= 0) close(fd_);
}

void Source::read(uint64_t offset, void* to, size_t n) const {
  TS_ASSERT(offset <= size_ && n <= size_ - offset, "outside the file");
  if (fd_ < 0) {
    if (n) std::memcpy(to, memory_ + offset, n);
    return;
  }
  for (char* at = static_cast<char*>(to); n;) {
    ssize_t done = pread(fd_, at, std::min<size_t>(n, 1 << 30), static_cast<off_t>(offset));
    if (done < 0) {
      if (errno == EINTR) continue;
      raise_system(name_, "cannot read");
    }
    if (done == 0)
      refuse(Refused::What::kFormat, name_, {}, offset, "the file was cut while it was read");
    at += done;
    n -= static_cast<size_t>(done);
    offset += static_cast<uint64_t>(done);
  }
}

std::vector<uint8_t> Source::read(uint64_t offset, size_t n) const {
  std::vector<uint8_t> out(n);
  read(offset, out.data(), n);
  return out;
}

uint8_t* Source::map() const {
  TS_CHECK(fd_ >= 0, name_, ": only a file can be mapped into memory; load it without mmap");
  std::call_once(mapping_, [&] {
    void* p = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd_, 0);
    if (p == MAP_FAILED) raise_system(name_, "cannot map into memory");
    mapped_ = static_cast<uint8_t*>(p);
  });
  return mapped_;
}

}  // namespace tessera::files
