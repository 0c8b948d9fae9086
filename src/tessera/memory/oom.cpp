// What a user reads when memory is out.
#include <algorithm>
#include <cstdio>

#include "tessera/base/error.h"
#include "tessera/memory/device_allocator.h"

namespace tessera::memory {

namespace {

std::string size_text(int64_t bytes) {
  char text[48];
  const auto b = static_cast<double>(bytes);
  if (bytes <= 1024) {
    std::snprintf(text, sizeof text, "%lld bytes", static_cast<long long>(bytes));
  } else if (bytes <= 1048576) {
    std::snprintf(text, sizeof text, "%.2f KiB", b / 1024);
  } else if (bytes <= 1073741824) {
    std::snprintf(text, sizeof text, "%.2f MiB", b / 1048576);
  } else {
    std::snprintf(text, sizeof text, "%.2f GiB", b / 1073741824);
  }
  return text;
}

std::string row(const char* name, int64_t bytes) {
  char text[96];
  std::snprintf(text, sizeof text, "\n  %-32s %14s", name, size_text(bytes).c_str());
  return text;
}

}  // namespace

void DeviceAllocator::raise_oom(std::unique_lock<std::mutex>& lock, size_t bytes) {
  ooms_.fetch_add(1, std::memory_order_relaxed);
  int64_t largest = 0, split = 0;
  for (auto& [stream, pool] : pools_) {
    pool->for_each_free([&](const Block* b) {
      largest = std::max(largest, static_cast<int64_t>(b->size));
      if (!b->whole_segment()) split += static_cast<int64_t>(b->size);
    });
  }
  lock.unlock();
  raise(ErrorKind::kOutOfMemory, oom_text(bytes, largest, split));
}

std::string DeviceAllocator::oom_text(size_t bytes, int64_t largest, int64_t split) const {
  int64_t free = 0, total = total_;
  if (!backend_->memory_info(device_, &free, &total).ok()) free = 0;
  const int64_t limit = limit_.load(std::memory_order_relaxed);
  const int64_t charged = charged_.load(std::memory_order_relaxed);
  const int64_t blocks = used_.now() - charged;
  const int64_t asked = static_cast<int64_t>(std::min<size_t>(bytes, INT64_MAX));
  std::string text = cat("CUDA out of memory. Tried to allocate ", size_text(asked), ". GPU ",
                         device_, " has a total capacity of ", size_text(total), " of which ",
                         size_text(free), " is free. ");
  if (limit < total) text += cat(size_text(limit), " allowed; ");
  text += cat("Of the allocated memory ", size_text(blocks), " is allocated by Tessera, and ",
              size_text(std::max<int64_t>(0, reserved_.now() - blocks)),
              " is reserved by Tessera but unallocated.");
  text += row("asked", asked);
  text += row("largest free block", largest);
  text += row("free but split", split);
  if (charged > 0) text += row("promised to deferred results", charged);
  return text;
}

}  // namespace tessera::memory
