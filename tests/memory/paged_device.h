// A device of fake addresses with pages, and a shadow model of what an allocator may do with them.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/memory/device_allocator.h"

namespace tessera::memory {

// Counts what is wrong instead of stopping, so that threads and long runs can use it.
struct PagedDevice {
  static constexpr size_t kPage = size_t{2} << 20;
  struct Mapping {
    PageHandle handle;
    size_t bytes;
    bool enabled;
  };

  int64_t total = 0, used = 0;
  int64_t unmapped = 0;  // calls
  uintptr_t next_address = uintptr_t{1} << 40;
  PageHandle next_handle = 1;
  std::map<PageHandle, size_t> pages;  // that exist
  std::set<PageHandle> mapped_handles;
  std::map<uintptr_t, Mapping> mappings;  // by address
  std::map<uintptr_t, size_t> reservations;
  std::map<uintptr_t, size_t> plain;   // allocate / deallocate
  std::map<uintptr_t, size_t> in_use;  // the model's: blocks that somebody holds
  // A stream's work: `queued` goes up when a block that it may use is freed, `awaited` is what an
  // event has been seen to reach.
  std::map<StreamHandle, uint64_t> queued, awaited;
  struct Use {
    StreamHandle stream;
    uint64_t at;
  };
  std::map<uintptr_t, Use> last_use;  // of a page, by its address
  std::set<StreamHandle> stuck;       // what is queued there is never done
  std::set<StreamHandle> destroyed;   // must not be named any more
  bool knows_all = true;              // has event_record_all
  struct Event {
    std::map<StreamHandle, uint64_t> at;
    int polls = 0;
  };
  int live_events = 0;
  int64_t fail_in = -1;  // so many calls for memory succeed
  std::string violation;

  void wrong(const std::string& what) {
    if (violation.empty()) violation = what;
  }
};
inline PagedDevice paged;

inline bool paged_refuses(size_t bytes) {
  if (paged.fail_in >= 0 && paged.fail_in-- == 0) {
    paged.fail_in = 0;
    return true;
  }
  return paged.used + static_cast<int64_t>(bytes) > paged.total;
}

inline const Backend* paged_backend() {
  static const Backend table = [] {
    Backend b{};
    b.abi = kBackendAbi;
    b.name = "paged";
    b.memory_info = [](int, int64_t* free, int64_t* total) -> Status {
      *total = paged.total;
      *free = paged.total - paged.used;
      return {};
    };
    b.allocate = [](int, size_t bytes, void** out) -> Status {
      if (paged_refuses(bytes)) return {Code::kOutOfMemory, "full"};
      paged.used += static_cast<int64_t>(bytes);
      paged.plain[paged.next_address] = bytes;
      *out = reinterpret_cast<void*>(paged.next_address);
      paged.next_address += (bytes + PagedDevice::kPage) * 2;
      return {};
    };
    b.deallocate = [](int, void* p) -> Status {
      auto it = paged.plain.find(reinterpret_cast<uintptr_t>(p));
      if (it == paged.plain.end()) {
        paged.wrong("frees what was not allocated");
        return {};
      }
      paged.used -= static_cast<int64_t>(it->second);
      paged.plain.erase(it);
      return {};
    };
    b.page_size = [](int, size_t* out) -> Status {
      *out = PagedDevice::kPage;
      return {};
    };
    b.reserve_addresses = [](int, size_t bytes, void** out) -> Status {
      if (bytes % PagedDevice::kPage) paged.wrong("reserves part of a page");
      paged.reservations[paged.next_address] = bytes;
      *out = reinterpret_cast<void*>(paged.next_address);
      paged.next_address += bytes + PagedDevice::kPage;
      return {};
    };
    b.release_addresses = [](int, void* p, size_t bytes) -> Status {
      auto it = paged.reservations.find(reinterpret_cast<uintptr_t>(p));
      if (it == paged.reservations.end() || it->second != bytes)
        paged.wrong("releases addresses it did not reserve");
      else
        paged.reservations.erase(it);
      return {};
    };
    b.create_pages = [](int, size_t bytes, PageHandle* out) -> Status {
      if (bytes == 0 || bytes % PagedDevice::kPage) paged.wrong("creates part of a page");
      if (paged_refuses(bytes)) return {Code::kOutOfMemory, "full"};
      paged.used += static_cast<int64_t>(bytes);
      *out = paged.next_handle++;
      paged.pages[*out] = bytes;
      return {};
    };
    b.destroy_pages = [](int, PageHandle h, size_t bytes) -> Status {
      auto it = paged.pages.find(h);
      if (it == paged.pages.end() || it->second != bytes) {
        paged.wrong("destroys pages that are not there");
      } else if (paged.mapped_handles.count(h)) {
        paged.wrong("destroys pages that are mapped");
      } else {
        paged.used -= static_cast<int64_t>(bytes);
        paged.pages.erase(it);
      }
      return {};
    };
    b.map_pages = [](int, void* at, PageHandle h, size_t bytes) -> Status {
      const auto a = reinterpret_cast<uintptr_t>(at);
      auto it = paged.pages.find(h);
      if (it == paged.pages.end() || it->second != bytes) paged.wrong("maps unknown pages");
      if (!paged.mapped_handles.insert(h).second) paged.wrong("maps pages twice");
      auto after = paged.mappings.lower_bound(a);
      if (after != paged.mappings.end() && after->first < a + bytes) paged.wrong("maps over pages");
      if (after != paged.mappings.begin()) {
        auto before = std::prev(after);
        if (before->first + before->second.bytes > a) paged.wrong("maps over pages");
      }
      auto r = paged.reservations.upper_bound(a);
      if (r == paged.reservations.begin() || std::prev(r)->first + std::prev(r)->second < a + bytes)
        paged.wrong("maps outside of its addresses");
      paged.mappings[a] = {h, bytes, false};
      return {};
    };
    b.enable_pages = [](int, void* at, size_t bytes) -> Status {
      auto a = reinterpret_cast<uintptr_t>(at);
      const uintptr_t end = a + bytes;
      while (a < end) {
        auto it = paged.mappings.find(a);
        if (it == paged.mappings.end()) {
          paged.wrong("enables what is not mapped");
          return {};
        }
        it->second.enabled = true;
        a += it->second.bytes;
      }
      if (a != end) paged.wrong("enables half a mapping");
      return {};
    };
    b.unmap_pages = [](int, void* at, size_t bytes) -> Status {
      ++paged.unmapped;
      const auto a = reinterpret_cast<uintptr_t>(at);
      auto it = paged.mappings.find(a);
      if (it == paged.mappings.end() || it->second.bytes != bytes) {
        paged.wrong("unmaps what is not mapped there");
        return {};
      }
      for (uintptr_t page = a; page < a + bytes; page += PagedDevice::kPage) {
        auto use = paged.last_use.find(page);
        if (use == paged.last_use.end()) continue;
        if (paged.awaited[use->second.stream] < use->second.at)
          paged.wrong("unmaps a page whose work is not done");
        paged.last_use.erase(use);
      }
      auto held = paged.in_use.lower_bound(a);
      if (held != paged.in_use.end() && held->first < a + bytes)
        paged.wrong("unmaps memory in use");
      if (held != paged.in_use.begin()) {
        auto before = std::prev(held);
        if (before->first + before->second > a) paged.wrong("unmaps memory in use");
      }
      paged.mapped_handles.erase(it->second.handle);
      paged.mappings.erase(it);
      return {};
    };
    b.event_create = [](int, bool, EventHandle* out) -> Status {
      ++paged.live_events;
      *out = new PagedDevice::Event;
      return {};
    };
    b.event_destroy = [](int, EventHandle e) -> Status {
      --paged.live_events;
      delete static_cast<PagedDevice::Event*>(e);
      return {};
    };
    b.event_record = [](int, EventHandle e, StreamHandle s) -> Status {
      if (paged.destroyed.count(s)) paged.wrong("names a stream that was destroyed");
      *static_cast<PagedDevice::Event*>(e) = {{{s, paged.queued[s]}}, 2};
      return {};
    };
    b.event_record_all = [](int, EventHandle e) -> Status {
      if (!paged.knows_all) return {Code::kUnsupported, nullptr};
      *static_cast<PagedDevice::Event*>(e) = {paged.queued, 2};
      for (StreamHandle s : paged.stuck) static_cast<PagedDevice::Event*>(e)->at[s];
      return {};
    };
    b.event_query = [](int, EventHandle handle) -> Status {
      auto* e = static_cast<PagedDevice::Event*>(handle);
      if (e->polls-- > 0) return {Code::kNotReady, nullptr};
      for (auto& [stream, at] : e->at)
        if (paged.stuck.count(stream)) return {Code::kNotReady, nullptr};
      for (auto& [stream, at] : e->at) paged.awaited[stream] = std::max(paged.awaited[stream], at);
      return {};
    };
    return b;
  }();
  return &table;
}

// Runs random operations on an allocator and compares with the model after each. What went wrong,
// or nothing.
class PagedModel {
 public:
  PagedModel(DeviceAllocator& a, unsigned seed) : a_(a), rng_(seed) {}

  std::string step() {
    const unsigned what = rng_() % 1000;
    if (what < 500) {
      allocate();
    } else if (what < 960) {
      if (!held_.empty()) release(rng_() % held_.size());
    } else if (what < 990) {
      if (!held_.empty()) {
        Block* b = held_[rng_() % held_.size()];
        a_.record_stream(b, stream(rng_() % 4));
      }
    } else if (what < 998) {
      a_.charge(4096);
      a_.uncharge(4096);
    } else {
      a_.empty_cache();
    }
    return check();
  }
  void release_all() {
    while (!held_.empty()) release(held_.size() - 1);
  }
  int64_t ooms() const { return ooms_; }

 private:
  static StreamHandle stream(unsigned i) {
    return reinterpret_cast<StreamHandle>(static_cast<uintptr_t>(i));
  }
  size_t random_size() {
    constexpr size_t kMiB = 1 << 20;
    switch (rng_() % 8) {
      case 0:
      case 1:
      case 2:
        return 1 + rng_() % 4096;
      case 3:
      case 4:
        return 1 + rng_() % kMiB;
      case 5:
      case 6:
        return 1 + rng_() % (8 * kMiB);
      default:
        return rng_() % 16 ? 1 + rng_() % (24 * kMiB) : 1 + rng_() % (300 * kMiB);
    }
  }
  void allocate() {
    const size_t bytes = random_size();
    Block* b = nullptr;
    try {
      b = a_.allocate(bytes, stream(rng_() % 3));
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kOutOfMemory) wrong_ = std::string("raised: ") + e.what();
      ++ooms_;
      return;
    }
    const auto begin = reinterpret_cast<uintptr_t>(b->ptr), end = begin + b->size;
    if (b->size < bytes || begin % 512) wrong_ = "is too short or not aligned";
    auto next = paged.in_use.lower_bound(begin);
    if (next != paged.in_use.end() && end > next->first) wrong_ = "overlaps a block in use";
    if (next != paged.in_use.begin()) {
      auto before = std::prev(next);
      if (before->first + before->second > begin) wrong_ = "overlaps a block in use";
    }
    // All of it has memory that can be used.
    for (uintptr_t at = begin; at < end;) {
      auto it = paged.mappings.upper_bound(at);
      if (it == paged.mappings.begin()) {
        wrong_ = "has no memory";
        break;
      }
      --it;
      if (it->first + it->second.bytes <= at || !it->second.enabled) {
        wrong_ = "has no memory";
        break;
      }
      at = it->first + it->second.bytes;
    }
    paged.in_use[begin] = b->size;
    held_.push_back(b);
  }
  void release(size_t i) {
    std::swap(held_[i], held_.back());
    Block* b = held_.back();
    held_.pop_back();
    paged.in_use.erase(reinterpret_cast<uintptr_t>(b->ptr));
    const auto begin = reinterpret_cast<uintptr_t>(b->ptr);
    const uint64_t at = ++paged.queued[b->pool->stream];
    for (uintptr_t page = begin / PagedDevice::kPage * PagedDevice::kPage; page < begin + b->size;
         page += PagedDevice::kPage)
      paged.last_use[page] = {b->pool->stream, at};
    a_.deallocate(b);
  }
  std::string check() {
    if (!wrong_.empty()) return wrong_;
    if (!paged.violation.empty()) return paged.violation;
    int64_t in_use = 0, mapped = 0;
    size_t blocks_in_use = 0;
    const Block* before = nullptr;
    for (const Block* b : a_.all_blocks()) {
      if (b->size == 0 || b->size % 512) return "a block has an odd size";
      if (b->prev && (b->prev != before || before->ptr + before->size != b->ptr))
        return "blocks do not lie one after another";
      if (b->prev && before->is_free() && b->is_free()) return "free neighbours were not merged";
      if (b->prev && !before->mapped && !b->mapped) return "holes were not merged";
      if (b->in_use) {
        in_use += static_cast<int64_t>(b->size);
        ++blocks_in_use;
        auto it = paged.in_use.find(reinterpret_cast<uintptr_t>(b->ptr));
        if (it == paged.in_use.end() || it->second != b->size) return "a block is not the model's";
      }
      if (b->mapped) mapped += static_cast<int64_t>(b->size);
      before = b;
    }
    if (blocks_in_use != paged.in_use.size()) return "blocks were lost";
    if (a_.used().now() != in_use) return "memory_allocated is wrong";
    if (a_.reserved().now() != paged.used || mapped != paged.used)
      return "memory_reserved is wrong";
    return "";
  }

  DeviceAllocator& a_;
  std::mt19937 rng_;
  std::vector<Block*> held_;
  std::string wrong_;
  int64_t ooms_ = 0;
};

}  // namespace tessera::memory
