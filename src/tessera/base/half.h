// float16 and bfloat16 to and from float, one element at a time, round to nearest even. The
// backends have vector forms of their own; these give the same bits.
#pragma once
#include <bit>
#include <cstdint>

namespace tessera {

constexpr float half_to_float(uint16_t h) {
  uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  uint32_t exp = (h >> 10) & 31u;
  uint32_t man = h & 0x3ffu;
  if (exp == 31) {  // infinity, or a NaN made quiet as the hardware does
    uint32_t quiet = man ? 0x400000u : 0;
    return std::bit_cast<float>(sign | 0x7f800000u | (man << 13) | quiet);
  }
  if (exp == 0) {
    float v = static_cast<float>(man) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(v) | sign);
  }
  return std::bit_cast<float>(sign | ((exp + 112) << 23) | (man << 13));
}

constexpr uint16_t float_to_half(float f) {
  uint32_t x = std::bit_cast<uint32_t>(f);
  uint16_t sign = static_cast<uint16_t>((x >> 16) & 0x8000u);
  x &= 0x7fffffffu;
  if (x > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((x >> 13) & 0x3ffu));
  if (x >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds past 65504
  if (x < 0x38800000u) {  // below the smallest normal: let float addition round it
    float magic = std::bit_cast<float>(x) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(magic) - 0x3f000000u));
  }
  uint32_t odd = (x >> 13) & 1u;
  return static_cast<uint16_t>(sign | ((x - 0x38000000u + 0xfffu + odd) >> 13));
}

constexpr float bfloat16_to_float(uint16_t b) {
  return std::bit_cast<float>(static_cast<uint32_t>(b) << 16);
}

constexpr uint16_t float_to_bfloat16(float f) {
  uint32_t x = std::bit_cast<uint32_t>(f);
  if ((x & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(0x7fc0u);
  return static_cast<uint16_t>((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
}

}  // namespace tessera
