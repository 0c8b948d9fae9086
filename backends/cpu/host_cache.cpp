#include "host_cache.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>

namespace tessera::cpu {

namespace {

// Before the memory a user gets: its class, found again when it is freed.
struct alignas(64) Header {
  uint32_t cls;
  uint32_t magic;
  Header* next;
  void* block;  // what malloc gave
};
constexpr uint32_t kMagic = 0x7e55e7a0;
constexpr size_t kSmallest = 64;
constexpr int kNumClasses = 4 * 58;
// Classes up to 64 KiB have lists of their own in each thread.
constexpr int kThreadClasses = 4 * 10 + 1;
constexpr uint32_t kThreadKeeps = 16;
// Blocks of this size and more are made of huge pages.
constexpr size_t kHugeBlock = size_t{4} << 20;
constexpr size_t kHugePage = size_t{2} << 20;

int class_of(size_t bytes) {
  if (bytes <= kSmallest) return 0;
  // Quarters of powers of two above kSmallest: 80, 96, 112, 128, 160, ...
  int top = std::bit_width(bytes - 1) - 1;
  size_t quarter = (bytes - 1) >> (top - 2) & 3;
  return 4 * (top - 6) + static_cast<int>(quarter) + 1;
}
size_t class_bytes(int cls) {
  if (cls == 0) return kSmallest;
  int top = (cls - 1) / 4 + 6;
  size_t quarter = static_cast<size_t>((cls - 1) % 4) + 1;
  return (size_t{1} << top) + (quarter << (top - 2));
}

size_t cap() {
  static const size_t value = [] {
    if (const char* text = std::getenv("TESSERA_CPU_CACHE_MB"))
      return static_cast<size_t>(std::max(0L, std::atol(text))) << 20;
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGE_SIZE);
    return static_cast<size_t>(pages) * static_cast<size_t>(size) / 4;
  }();
  return value;
}

struct Shared {
  std::mutex mutex;
  Header* lists[kNumClasses] = {};
};
// Never destroyed: threads give blocks back after static destruction.
Shared& shared() {
  static Shared* s = [] {
    static Shared* made = new Shared;
    // The lock must not be held by a thread that the child of a fork does not have.
    pthread_atfork([] { made->mutex.lock(); }, [] { made->mutex.unlock(); },
                   [] { made->mutex.unlock(); });
    return made;
  }();
  return *s;
}
// Made when the library is loaded: handlers of a fork run in reverse order, and work that is
// deferred runs before a fork, which may take this lock.
[[maybe_unused]] Shared& g_shared = shared();
std::atomic<int64_t> g_kept{0};

void share(Header* h) {
  Shared& s = shared();
  std::lock_guard lock(s.mutex);
  h->next = s.lists[h->cls];
  s.lists[h->cls] = h;
}

// A thread's own lists, open between the thread's first free and its end. Blocks freed by later
// destructors go to the shared lists. Without a constructor or a destructor of their own, so that
// an access is one look-up of their address.
struct ThreadLists {
  Header* lists[kThreadClasses] = {};
  uint32_t counts[kThreadClasses] = {};
  enum : uint8_t { kNew, kOpen, kClosed } state = kNew;
  bool open();
  void flush() {
    for (int c = 0; c < kThreadClasses; ++c) {
      while (Header* h = lists[c]) {
        lists[c] = h->next;
        share(h);
      }
      counts[c] = 0;
    }
  }
};
constinit thread_local ThreadLists tl_lists;

struct CloseAtThreadEnd {
  ~CloseAtThreadEnd() {
    tl_lists.state = ThreadLists::kClosed;
    tl_lists.flush();
  }
};

// False once the thread has ended.
[[gnu::noinline]] bool ThreadLists::open() {
  if (state == kNew) {
    static thread_local CloseAtThreadEnd at_end;
    state = kOpen;
  }
  return state == kOpen;
}

Header* take_shared(int cls) {
  Shared& s = shared();
  std::lock_guard lock(s.mutex);
  Header* h = s.lists[cls];
  if (h) s.lists[cls] = h->next;
  return h;
}

void empty_shared() {
  Shared& s = shared();
  for (int c = 0; c < kNumClasses; ++c) {
    Header* list;
    {
      std::lock_guard lock(s.mutex);
      list = s.lists[c];
      s.lists[c] = nullptr;
    }
    while (list) {
      Header* next = list->next;
      if (c >= kThreadClasses)
        g_kept.fetch_sub(static_cast<int64_t>(class_bytes(c)), std::memory_order_relaxed);
      std::free(list->block);
      list = next;
    }
  }
}

// Whether TESSERA_GUARD_PAGES asks for memory that faults when it is read or written past its end,
// or after it is freed. For tests: each allocation takes two system calls and at least two pages.
bool has_guard_pages() {
  static const bool value = [] {
    const char* text = std::getenv("TESSERA_GUARD_PAGES");
    return text && *text && *text != '0';
  }();
  return value;
}
constexpr uint32_t kGuarded = kNumClasses;  // class of blocks with a guard page, in no list

// Memory that ends, up to 15 bytes, where a page without access begins.
Header* fresh_guarded(size_t bytes) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGE_SIZE));
  bytes = (bytes + 15) & ~size_t{15};
  const size_t size = (sizeof(Header) + bytes + page - 1) / page * page;
  void* block =
      mmap(nullptr, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) return nullptr;
  char* end = static_cast<char*>(block) + size;
  mprotect(end, page, PROT_NONE);
  // A block's memory need not be aligned to its header: both are at multiples of 16.
  auto* h = reinterpret_cast<Header*>(end - bytes - sizeof(Header));
  h->cls = kGuarded;
  h->magic = kMagic;
  h->next = reinterpret_cast<Header*>(size + page);
  h->block = block;
  return h;
}
void free_guarded(Header* h) { munmap(h->block, reinterpret_cast<size_t>(h->next)); }

Header* fresh(int cls) {
  size_t bytes = class_bytes(cls);
  char* p;
  size_t shift = 0;
  if (bytes < kHugeBlock) {
    p = static_cast<char*>(std::aligned_alloc(64, (sizeof(Header) + bytes + 63) & ~size_t{63}));
  } else {
    // Huge pages, for fewer faults and fewer misses of the address cache; and beginnings that
    // differ within a page, so that operands read side by side do not fight for the same lines.
    static std::atomic<uint32_t> colour{0};
    shift = (colour.fetch_add(1, std::memory_order_relaxed) * 5 % 16) * 256;
    size_t total = (sizeof(Header) + bytes + 4096 + kHugePage - 1) & ~(kHugePage - 1);
    p = static_cast<char*>(std::aligned_alloc(kHugePage, total));
    if (p) madvise(p, total, MADV_HUGEPAGE);
  }
  if (!p) return nullptr;
  Header* h = reinterpret_cast<Header*>(p + shift);
  h->block = p;
  return h;
}

}  // namespace

void* cache_allocate(size_t bytes) noexcept {
  if (bytes > size_t{1} << 60) return nullptr;
  int cls = class_of(bytes);
  Header* h = nullptr;
  if (cls < kThreadClasses) {
    ThreadLists& t = tl_lists;  // empty unless they are open
    h = t.lists[cls];
    if (h) {
      t.lists[cls] = h->next;
      --t.counts[cls];
      return h + 1;
    }
  }
  if (has_guard_pages()) {
    h = fresh_guarded(bytes);
    return h ? h + 1 : nullptr;
  }
  h = take_shared(cls);
  if (h) {
    if (cls >= kThreadClasses)
      g_kept.fetch_sub(static_cast<int64_t>(class_bytes(cls)), std::memory_order_relaxed);
    return h + 1;
  }
  h = fresh(cls);
  if (!h) {
    empty_shared();
    h = fresh(cls);
    if (!h) return nullptr;
  }
  h->cls = static_cast<uint32_t>(cls);
  h->magic = kMagic;
  return h + 1;
}

void cache_free(void* p) noexcept {
  if (!p) return;
  Header* h = static_cast<Header*>(p) - 1;
  if (h->magic != kMagic) std::abort();
  int cls = static_cast<int>(h->cls);
  if (cls < kThreadClasses) {
    ThreadLists& t = tl_lists;
    if ((t.state == ThreadLists::kOpen || t.open()) && t.counts[cls] < kThreadKeeps) {
      h->next = t.lists[cls];
      t.lists[cls] = h;
      ++t.counts[cls];
      return;
    }
    // Small blocks are not counted against the cap: a lock-free counter would cost more than
    // they can weigh.
    return share(h);
  }
  if (h->cls == kGuarded) return free_guarded(h);
  int64_t size = static_cast<int64_t>(class_bytes(cls));
  if (g_kept.fetch_add(size, std::memory_order_relaxed) + size > static_cast<int64_t>(cap())) {
    g_kept.fetch_sub(size, std::memory_order_relaxed);
    return std::free(h->block);
  }
  share(h);
}

}  // namespace tessera::cpu

extern "C" {
__attribute__((visibility("default"))) void tessera_cpu_empty_cache() {
  tessera::cpu::tl_lists.flush();
  tessera::cpu::empty_shared();
}
__attribute__((visibility("default"))) int64_t tessera_cpu_cached_bytes() {
  return std::max<int64_t>(0, tessera::cpu::g_kept.load(std::memory_order_relaxed));
}
}
