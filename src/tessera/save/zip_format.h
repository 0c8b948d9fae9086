// Numbers of the zip format.
#pragma once
#include <cstdint>

namespace tessera::files::zip {

inline constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50,
                          kEnd64 = 0x06064b50, kLocator64 = 0x07064b50, kDescriptor = 0x08074b50;
inline constexpr uint64_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kEnd64Size = 56,
                          kLocator64Size = 20;
// The most a data descriptor takes: signature, checksum, two sizes of 64 bits.
inline constexpr uint64_t kMostDescriptor = 24;
inline constexpr uint32_t kMax32 = 0xffffffff;
inline constexpr uint16_t kMax16 = 0xffff;
inline constexpr uint16_t kExtra64 = 1;
inline constexpr uint16_t kExtraPadding = 0x4246;  // "FB", as PyTorch's writer has it
inline constexpr uint16_t kFlagEncrypted = 1, kFlagDescriptor = 8, kFlagUtf8 = 0x800;
inline constexpr uint32_t kDate = 0x00210000;  // 1 January 1980: the same bytes at any time

}  // namespace tessera::files::zip
