// Texts that several kernels begin with: joined when this is compiled.
#pragma once
#include <algorithm>
#include <cstddef>

namespace tessera::cuda {

template <size_t N>
struct JoinedText {
  char text[N];
};
template <size_t A, size_t B>
constexpr JoinedText<A + B - 1> join(const char (&a)[A], const char (&b)[B]) {
  JoinedText<A + B - 1> out{};
  std::copy_n(a, A - 1, out.text);
  std::copy_n(b, B, out.text + A - 1);
  return out;
}

}  // namespace tessera::cuda
