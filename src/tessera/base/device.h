// Where a tensor lives.
#pragma once
#include <cstdint>
#include <string>

#include "tessera/base/error.h"

namespace tessera {

// kMeta has shapes and no data: everything is checked and nothing computed.
enum class DeviceType : uint8_t { kCPU, kCUDA, kMeta };

struct Device {
  DeviceType type = DeviceType::kCPU;
  int16_t index = 0;  // always 0 for the CPU

  constexpr bool is_cpu() const { return type == DeviceType::kCPU; }
  constexpr bool is_cuda() const { return type == DeviceType::kCUDA; }
  constexpr bool is_meta() const { return type == DeviceType::kMeta; }
  constexpr bool operator==(const Device&) const = default;
};

// "cpu" or "cuda:1".
void append(std::string& out, Device d);
// Reads "cpu", "cuda", "cuda:1". A bare "cuda" gives index -1: the current device.
Device parse_device(const std::string& text);

}  // namespace tessera
