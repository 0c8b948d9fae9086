// The CPU's random generator: PyTorch's Mersenne Twister with its seeding and its cached normal
// samples, so that the same seed gives the same numbers; and the Philox seed and offset that
// counter-based operators draw from.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include "tessera/base/mutex.h"

namespace tessera {

// Nothing here locks. An operator holds `mutex` while it draws (GeneratorLock), so that the numbers
// of one operator are consecutive. Every generator is locked while the process forks.
class Mt19937Generator {
 public:
  static constexpr uint64_t kDefaultSeed = 67280421310721u;

  explicit Mt19937Generator(uint64_t seed = kDefaultSeed);
  ~Mt19937Generator();
  Mt19937Generator(const Mt19937Generator&) = delete;
  Mt19937Generator& operator=(const Mt19937Generator&) = delete;

  // Also forgets cached normal samples and sets the Philox offset to 0.
  void manual_seed(uint64_t seed);
  uint64_t seed() const { return seed_; }

  uint32_t random() {
    if (--left_ == 0) refill();
    uint32_t y = state_[next_++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }
  uint64_t random64() {
    uint64_t high = random();
    return (high << 32) | random();
  }

  bool of_cuda = false;  // a generator draws for devices of one kind

  // The second sample of a Box-Muller pair waits here for the next call.
  std::optional<float> next_float_normal;
  std::optional<double> next_double_normal;

  uint64_t philox_seed() const { return seed_; }
  uint64_t philox_offset() const { return philox_offset_; }
  void set_philox_offset(uint64_t offset) { philox_offset_ = offset; }
  // The offset to use now, after taking `blocks` blocks of four words.
  uint64_t take_philox(uint64_t blocks) {
    uint64_t at = philox_offset_;
    philox_offset_ += blocks;
    return at;
  }

  // The whole state as bytes, for get_rng_state and set_rng_state.
  static size_t state_bytes();
  void get_state(uint8_t* out) const;
  // False, and nothing changed, if the bytes are not a state of ours.
  bool set_state(const uint8_t* bytes, size_t size);

  mutable Mutex mutex;

 private:
  friend struct LiveGenerators;
  static constexpr int kN = 624;
  static constexpr int kM = 397;

  static uint32_t twist(uint32_t u, uint32_t v) {
    uint32_t mixed = (u & 0x80000000u) | (v & 0x7fffffffu);
    return (mixed >> 1) ^ ((v & 1u) ? 0x9908b0dfu : 0u);
  }
  // Inline, so that backends draw without linking the core.
  void refill() {
    uint32_t* p = state_;
    for (int j = kN - kM; j > 0; --j, ++p) *p = p[kM] ^ twist(p[0], p[1]);
    for (int j = kM - 1; j > 0; --j, ++p) *p = p[kM - kN] ^ twist(p[0], p[1]);
    *p = p[kM - kN] ^ twist(p[0], state_[0]);
    left_ = kN;
    next_ = 0;
  }

  uint64_t seed_ = 0;
  uint64_t philox_offset_ = 0;
  int left_ = 1;
  uint32_t next_ = 0;
  uint32_t state_[kN];
  Mt19937Generator* previous_ = nullptr;  // in the list of live generators
  Mt19937Generator* next_live_ = nullptr;
};

}  // namespace tessera
