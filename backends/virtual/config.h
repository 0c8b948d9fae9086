// What the environment asks for.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tessera::vgpu {

struct Config {
  int count = 0;
  std::vector<int> numbers;  // of each device, as TESSERA_VIRTUAL_GPU counts them
  int64_t bytes = 0;         // of each device
  // Bytes per nanosecond (GB/s); 0 is as fast as the host goes.
  double h2d = 0;
  double d2h = 0;
  double mem = 0;
  bool protect = false;
  std::string error;  // in words, when count is 0
};

// "2x2GiB", "2GiB", "1x512MiB", "1073741824": count x size.
bool parse_devices(const char* text, int* count, int64_t* bytes);
// "h2d=12,d2h=12,mem=200", any of them, in GB/s.
bool parse_bandwidth(const char* text, Config* out);

// From TESSERA_VIRTUAL_GPU, CUDA_VISIBLE_DEVICES, TESSERA_VIRTUAL_BANDWIDTH and
// TESSERA_VIRTUAL_PROTECT.
Config read_config();

}  // namespace tessera::vgpu
