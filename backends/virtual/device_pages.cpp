// Address space and pages: the pages of a device are parts of one file in memory, mapped where the
// allocator wants them.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device.h"
#include "state.h"

namespace tessera::vgpu {

namespace {

constexpr int64_t kSparse = 64;  // the file is that many times the device: holes cost nothing

void* reserve(size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

// Aligned to a page of the device, as addresses are on hardware.
char* reserve_aligned(size_t bytes) {
  auto* p = static_cast<char*>(reserve(bytes + kDevicePage));
  if (!p) return nullptr;
  const size_t ahead = (kDevicePage - reinterpret_cast<uintptr_t>(p) % kDevicePage) % kDevicePage;
  if (ahead) munmap(p, ahead);
  if (ahead != kDevicePage) munmap(p + ahead + bytes, kDevicePage - ahead);
  return p + ahead;
}

}  // namespace

Status Device::reserve_addresses(size_t bytes, void** out) {
  char* address = reserve_aligned(bytes);
  char* host = !address ? nullptr : config_.protect ? reserve_aligned(bytes) : address;
  if (!host) {
    if (address) munmap(address, bytes);
    return fail(Code::kOutOfMemory, "the host has no addresses left for the virtual GPU");
  }
  std::lock_guard lock(memory_mutex_);
  regions_[address] = {bytes, host};
  *out = address;
  return {};
}

Status Device::release_addresses(void* p, size_t bytes) {
  std::lock_guard lock(memory_mutex_);
  auto it = regions_.find(static_cast<char*>(p));
  if (it == regions_.end() || it->second.bytes != bytes)
    return fail(Code::kFailed, "the addresses to release were not reserved on this device");
  if (it->second.host != p) munmap(it->second.host, bytes);
  munmap(p, bytes);
  regions_.erase(it);
  return {};
}

Status Device::create_pages(size_t bytes, PageHandle* out) {
  const auto counted = static_cast<int64_t>(bytes);
  if (counted > total() || used_.fetch_add(counted) + counted > total()) {
    if (counted <= total()) used_.fetch_sub(counted);
    return fail(Code::kOutOfMemory, "the virtual GPU " + std::to_string(index_) + " has " +
                                        std::to_string(total() - used()) + " bytes free of " +
                                        std::to_string(total()));
  }
  std::lock_guard lock(memory_mutex_);
  if (file_ < 0) {
    file_ = memfd_create("tessera-virtual-gpu", MFD_CLOEXEC);
    if (file_ < 0 || ftruncate(file_, total() * kSparse) != 0) {
      used_.fetch_sub(counted);
      return fail(Code::kFailed, "the host gives the virtual GPU no memory to map");
    }
  }
  auto idle = idle_pages_.find(bytes);
  if (idle != idle_pages_.end()) {
    *out = idle->second;
    idle_pages_.erase(idle);
  } else {
    *out = next_page_;
    next_page_ += bytes;
  }
  show_memory();
  return {};
}

Status Device::destroy_pages(PageHandle pages, size_t bytes) {
  std::lock_guard lock(memory_mutex_);
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(pages),
            static_cast<off_t>(bytes));
  idle_pages_.emplace(bytes, pages);
  used_.fetch_sub(static_cast<int64_t>(bytes));
  show_memory();
  return {};
}

Status Device::map_pages(void* at, PageHandle pages, size_t bytes) {
  void* host = bytes_at(at);
  if (!host || mmap(host, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_,
                    static_cast<off_t>(pages)) == MAP_FAILED)
    return fail(Code::kFailed, "pages cannot be mapped there");
  return {};
}

Status Device::unmap_pages(void* at, size_t bytes) {
  void* host = bytes_at(at);
  if (!host || mmap(host, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
                    -1, 0) == MAP_FAILED)
    return fail(Code::kFailed, "pages cannot be unmapped there");
  return {};
}

}  // namespace tessera::vgpu
