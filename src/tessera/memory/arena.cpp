// Arenas: where they grow, and where the pages for it come from.
#include "tessera/memory/arena.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "tessera/memory/device_allocator.h"

namespace tessera::memory {

namespace {

// Pages are made one by one, so that any of them can be moved; requests of this size and more get
// handles of several, which the driver makes faster.
constexpr size_t kBulkRequest = size_t{256} << 20;
constexpr uint32_t kBulkPages = 16;

// Note [When pages move]
// Moving free pages keeps what is reserved at what is used, but the driver takes some hundred
// microseconds a page, and work that is queued is waited for. That of every stream: a program may
// read a tensor on another stream than its own and let go of it without record_stream, which may
// cost it an order but not the device. A program that does the same at every step would wait at
// every step. So memory may grow to a little more than was ever in use, by more the more was moved;
// beyond that, time spent with moving and with waiting is limited to a share of the time that has
// passed, and a sum in advance; and no wait is long: a stream may stand still until this thread
// sends what another process waits for. When memory is out, everything may move.
constexpr double kLeastSlack = 1.02, kMostSlack = 1.08;
constexpr double kMovesPerSlack = 16;  // bytes that were moved for one more byte
constexpr double kMovingShare = 0.05, kWaitingShare = 0.01;
constexpr double kMovingInAdvance = 2.0, kWaitingInAdvance = 0.05;  // seconds
constexpr double kLongestWait = 1.0;

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

Arena* DeviceAllocator::arena_of(StreamPool& pool, bool small) {
  Arena*& slot = pool.arenas[small];
  if (slot) return slot;
  // Twice the device: fragments of addresses cost nothing, and must not run out. Graphs are many,
  // and their pages stay where they are: once will do.
  const size_t times = pool.graphs ? 1 : 2;
  const size_t bytes = round_up(static_cast<size_t>(total_) * times, page_bytes_);
  void* base = nullptr;
  if (!backend_->reserve_addresses(device_, bytes, &base).ok()) return nullptr;
  Arena& a = arenas_.emplace_back();
  a.base = static_cast<char*>(base);
  a.reserved = bytes;
  a.page_bytes = page_bytes_;
  a.pool = &pool;
  a.small = small;
  return slot = &a;
}

// Among the runs of free blocks and holes (the last one goes on above the top) the one that needs
// the fewest pages; of equals the lowest.
DeviceAllocator::Spot DeviceAllocator::cheapest_spot(const Arena& a, size_t size) const {
  Spot best;
  best.pages = SIZE_MAX;
  auto unmapped = [&](size_t begin, size_t end) {
    size_t n = 0;
    for (size_t p = begin / page_bytes_; p * page_bytes_ < end; ++p)
      n += p >= a.pages.size() || a.pages[p].count == 0;
    return n;
  };
  auto consider = [&](size_t begin, size_t length) {
    if (length < size) return;
    const size_t n = unmapped(begin, begin + size);
    if (n < best.pages) best = {begin, begin + size, n};
  };
  auto is_open = [](const Block* b) { return b && (!b->mapped || b->is_free()); };
  for (Block* b = a.first; b;) {
    if (!is_open(b)) {
      b = b->next;
      continue;
    }
    const auto begin = static_cast<size_t>(b->ptr - a.base);
    size_t length = 0;
    for (; is_open(b); b = b->next) length += b->size;
    consider(begin, b ? length : a.reserved - begin);
  }
  if (!is_open(a.last)) consider(a.top, a.reserved - a.top);
  return best;
}

// A hole from `top` on, or a longer one.
void DeviceAllocator::extend_to(Arena& a, size_t top) {
  if (top <= a.top) return;
  if (a.last && !a.last->mapped) {
    a.last->size += top - a.top;
  } else {
    Block* hole = new_block();
    hole->ptr = a.base + a.top;
    hole->size = top - a.top;
    hole->pool = a.pool;
    hole->arena = &a;
    hole->small = a.small;
    hole->mapped = false;
    hole->prev = a.last;
    (a.last ? a.last->next : a.first) = hole;
    a.last = hole;
  }
  a.top = top;
  a.pages.resize(top / page_bytes_);
}

// Of a free block that is in no list: the part from `begin` to `end` loses its memory.
void DeviceAllocator::make_hole(Block* b, size_t begin, size_t end) {
  const auto at = static_cast<size_t>(b->ptr - b->arena->base);
  if (end < at + b->size) {
    Block* right = split(b, end - at);
    b->pool->insert(right);
  }
  Block* hole = b;
  if (begin > at) {
    hole = split(b, begin - at);
    b->pool->insert(b);
  }
  hole->mapped = false;
  if (hole->next && !hole->next->mapped) merge(hole, hole->next);
  if (hole->prev && !hole->prev->mapped) merge(hole->prev, hole);
}

// Addresses that were just given memory become a free block.
void DeviceAllocator::fill_hole(Arena& a, size_t begin, size_t end) {
  Block* b = a.first;
  while (static_cast<size_t>(b->ptr - a.base) + b->size <= begin) b = b->next;
  const auto at = static_cast<size_t>(b->ptr - a.base);
  if (end < at + b->size) split(b, end - at);
  if (begin > at) b = split(b, begin - at);
  b->mapped = true;
  if (b->prev && b->prev->is_free()) {
    b->pool->remove(b->prev);
    b = merge(b->prev, b);
  }
  if (b->next && b->next->is_free()) {
    b->pool->remove(b->next);
    merge(b, b->next);
  }
  b->pool->insert(b);
}

// Handles of the pool that lie wholly in free blocks, outside the spot; the highest addresses
// first, so that arenas shrink from the top.
void DeviceAllocator::collect_donors(const StreamPool& pool, const Arena& keep, const Spot& spot,
                                     size_t most, std::vector<Donor>* out) const {
  std::vector<Donor> found;
  pool.for_each_free([&](Block* b) {
    const Arena* a = b->arena;
    if (!a) return;
    const auto begin = static_cast<size_t>(b->ptr - a->base), end = begin + b->size;
    size_t p = (begin + page_bytes_ - 1) / page_bytes_;
    while ((p + 1) * page_bytes_ <= end) {
      const Arena::Page& page = a->pages[p];
      if (page.first != p) {  // begins before this block
        p = page.first + page.count;
        continue;
      }
      const size_t last = p + page.count;
      const bool inside = last * page_bytes_ <= end;
      const bool in_spot =
          a == &keep && p * page_bytes_ < spot.end && last * page_bytes_ > spot.begin;
      if (inside && !in_spot) found.push_back({b, p, page.count});
      p = last;
    }
  });
  std::sort(found.begin(), found.end(), [](const Donor& x, const Donor& y) {
    return x.block->arena->address(x.first) > y.block->arena->address(y.first);
  });
  size_t pages = 0;
  for (const Donor& d : found) {
    if (pages >= most) break;
    out->push_back(d);
    pages += d.count;
  }
}

void DeviceAllocator::unmap(const Donor& donor, std::vector<Loose>* out) {
  Arena& a = *donor.block->arena;
  const size_t bytes = donor.count * page_bytes_;
  char* at = a.address(donor.first);
  if (!backend_->unmap_pages(device_, at, bytes).ok()) return;  // the device is lost
  out->push_back({a.pages[donor.first].handle, donor.count});
  for (uint32_t i = 0; i < donor.count; ++i) a.pages[donor.first + i] = {};
  donor.block->pool->remove(donor.block);
  make_hole(donor.block, donor.first * page_bytes_, (donor.first + donor.count) * page_bytes_);
  reserved_.subtract(static_cast<int64_t>(bytes));
  stats_.reserved_bytes.subtract(a.small, static_cast<int64_t>(bytes));
  stats_.segment.subtract(a.small, 1);
  if (history_.on()) history_.add(Action::kSegmentUnmap, at, bytes, a.pool->stream, 0);
}

// See Note [When pages move].
bool DeviceAllocator::may_move() {
  const double passed = seconds_since(made_at_);
  if (moving_seconds_ > kMovingInAdvance + kMovingShare * passed) return false;
  const auto begin = Clock::now();
  const double left = kWaitingInAdvance + kWaitingShare * passed - waiting_seconds_;
  const bool quiet = settle(std::min(left, kLongestWait));
  waiting_seconds_ += seconds_since(begin);
  return quiet;
}

// Frees pages for use elsewhere; how many.
size_t DeviceAllocator::loosen(size_t pages, const Arena& keep, const Spot& spot, bool force,
                               std::vector<Loose>* out) {
  size_t got = 0;
  std::optional<bool> may;
  auto from = [&](StreamPool& pool) {
    if (got >= pages) return;
    std::vector<Donor> donors;
    collect_donors(pool, keep, spot, pages - got, &donors);
    if (donors.empty()) return;
    if (!may) may = force ? settle() : may_move();
    if (!*may || !is_settled(pool)) return;
    const auto begin = Clock::now();
    // From the top down: a block that gives up its end is still the block that the next one names.
    for (const Donor& d : donors) {
      const size_t before = out->size();
      unmap(d, out);
      if (out->size() == before) continue;
      got += d.count;
      moved_bytes_ += d.count * page_bytes_;
    }
    moving_seconds_ += seconds_since(begin);
  };
  if (keep.pool->graphs) {
    // Pages of graphs stay where they are, and others are waited for only when there is no choice.
    if (!force) return 0;
  } else {
    from(*keep.pool);
  }
  for_each_movable([&](StreamPool& pool) {
    if (&pool != keep.pool) from(pool);
  });
  return got;
}

void DeviceAllocator::destroy(std::vector<Loose>* loose) {
  for (const Loose& l : *loose) {
    backend_->destroy_pages(device_, l.handle, l.count * page_bytes_);
    ++stats_.num_device_free;
  }
  loose->clear();
}

// Maps pages [first, first + count), which have none, from what is loose and from the driver.
bool DeviceAllocator::map_run(Arena& a, size_t first, size_t count, std::vector<Loose>* loose,
                              Status* status) {
  const bool bulk = count * page_bytes_ >= kBulkRequest;
  size_t at = first;
  const size_t end = first + count;
  while (at < end) {
    const size_t left = end - at;
    Loose piece{0, 0};
    auto fits =
        std::find_if(loose->begin(), loose->end(), [&](const Loose& l) { return l.count <= left; });
    if (fits != loose->end()) {
      piece = *fits;
      *fits = loose->back();
      loose->pop_back();
    } else {
      destroy(loose);  // too long for what is left: the driver gets them back first
      piece.count = bulk && left >= kBulkPages ? kBulkPages : 1;
      const size_t bytes = piece.count * page_bytes_;
      if (reserved_.now() + static_cast<int64_t>(bytes) > allowed()) {
        *status = {Code::kOutOfMemory, nullptr};
        break;
      }
      *status = backend_->create_pages(device_, bytes, &piece.handle);
      if (!status->ok()) break;
      ++stats_.num_device_alloc;
    }
    const size_t bytes = piece.count * page_bytes_;
    *status = backend_->map_pages(device_, a.address(at), piece.handle, bytes);
    if (!status->ok()) {
      backend_->destroy_pages(device_, piece.handle, bytes);
      break;
    }
    for (uint32_t i = 0; i < piece.count; ++i)
      a.pages[at + i] = {piece.handle, static_cast<uint32_t>(at), piece.count};
    reserved_.add(static_cast<int64_t>(bytes));
    stats_.reserved_bytes.add(a.small, static_cast<int64_t>(bytes));
    stats_.segment.add(a.small, 1);
    at += piece.count;
  }
  if (at > first) {
    const size_t bytes = (at - first) * page_bytes_;
    if (Status s = backend_->enable_pages(device_, a.address(first), bytes); !s.ok()) {
      *status = s;
      drop_run(a, first, at);
      return false;
    }
    fill_hole(a, first * page_bytes_, at * page_bytes_);
    if (history_.on())
      history_.add(Action::kSegmentMap, a.address(first), bytes, a.pool->stream, 0);
  }
  return at == end && status->ok();
}

// Undoes a mapping that cannot be used.
void DeviceAllocator::drop_run(Arena& a, size_t first, size_t end) {
  while (first < end) {
    const Arena::Page page = a.pages[first];
    const size_t bytes = page.count * page_bytes_;
    backend_->unmap_pages(device_, a.address(first), bytes);
    backend_->destroy_pages(device_, page.handle, bytes);
    for (uint32_t i = 0; i < page.count; ++i) a.pages[first + i] = {};
    reserved_.subtract(static_cast<int64_t>(bytes));
    stats_.reserved_bytes.subtract(a.small, static_cast<int64_t>(bytes));
    stats_.segment.subtract(a.small, 1);
    first += page.count;
  }
}

bool DeviceAllocator::grow_arena(Arena& a, size_t size, bool force, Status* status) {
  const Spot spot = cheapest_spot(a, size);
  if (spot.pages == SIZE_MAX) {
    *status = {Code::kOutOfMemory, nullptr};
    return false;
  }
  const size_t first = spot.begin / page_bytes_;
  const size_t end = (spot.end + page_bytes_ - 1) / page_bytes_;
  std::vector<Loose> loose;
  const int64_t blocks = real_.load(std::memory_order_relaxed);
  most_in_use_ = std::max(most_in_use_, blocks + static_cast<int64_t>(size));
  const auto grown = static_cast<double>(reserved_.now() + int64_t(spot.pages * page_bytes_));
  const auto most = static_cast<double>(most_in_use_);
  const double slack = kLeastSlack * most + static_cast<double>(moved_bytes_) / kMovesPerSlack;
  if (force || grown > std::min(slack, kMostSlack * most))
    loosen(spot.pages, a, spot, force, &loose);
  // Known to be too much before anything is made.
  bool ok = reserved_.now() + static_cast<int64_t>(spot.pages * page_bytes_) <= allowed();
  if (!ok) *status = {Code::kOutOfMemory, nullptr};
  if (ok) extend_to(a, end * page_bytes_);
  for (size_t p = first; ok && p < end;) {
    if (a.pages[p].count != 0) {
      ++p;
      continue;
    }
    size_t run = p;
    while (run < end && a.pages[run].count == 0) ++run;
    ok = map_run(a, p, run - p, &loose, status);
    p = run;
  }
  destroy(&loose);
  if (!ok) trim(a);
  return ok;
}

// Addresses above the last memory are as good as never used.
void DeviceAllocator::trim(Arena& a) {
  Block* b = a.last;
  if (!b || b->mapped) return;
  a.top = static_cast<size_t>(b->ptr - a.base) / page_bytes_ * page_bytes_;
  a.last = b->prev;
  (b->prev ? b->prev->next : a.first) = nullptr;
  recycle(b);
  a.pages.resize(a.top / page_bytes_);
}

void DeviceAllocator::release_free_pages() {
  const Arena nowhere;
  std::vector<Loose> loose;
  bool settled = false;
  for_each_movable([&](StreamPool& pool) {
    std::vector<Donor> donors;
    collect_donors(pool, nowhere, Spot{}, SIZE_MAX, &donors);
    if (donors.empty()) return;
    settled = settled || settle();
    if (!is_settled(pool)) return;
    for (const Donor& d : donors) unmap(d, &loose);
  });
  destroy(&loose);
  for (Arena& a : arenas_) trim(a);
}

}  // namespace tessera::memory
