#include "tessera/memory/block.h"

namespace tessera::memory {

void SmallFree::insert(Block* b) {
  const size_t i = bin(b->size);
  b->free_prev = nullptr;
  b->free_next = bins_[i];
  if (b->free_next) b->free_next->free_prev = b;
  bins_[i] = b;
  words_[i / 64] |= uint64_t{1} << (i % 64);
  summary_ |= uint64_t{1} << (i / 64);
}

void SmallFree::remove(Block* b) {
  if (b->free_next) b->free_next->free_prev = b->free_prev;
  if (b->free_prev) {
    b->free_prev->free_next = b->free_next;
    return;
  }
  const size_t i = bin(b->size);
  bins_[i] = b->free_next;
  if (bins_[i]) return;
  words_[i / 64] &= ~(uint64_t{1} << (i % 64));
  if (!words_[i / 64]) summary_ &= ~(uint64_t{1} << (i / 64));
}

Block* SmallFree::best_fit(size_t size) const {
  const size_t first = bin(size);
  if (bins_[first]) return bins_[first];
  size_t word = first / 64;
  uint64_t bits = words_[word] & (~uint64_t{0} << (first % 64));
  if (!bits) {
    if (word == 63) return nullptr;
    const uint64_t later = summary_ & (~uint64_t{0} << (word + 1));
    if (!later) return nullptr;
    word = static_cast<size_t>(std::countr_zero(later));
    bits = words_[word];
  }
  return bins_[word * 64 + static_cast<size_t>(std::countr_zero(bits))];
}

}  // namespace tessera::memory
