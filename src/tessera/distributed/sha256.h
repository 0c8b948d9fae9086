// SHA-256 and HMAC over it (FIPS 180-4, RFC 2104), for the challenge at the door of a store.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::distributed {

using Digest = std::array<uint8_t, 32>;

Digest sha256(std::string_view data);
Digest hmac_sha256(std::string_view key, std::string_view data);
// Takes as long wherever they differ.
bool same_digest(std::string_view a, std::string_view b);
// From the system's source of randomness.
std::string random_bytes(size_t n);
std::string hex(std::string_view bytes);

}  // namespace tessera::distributed
