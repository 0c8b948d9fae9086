// Blocks of device memory, and the free ones of a stream in best-fit order.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "tessera/base/source.h"
#include "tessera/driver/backend.h"

namespace tessera::memory {

inline constexpr size_t kUnit = 512;
inline constexpr size_t kSmallLimit = size_t{1} << 20;  // the largest small request
inline constexpr size_t kSmallSegment = size_t{2} << 20;
inline constexpr size_t kLargeSegment = size_t{20} << 20;  // for requests below kLargeAlone
inline constexpr size_t kLargeAlone = size_t{10} << 20;
inline constexpr size_t kSegmentUnit = size_t{2} << 20;

struct Arena;
struct Block;
struct PrivatePool;
class DeviceAllocator;
struct StreamPool;

struct BySizeThenAddress {
  using is_transparent = void;
  bool operator()(const Block* a, const Block* b) const;
  bool operator()(const Block* a, size_t size) const;
  bool operator()(size_t size, const Block* a) const;
};
using SizeOrder = std::set<Block*, BySizeThenAddress>;

struct Block {
  char* ptr = nullptr;
  size_t size = 0;
  StreamPool* pool = nullptr;
  Arena* arena = nullptr;  // null: in a segment of its own size
  bool small = false;
  bool in_use = false;
  bool mapped = true;    // false: only addresses, without memory
  uint32_t waiting = 0;  // events of other streams, after deallocate
  // Neighbours within the segment, by address.
  Block* prev = nullptr;
  Block* next = nullptr;
  // Free and small: links of its bin. `free_next` also links spare Block objects.
  Block* free_prev = nullptr;
  Block* free_next = nullptr;
  // Free and large: its place in the order; otherwise the node to go back with, made together with
  // the block, so that neither taking a block nor returning it allocates.
  SizeOrder::iterator place;
  SizeOrder::node_type node;
  std::vector<StreamHandle> streams;  // others that use it

  // Of a block in use: what was asked for, where in the program, and by whom (a Storage).
  size_t requested = 0;
  SourceRef source;
  const void* holder = nullptr;
  uint32_t stack = 0;  // in the history, 0 for none

  bool is_free() const { return mapped && !in_use && !waiting; }
  bool whole_segment() const { return !arena && !prev && !next; }
};

inline bool BySizeThenAddress::operator()(const Block* a, const Block* b) const {
  return a->size != b->size ? a->size < b->size : a->ptr < b->ptr;
}
inline bool BySizeThenAddress::operator()(const Block* a, size_t size) const {
  return a->size < size;
}
inline bool BySizeThenAddress::operator()(size_t size, const Block* a) const {
  return size < a->size;
}

// Small sizes are few (4096 multiples of 512 bytes): one list per size and a bitmap over them give
// best fit in constant time.
class SmallFree {
 public:
  void insert(Block* b);
  void remove(Block* b);
  // The smallest block of at least `size`, left in place; null if none.
  Block* best_fit(size_t size) const;
  template <class F>
  void for_each(F f) const {
    for (Block* head : bins_)
      for (Block* b = head; b;) {
        Block* next = b->free_next;  // f may remove b
        f(b);
        b = next;
      }
  }

 private:
  static constexpr size_t kBins = kSmallSegment / kUnit;
  // The last one takes whatever is larger.
  static size_t bin(size_t size) { return size < kSmallSegment ? size / kUnit - 1 : kBins - 1; }

  std::array<Block*, kBins> bins_{};
  std::array<uint64_t, kBins / 64> words_{};
  uint64_t summary_ = 0;
  static_assert(kBins / 64 == 64, "one summary word covers the bitmap");
};

class LargeFree {
 public:
  void insert(Block* b) {
    b->node.value() = b;
    b->place = order_.insert(std::move(b->node)).position;
  }
  void remove(Block* b) { b->node = order_.extract(b->place); }
  Block* best_fit(size_t size) const {
    auto it = order_.lower_bound(size);
    return it == order_.end() ? nullptr : *it;
  }
  template <class F>
  void for_each(F f) const {
    for (auto it = order_.begin(); it != order_.end();) f(*it++);
  }

 private:
  SizeOrder order_;
};

struct StreamPool {
  StreamPool(DeviceAllocator* o, StreamHandle s) : owner(o), stream(s) {}
  void insert(Block* b) { b->small ? small.insert(b) : large.insert(b); }
  void remove(Block* b) { b->small ? small.remove(b) : large.remove(b); }
  template <class F>
  void for_each_free(F f) const {
    small.for_each(f);
    large.for_each(f);
  }

  DeviceAllocator* owner;
  StreamHandle stream;
  PrivatePool* graphs = nullptr;  // whose memory it is; null: everybody's
  bool orphan = false;            // of graphs that are gone: its memory can go elsewhere
  int64_t live = 0;               // blocks that are in use, or waiting for other streams
  Arena* arenas[2] = {};          // of large and of small blocks, made when needed
  SmallFree small;
  LargeFree large;
};

}  // namespace tessera::memory
