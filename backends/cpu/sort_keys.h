// Values as unsigned keys in their order, and keys sorted: what unique and isin are made of.
#pragma once
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "convert_scalar.h"

namespace tessera::cpu {

// The key of a value: keys compare as values do, both zeros have the same, and every NaN the last.
template <class T>
struct KeyOf {
  using Key = std::conditional_t<
      sizeof(T) == 1, uint8_t,
      std::conditional_t<sizeof(T) == 2, uint16_t,
                         std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
  static constexpr Key kSign = static_cast<Key>(Key(1) << (8 * sizeof(T) - 1));
  static constexpr bool kFloat =
      std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat>;

  static bool is_nan(T v) {
    if constexpr (std::is_same_v<T, Half>)
      return (v.bits & 0x7fffu) > 0x7c00u;
    else if constexpr (std::is_same_v<T, BFloat>)
      return (v.bits & 0x7fffu) > 0x7f80u;
    else
      return v != v;
  }
  static Key to(T v) {
    Key bits;
    std::memcpy(&bits, &v, sizeof bits);
    if constexpr (kFloat) {
      if (is_nan(v)) return std::numeric_limits<Key>::max();
      if (bits == kSign) bits = 0;
      return static_cast<Key>(bits & kSign ? ~bits : bits | kSign);
    } else if constexpr (std::is_signed_v<T>) {
      return static_cast<Key>(bits ^ kSign);
    } else {
      return bits;
    }
  }
};

// Sorts keys, and with them what `with` holds (null: nothing), keeping the order of equal ones.
// The rooms hold n of each. Digit by digit; a digit that all have in common costs one look.
template <class Key>
void sort_keys(Key* keys, int64_t* with, int64_t n, Key* key_room, int64_t* with_room) {
  if (n < 64) {
    for (int64_t i = 1; i < n; ++i) {
      Key k = keys[i];
      int64_t w = with ? with[i] : 0, j = i;
      for (; j > 0 && k < keys[j - 1]; --j) {
        keys[j] = keys[j - 1];
        if (with) with[j] = with[j - 1];
      }
      keys[j] = k;
      if (with) with[j] = w;
    }
    return;
  }
  Key *from = keys, *to = key_room;
  int64_t *from_with = with, *to_with = with_room;
  for (size_t digit = 0; digit < sizeof(Key); ++digit) {
    const int shift = static_cast<int>(8 * digit);
    int64_t counts[257] = {};
    for (int64_t i = 0; i < n; ++i) ++counts[(from[i] >> shift & 255) + 1];
    if (*std::max_element(counts, counts + 257) == n) continue;
    for (int d = 0; d < 256; ++d) counts[d + 1] += counts[d];
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = counts[from[i] >> shift & 255]++;
      to[at] = from[i];
      if (with) to_with[at] = from_with[i];
    }
    std::swap(from, to);
    std::swap(from_with, to_with);
  }
  if (from == keys) return;
  std::memcpy(keys, from, static_cast<size_t>(n) * sizeof(Key));
  if (with) std::memcpy(with, from_with, static_cast<size_t>(n) * sizeof(int64_t));
}

}  // namespace tessera::cpu
