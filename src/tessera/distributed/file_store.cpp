// The file holds a log of pairs, the newest value of a key last; a lock on it orders the writers.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "tessera/base/blocking.h"
#include "tessera/distributed/error.h"
#include "tessera/distributed/store.h"

namespace tessera::distributed {

namespace {

constexpr const char* kUsers = "tessera/users";
constexpr char kGone = 'x', kThere = 'v';

class Log {
 public:
  explicit Log(const std::string& path)
      : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (fd_ < 0) fail(DistErrorKind::kStore, "cannot open ", path, ": ", std::strerror(errno));
    while (::flock(fd_, LOCK_EX) != 0)
      if (errno != EINTR) {
        ::close(fd_);
        fail(DistErrorKind::kStore, "cannot lock ", path, ": ", std::strerror(errno));
      }
    struct stat s {};
    ::fstat(fd_, &s);
    std::string all(static_cast<size_t>(s.st_size), '\0');
    size_t at = 0;
    while (at < all.size()) {
      ssize_t n = ::pread(fd_, all.data() + at, all.size() - at, static_cast<off_t>(at));
      if (n <= 0) break;
      at += static_cast<size_t>(n);
    }
    // A writer that was killed may have left half an entry: cut off.
    size_t whole = 0;
    while (all.size() - whole >= 8) {
      uint64_t n = 0;
      std::memcpy(&n, all.data() + whole, 8);
      if (n > all.size() - whole - 8) break;
      Reader in(std::string_view(all).substr(whole + 8, n));
      std::string key = in.text(), value = in.text();
      if (value[0] == kGone)
        values.erase(key);
      else
        values[key] = value.substr(1);
      whole += 8 + n;
    }
    end_ = static_cast<off_t>(whole);
    if (whole != all.size() && ::ftruncate(fd_, end_) != 0)
      fail(DistErrorKind::kStore, "cannot write ", path);
  }
  ~Log() { ::close(fd_); }

  void write(const std::string& key, char kind, const std::string& value) {
    std::string body;
    put(body, key);
    put(body, std::string(1, kind) + value);
    std::string entry;
    put(entry, static_cast<int64_t>(body.size()));
    entry += body;
    if (::pwrite(fd_, entry.data(), entry.size(), end_) != static_cast<ssize_t>(entry.size()))
      fail(DistErrorKind::kStore, "cannot write the store's file: ", std::strerror(errno));
    end_ += static_cast<off_t>(entry.size());
    if (kind == kThere) values[key] = value;
  }

  std::map<std::string, std::string> values;

 private:
  int fd_;
  off_t end_ = 0;
};

}  // namespace

template <class F>
auto FileStore::locked(F&& work) {
  BlockingScope others_go_on;
  std::lock_guard lock(mutex_);
  Log log(path_);
  return work(log);
}

FileStore::FileStore(std::string path, int world_size)
    : path_(std::move(path)), world_size_(world_size) {
  add(kUsers, 1);
}

FileStore::~FileStore() {
  try {
    if (world_size_ > 0 && add("tessera/left", 1) >= world_size_) ::unlink(path_.c_str());
  } catch (const std::exception&) {
    // The file is gone: nothing to remove.
  }
}

void FileStore::set(const std::string& key, const std::string& value) {
  locked([&](Log& log) { log.write(key, kThere, value); });
}

void FileStore::append(const std::string& key, const std::string& value) {
  locked([&](Log& log) { log.write(key, kThere, log.values[key] + value); });
}

std::string FileStore::get(const std::string& key, Milliseconds timeout) {
  wait({key}, timeout);
  return locked([&](Log& log) { return log.values[key]; });
}

void FileStore::wait(const std::vector<std::string>& keys, Milliseconds timeout) {
  Deadline deadline = Clock::now() + timeout;
  auto pause = Milliseconds(1);
  while (!check(keys)) {
    if (Clock::now() >= deadline)
      fail(DistErrorKind::kStore, "wait timeout after ", timeout.count(), "ms, keys: ", keys[0],
           " in ", path_);
    BlockingScope others_go_on;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, Milliseconds(50));
  }
}

int64_t FileStore::add(const std::string& key, int64_t amount) {
  return locked([&](Log& log) {
    int64_t sum = std::strtoll(log.values[key].c_str(), nullptr, 10) + amount;
    log.write(key, kThere, std::to_string(sum));
    return sum;
  });
}

bool FileStore::check(const std::vector<std::string>& keys) {
  return locked([&](Log& log) {
    return std::all_of(keys.begin(), keys.end(),
                       [&](const std::string& key) { return log.values.count(key) > 0; });
  });
}

bool FileStore::delete_key(const std::string& key) {
  return locked([&](Log& log) {
    if (!log.values.count(key)) return false;
    log.write(key, kGone, "");
    return true;
  });
}

std::string FileStore::compare_set(const std::string& key, const std::string& expected,
                                   const std::string& desired) {
  return locked([&](Log& log) {
    auto at = log.values.find(key);
    if (at == log.values.end() ? !expected.empty() : at->second != expected)
      return at == log.values.end() ? expected : at->second;
    log.write(key, kThere, desired);
    return desired;
  });
}

int64_t FileStore::num_keys() {
  return locked([&](Log& log) { return static_cast<int64_t>(log.values.size()); });
}

}  // namespace tessera::distributed
