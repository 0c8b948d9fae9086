// Sorts packed keys (packed_keys.h) by the bytes of their upper half.
#pragma once
#include "packed_keys.h"

namespace tessera::cpu {

// `data` and `spare` hold n each; the result is in the one that is returned. Positions must ascend
// in `data`. key_bytes: how many bytes of the key are in use. With `parallel`, by several threads.
template <class P>
P* sort_packed(P* data, P* spare, int64_t n, int key_bytes, bool parallel) noexcept;

extern template uint64_t* sort_packed(uint64_t*, uint64_t*, int64_t, int, bool) noexcept;
extern template uint128* sort_packed(uint128*, uint128*, int64_t, int, bool) noexcept;

}  // namespace tessera::cpu
