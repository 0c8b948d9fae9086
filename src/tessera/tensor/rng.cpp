#include "tessera/tensor/rng.h"

#include <cstring>

namespace tessera {

namespace {

// PyTorch's own layout of a CPU generator's state, so that states can be exchanged.
struct PackedState {
  uint64_t seed;
  int32_t left;
  int32_t seeded;
  uint64_t next;
  uint64_t state[624];
  double unused_x;
  double next_double;
  double unused_rho;
  int32_t has_double;
  int32_t padding;
  float next_float;
  uint8_t has_float;
  uint8_t tail[3];
};
static_assert(sizeof(PackedState) == 5056);

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
  s.seed = seed_;
  s.left = left_;
  s.seeded = 1;
  s.next = next_;
  for (int i = 0; i < kN; ++i) s.state[i] = state_[i];
  s.next_double = next_double_normal.value_or(0);
  s.next_float = next_float_normal.value_or(0);
  s.has_double = next_double_normal.has_value();
  s.has_float = next_float_normal.has_value();
  std::memcpy(out, &s, sizeof s);
}

bool Mt19937Generator::set_state(const uint8_t* bytes, size_t size) {
  PackedState s;
  if (size != sizeof s) return false;
  std::memcpy(&s, bytes, sizeof s);
  bool sound = s.seeded == 1 && s.left >= 1 && s.left <= kN && s.next <= kN &&
               (s.left == 1 || s.next + static_cast<uint64_t>(s.left) == kN + 1u);
  for (uint64_t word : s.state) sound &= word <= UINT32_MAX;
  if (!sound) return false;
  seed_ = s.seed;
  philox_offset_ = 0;
  next_double_normal.reset();
  next_float_normal.reset();
  if (s.has_double) next_double_normal = s.next_double;
  if (s.has_float) next_float_normal = s.next_float;
  left_ = s.left;
  next_ = static_cast<uint32_t>(s.next);
  for (int i = 0; i < kN; ++i) state_[i] = static_cast<uint32_t>(s.state[i]);
  return true;
}

}  // namespace tessera
