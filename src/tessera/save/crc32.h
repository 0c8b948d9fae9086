// The checksum of zip files.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tessera::files {

// Of `n` more bytes after those whose checksum is `before`.
uint32_t crc32(const void* data, size_t n, uint32_t before = 0);
// The same without the processor's carry-less products; what the tests compare with.
uint32_t crc32_by_table(const void* data, size_t n, uint32_t before = 0);

}  // namespace tessera::files
