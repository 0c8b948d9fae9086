// One virtual device: its memory, its streams, its first failure.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "config.h"
#include "stream.h"

namespace tessera::vgpu {

inline constexpr size_t kDevicePage = size_t{2} << 20;

class Device {
 public:
  Device(int index, const Config& config) : index_(index), config_(config) {}

  int index() const { return index_; }
  const Config& config() const { return config_; }

  int64_t total() const { return config_.bytes; }
  int64_t used() const { return used_.load(std::memory_order_relaxed); }
  Status allocate(size_t bytes, void** out);
  Status deallocate(void* p);
  Status reserve_addresses(size_t bytes, void** out);
  Status release_addresses(void* p, size_t bytes);
  Status create_pages(size_t bytes, PageHandle* out);
  Status destroy_pages(PageHandle pages, size_t bytes);
  Status map_pages(void* at, PageHandle pages, size_t bytes);
  Status unmap_pages(void* at, size_t bytes);
  // Where the bytes of a device address are. The address itself, except under
  // TESSERA_VIRTUAL_PROTECT: there the host cannot touch device addresses, and the bytes are
  // elsewhere; null then for what is not in this device's memory.
  void* bytes_at(void* p);

  // A null handle is the default stream. Null with *status set for a stream of another device.
  Stream* stream(StreamHandle handle, Status* status);
  Stream* create_stream();
  void destroy_stream(Stream* stream);
  std::vector<std::shared_ptr<Stream>> streams();
  // Whether there has been a worker: read without a lock, also in a child of fork.
  bool active() const { return active_.load(std::memory_order_relaxed); }
  // Waits for everything queued; false when the process is stopping.
  bool drain();

  // From workers: the first failure is kept for the next synchronising call.
  void report(Status status);
  Status take_failure();
  bool faulted() const { return faulted_.load(std::memory_order_relaxed); }

  // Around a fork: a child without workers may go on to use the device.
  void lock_for_fork();
  void unlock_after_fork();

  // Tells who looks from outside how much of it is used.
  void show_memory();

 private:
  struct Region {
    size_t bytes;
    char* host;
  };

  const int index_;
  const Config& config_;
  std::atomic<int64_t> used_{0};
  std::mutex memory_mutex_;
  std::map<char*, Region> regions_;
  int file_ = -1;  // what pages are parts of
  PageHandle next_page_ = 0;
  std::multimap<size_t, PageHandle> idle_pages_;

  std::mutex streams_mutex_;
  std::vector<std::shared_ptr<Stream>> streams_;
  std::atomic<Stream*> default_stream_{nullptr};
  std::atomic<bool> active_{false};

  std::atomic<bool> failed_{false};
  std::atomic<bool> faulted_{false};
  std::mutex failure_mutex_;
  Code failure_code_ = Code::kOk;
  char failure_text_[512] = {};  // written by workers, which must not throw
};

}  // namespace tessera::vgpu
