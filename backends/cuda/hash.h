// A fast 128-bit hash of words: the key of compiled kernels. Two independent multiply-and-fold
// lanes; 128 bits make an accidental collision, which would run the wrong kernel, out of the
// question.
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tessera::cuda {

struct Hash128 {
  uint64_t lo = 0, hi = 0;
  bool operator==(const Hash128&) const = default;
  bool operator<(const Hash128& o) const { return hi != o.hi ? hi < o.hi : lo < o.lo; }
};
struct HashOfHash {
  size_t operator()(const Hash128& h) const { return h.lo; }
};

class Hasher {
 public:
  explicit Hasher(uint64_t kind) { add(kind); }
  void add(uint64_t w) {
    a_ = fold(a_ ^ w, 0x9e3779b97f4a7c15u) + 0x632be59bd9b4e019u;
    b_ = fold(b_ + w, 0xe7037ed1a0b428dbu) ^ (w >> 29 | w << 35);
  }
  void add_bytes(const void* data, size_t n) {
    const char* p = static_cast<const char*>(data);
    for (; n >= 8; n -= 8, p += 8) {
      uint64_t w;
      std::memcpy(&w, p, 8);
      add(w);
    }
    uint64_t last = n;
    for (size_t i = 0; i < n; ++i) last = last << 8 | static_cast<unsigned char>(p[i]);
    add(last);
  }
  void add(std::string_view s) {
    add(s.size());
    add_bytes(s.data(), s.size());
  }
  Hash128 finish() const {
    return {fold(a_ ^ 0x589965cc75374cc3u, b_ | 1), fold(b_ ^ 0x1d8e4e27c47d124fu, a_ | 1)};
  }

 private:
  static uint64_t fold(uint64_t x, uint64_t y) {
    unsigned __int128 p = static_cast<unsigned __int128>(x) * y;
    return static_cast<uint64_t>(p) ^ static_cast<uint64_t>(p >> 64);
  }
  uint64_t a_ = 0x243f6a8885a308d3u, b_ = 0x13198a2e03707344u;
};

}  // namespace tessera::cuda
