#include "config.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "visible.h"

namespace tessera::vgpu {

namespace {

constexpr int kMaxDevices = 64;

bool parse_size(const char* text, int64_t* bytes) {
  char* end = nullptr;
  double value = std::strtod(text, &end);
  if (end == text || !std::isfinite(value)) return false;
  struct Unit {
    const char* name;
    double bytes;
  };
  constexpr Unit units[] = {
      {"", 1}, {"B", 1}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}};
  for (const Unit& unit : units) {
    if (std::strcmp(end, unit.name) != 0) continue;
    value *= unit.bytes;
    if (value < 1 || value > 1e15) return false;
    *bytes = static_cast<int64_t>(value);
    return true;
  }
  return false;
}

}  // namespace

bool parse_devices(const char* text, int* count, int64_t* bytes) {
  *count = 1;
  if (const char* x = std::strchr(text, 'x')) {
    char* end = nullptr;
    const long n = std::strtol(text, &end, 10);
    if (end != x || n < 1 || n > kMaxDevices) return false;
    *count = static_cast<int>(n);
    text = x + 1;
  }
  return parse_size(text, bytes);
}

bool parse_bandwidth(const char* text, Config* out) {
  while (*text) {
    double* target = !std::strncmp(text, "h2d=", 4)   ? &out->h2d
                     : !std::strncmp(text, "d2h=", 4) ? &out->d2h
                     : !std::strncmp(text, "mem=", 4) ? &out->mem
                                                      : nullptr;
    if (!target) return false;
    char* end = nullptr;
    *target = std::strtod(text + 4, &end);
    if (end == text + 4 || !(*target > 0)) return false;
    if (*end != ',' && *end) return false;
    text = *end ? end + 1 : end;
  }
  return true;
}

Config read_config() {
  Config c;
  const char* devices = std::getenv("TESSERA_VIRTUAL_GPU");
  if (!devices || !*devices) {
    c.error = "no virtual GPU was asked for: set TESSERA_VIRTUAL_GPU, for example to 2x2GiB";
    return c;
  }
  if (!parse_devices(devices, &c.count, &c.bytes)) {
    c.count = 0;
    c.error = std::string("TESSERA_VIRTUAL_GPU=") + devices +
              " is not understood: give a number of devices and a size, as in 2x2GiB or 512MiB";
    return c;
  }
  const char* bandwidth = std::getenv("TESSERA_VIRTUAL_BANDWIDTH");
  if (bandwidth && !parse_bandwidth(bandwidth, &c)) {
    c.count = 0;
    c.error = std::string("TESSERA_VIRTUAL_BANDWIDTH=") + bandwidth +
              " is not understood: give GB/s, as in h2d=12,d2h=12,mem=200";
  }
  if (c.count > 0) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    c.numbers = visible_devices(visible, c.count);
    c.count = static_cast<int>(c.numbers.size());
    if (c.count == 0)
      c.error = std::string("CUDA_VISIBLE_DEVICES is \"") + visible +
                "\", which hides every device of TESSERA_VIRTUAL_GPU=" + devices;
  }
  const char* protect = std::getenv("TESSERA_VIRTUAL_PROTECT");
  c.protect = protect && *protect && std::strcmp(protect, "0") != 0;
  return c;
}

}  // namespace tessera::vgpu
