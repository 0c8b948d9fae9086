// Host memory that is counted as a device's.
#include <sys/mman.h>

#include <algorithm>

#include "device.h"
#include "shown.h"
#include "state.h"

namespace tessera::vgpu {

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;

char* map(size_t bytes, int protection) {
  void* p = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : static_cast<char*>(p);
}

}  // namespace

Status Device::allocate(size_t bytes, void** out) {
  *out = nullptr;
  const int64_t free = total() - used();
  const bool fits = bytes <= static_cast<size_t>(total());
  const size_t size = fits ? (std::max<size_t>(bytes, 1) + kPage - 1) / kPage * kPage : bytes;
  const auto counted = static_cast<int64_t>(size);
  if (!fits || used_.fetch_add(counted) + counted > total()) {
    if (fits) used_.fetch_sub(counted);
    return fail(Code::kOutOfMemory, "the virtual GPU " + std::to_string(index_) + " has " +
                                        std::to_string(free) + " bytes free of " +
                                        std::to_string(total()) + "; " + std::to_string(bytes) +
                                        " were asked for");
  }
  char* host = map(size, PROT_READ | PROT_WRITE);
  char* address = !host ? nullptr : config_.protect ? map(size, PROT_NONE) : host;
  if (!address) {
    if (host) munmap(host, size);
    used_.fetch_sub(counted);
    return fail(Code::kOutOfMemory, "the host has no memory left for the virtual GPU");
  }
  if (size >= kHugePage) madvise(host, size, MADV_HUGEPAGE);
  show_memory();
  std::lock_guard lock(memory_mutex_);
  regions_[address] = {size, host};
  *out = address;
  return {};
}

Status Device::deallocate(void* p) {
  if (!p) return {};
  // As with a real device: memory goes back only after what was queued before.
  state().drain();
  Region region;
  {
    std::lock_guard lock(memory_mutex_);
    auto it = regions_.find(static_cast<char*>(p));
    if (it == regions_.end())
      return fail(Code::kFailed, "the address to free was not allocated on this device");
    region = it->second;
    regions_.erase(it);
  }
  if (region.host != p) munmap(p, region.bytes);
  munmap(region.host, region.bytes);
  used_.fetch_sub(static_cast<int64_t>(region.bytes));
  show_memory();
  return {};
}

void Device::show_memory() {
  Shown::Device& d = shown(index_);
  d.total.store(total(), std::memory_order_relaxed);
  d.used.store(used(), std::memory_order_relaxed);
  std::atomic<int32_t>& count = shown().count;
  if (count.load(std::memory_order_relaxed) <= index_) count.store(index_ + 1);
}

void* Device::bytes_at(void* p) {
  if (!config_.protect) return p;
  std::lock_guard lock(memory_mutex_);
  auto it = regions_.upper_bound(static_cast<char*>(p));
  if (it == regions_.begin()) return nullptr;
  --it;
  const auto offset = static_cast<size_t>(static_cast<char*>(p) - it->first);
  return offset < it->second.bytes ? it->second.host + offset : nullptr;
}

}  // namespace tessera::vgpu
