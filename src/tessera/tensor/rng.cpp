#include "tessera/tensor/rng.h"

#include <cstring>

namespace tessera {

namespace {

constexpr uint64_t kStateMagic = 0x31676e7261737365u;

struct PackedState {
  uint64_t magic;
  uint64_t seed;
  uint64_t philox_offset;
  double next_double;
  float next_float;
  int32_t left;
  uint32_t next;
  uint32_t has_double;
  uint32_t has_float;
  uint32_t state[624];
};

}  // namespace

void Mt19937Generator::manual_seed(uint64_t seed) {
  seed_ = seed;
  philox_offset_ = 0;
  next_float_normal.reset();
  next_double_normal.reset();
  state_[0] = static_cast<uint32_t>(seed);
  for (uint32_t j = 1; j < kN; ++j)
    state_[j] = 1812433253u * (state_[j - 1] ^ (state_[j - 1] >> 30)) + j;
  left_ = 1;
  next_ = 0;
}

size_t Mt19937Generator::state_bytes() { return sizeof(PackedState); }

void Mt19937Generator::get_state(uint8_t* out) const {
  PackedState s;
  std::memset(&s, 0, sizeof s);
  s.magic = kStateMagic;
  s.seed = seed_;
  s.philox_offset = philox_offset_;
  s.next_double = next_double_normal.value_or(0);
  s.next_float = next_float_normal.value_or(0);
  s.left = left_;
  s.next = next_;
  s.has_double = next_double_normal.has_value();
  s.has_float = next_float_normal.has_value();
  std::memcpy(s.state, state_, sizeof state_);
  std::memcpy(out, &s, sizeof s);
}

bool Mt19937Generator::set_state(const uint8_t* bytes, size_t size) {
  PackedState s;
  if (size != sizeof s) return false;
  std::memcpy(&s, bytes, sizeof s);
  bool sound = s.magic == kStateMagic && s.left >= 1 && s.left <= kN && s.next <= kN &&
               (s.left == 1 || s.next + static_cast<uint32_t>(s.left) == kN + 1u);
  if (!sound) return false;
  seed_ = s.seed;
  philox_offset_ = s.philox_offset;
  next_double_normal.reset();
  next_float_normal.reset();
  if (s.has_double) next_double_normal = s.next_double;
  if (s.has_float) next_float_normal = s.next_float;
  left_ = s.left;
  next_ = s.next;
  std::memcpy(state_, s.state, sizeof state_);
  return true;
}

}  // namespace tessera
