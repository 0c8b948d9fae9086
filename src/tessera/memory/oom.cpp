// What a user reads when memory is out.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/memory/device_allocator.h"
#include "tessera/tensor/storage.h"

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

std::string padded(std::string s, size_t width) {
  return s.size() < width ? std::string(width - s.size(), ' ') + s : s;
}

// The one thing to change first, from what the figures say.
std::string advice(int64_t asked, int64_t total, int64_t limit, int64_t used, int64_t others,
                   int64_t free, bool expandable) {
  if (asked > total)
    return cat("This one tensor is larger than the device: split the work into parts of ",
               size_text(total / 4), " or less.");
  if (limit < total && used + asked <= total - others)
    return "It would fit without the limit of set_per_process_memory_fraction.";
  if (others > total / 4 && used + asked <= total)
    return "It would fit if other processes used less of this GPU: nvidia-smi lists them.";
  if (free > asked && !expandable)
    return "Enough is free, but not in one piece: expandable_segments:True in "
           "PYTORCH_CUDA_ALLOC_CONF lets pages move together.";
  return "Use a smaller batch, delete what is listed above once it is not needed (del, or leaving "
         "its scope), run evaluation under torch.no_grad(), or use autocast to halve activations.";
}

}  // namespace

namespace {

// "[64, 1024, 1024] float32", as far as it is known.
std::string made_text(const Storage::Made& m) {
  if (m.ndim < 0) return "";
  std::string text = "[";
  for (int i = 0; i < m.ndim && i < 4; ++i) text += cat(i ? ", " : "", m.sizes[i]);
  return text + (m.ndim > 4 ? ", ...] " : "] ") + dtype_name(m.dtype);
}

}  // namespace

// The largest blocks in use; several alike from one line are one entry.
std::string DeviceAllocator::holders_text() const {
  struct Holder {
    int64_t bytes = 0, count = 0;
    const Block* one = nullptr;
  };
  std::unordered_map<std::string, Holder> holders;
  for_each_block([&](const Block* b) {
    if (!b->in_use || b->size <= kSmallLimit) return;
    const auto* storage = static_cast<const Storage*>(b->holder);
    std::string what = storage ? made_text(storage->made) : "work space";
    if (const std::string line = b->source.text(); !line.empty()) what += "  " + line;
    Holder& h = holders[what];
    h.bytes += static_cast<int64_t>(b->size);
    ++h.count;
  });
  std::vector<std::pair<std::string, Holder>> order(holders.begin(), holders.end());
  std::sort(order.begin(), order.end(),
            [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  std::string text;
  constexpr size_t kShown = 8;
  for (size_t i = 0; i < order.size() && i < kShown; ++i) {
    if (i == 0) text += "\nWhat holds most of it:";
    const auto& [what, h] = order[i];
    text += cat("\n  ", padded(size_text(h.bytes), 12),
                h.count > 1 ? cat("  ", h.count, " x ") : "  ", what);
  }
  if (order.size() > kShown) text += cat("\n  ... and ", order.size() - kShown, " more");
  return text;
}

void DeviceAllocator::raise_oom(std::unique_lock<Mutex>& lock, size_t bytes) {
  ooms_.fetch_add(1, std::memory_order_relaxed);
  int64_t largest = 0, free = 0, device_free = 0, total = 0;
  for (auto& [stream, pool] : pools_) {
    pool->for_each_free([&](const Block* b) {
      largest = std::max(largest, static_cast<int64_t>(b->size));
      free += static_cast<int64_t>(b->size);
    });
  }
  const std::string holders = holders_text();
  if (history_.on()) {
    if (!backend_->memory_info(device_, &device_free, &total).ok()) device_free = 0;
    history_.add(Action::kOom, reinterpret_cast<void*>(device_free), bytes, nullptr, 0);
  }
  lock.unlock();
  raise(ErrorKind::kOutOfMemory, oom_text(bytes, largest, free, holders));
}

std::string DeviceAllocator::oom_text(size_t bytes, int64_t largest, int64_t split,
                                      const std::string& holders) const {
  int64_t free = 0, total = total_;
  if (!backend_->memory_info(device_, &free, &total).ok()) free = 0;
  const int64_t limit = allowed(), reserved = reserved_.now();
  const int64_t charged = usage().charged, blocks = usage().real();
  const int64_t asked = static_cast<int64_t>(std::min<size_t>(bytes, INT64_MAX));
  const int64_t others = total - free - reserved;
  if (!std::strcmp(backend_->name, "pinned"))
    return cat("out of page-locked host memory: tried to allocate ", size_text(asked), ", ",
               size_text(used_.now()), " are in use and the host has ", size_text(free), " free");
  std::string text = cat("CUDA out of memory. Tried to allocate ", size_text(asked), ". GPU ",
                         device_, " has a total capacity of ", size_text(total), " of which ",
                         size_text(free), " is free. ");
  if (limit < total) text += cat(size_text(limit), " allowed; ");
  text += cat("Of the allocated memory ", size_text(blocks), " is allocated by Tessera, and ",
              size_text(std::max<int64_t>(0, reserved - blocks)),
              " is reserved by Tessera but unallocated.");
  text += row("asked", asked);
  text += row("largest free block", largest);
  text += row("free in pieces", split);
  if (charged > 0) text += row("promised to deferred results", charged);
  if (others > total / 50) text += row("other processes and the driver", others);
  text += holders;
  text += cat("\n", advice(asked, total, limit, blocks, others, split, page_bytes_ != 0));
  return text;
}

}  // namespace tessera::memory
