// What the parts of cuDNN's stand-in have in common.
#pragma once
#include <cudnn_graph.h>

#include <cstring>
#include <type_traits>

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

namespace emulator {

struct Bf16 {
  uint16_t bits;
};
template <class A, class T>
A load(const T* p) {
  if constexpr (std::is_same_v<T, Bf16>) {
    uint32_t bits = uint32_t{p->bits} << 16;
    float f;
    std::memcpy(&f, &bits, 4);
    return f;
  } else {
    return static_cast<A>(*p);
  }
}
template <class A, class T>
void store(T* p, A a) {
  if constexpr (std::is_same_v<T, Bf16>) {
    uint32_t x;
    std::memcpy(&x, &a, 4);
    p->bits =
        a != a ? uint16_t{0x7fc0} : static_cast<uint16_t>((x + 0x7fffu + (x >> 16 & 1u)) >> 16);
  } else {
    *p = static_cast<T>(a);
  }
}

}  // namespace emulator
