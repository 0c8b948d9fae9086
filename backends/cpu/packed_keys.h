// Elements as integers that sort as they do, with their positions.
//
// Note [Packed keys]
// A line is sorted as numbers of (key, position): the key in the upper half, the position in the
// lower. Keys are those of sort_keys.h, NaN above all, -0 the same as 0; turned over (~key) for
// descending order. No two packed numbers are equal, so any sort of them is the one stable sort of
// the elements, whoever does it and on how many threads.
#pragma once
#include "sort_keys.h"

namespace tessera::cpu {

__extension__ typedef unsigned __int128 uint128;

// Elements of up to four bytes pack into eight; of eight bytes into sixteen.
template <class T>
using PackedOf = std::conditional_t<sizeof(T) <= 4, uint64_t, uint128>;
template <class P>
inline constexpr int kHalfBits = static_cast<int>(sizeof(P)) * 4;
template <class P>
using HalfOf = std::conditional_t<sizeof(P) == 8, uint32_t, uint64_t>;

template <class T>
TS_INLINE PackedOf<T> pack(T x, bool descending, int64_t position) {
  using P = PackedOf<T>;
  using Key = typename KeyOf<T>::Key;
  const Key key = KeyOf<T>::to(x);
  const HalfOf<P> upper = descending ? static_cast<Key>(~key) : key;
  return static_cast<P>(upper) << kHalfBits<P> | static_cast<HalfOf<P>>(position);
}
template <class P>
TS_INLINE int64_t position_of(P packed) {
  return static_cast<int64_t>(static_cast<HalfOf<P>>(packed));
}
template <class P>
TS_INLINE HalfOf<P> key_part(P packed) {
  return static_cast<HalfOf<P>>(packed >> kHalfBits<P>);
}

}  // namespace tessera::cpu
