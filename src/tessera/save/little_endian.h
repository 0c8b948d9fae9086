// Numbers in files: little-endian, at any address.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

namespace tessera::files {

static_assert(std::endian::native == std::endian::little, "files are read and written in place");

template <class T>
T get(const uint8_t* at) {
  T v;
  std::memcpy(&v, at, sizeof v);
  return v;
}
template <class T>
void put(std::string& out, T v) {
  out.append(reinterpret_cast<const char*>(&v), sizeof v);
}

}  // namespace tessera::files
