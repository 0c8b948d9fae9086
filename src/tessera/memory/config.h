// How the allocator behaves, from PYTORCH_CUDA_ALLOC_CONF (also PYTORCH_ALLOC_CONF) and
// PYTORCH_NO_CUDA_MEMORY_CACHING.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace tessera::memory {

struct Config {
  bool caching = true;     // false: one allocation of the driver's for each tensor
  bool expandable = true;  // segments grow page by page where the device can
  size_t max_split = SIZE_MAX;
  double gc_threshold = 0;       // 0: off
  size_t roundup_divisions = 0;  // of a power of two; 0: sizes are not rounded so
  double fraction = 1;
};

// Raises a ValueError that names an option it does not know, or a value it cannot read.
Config parse_config(const std::string& text);
// What the environment says, read once.
const Config& config();

// `bytes` rounded as roundup_power2_divisions asks.
size_t round_up_divisions(size_t bytes, size_t divisions);

}  // namespace tessera::memory
