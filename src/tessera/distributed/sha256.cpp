#include "tessera/distributed/sha256.h"

#include <sys/random.h>

#include <bit>
#include <cmath>

#include "tessera/base/error.h"

namespace tessera::distributed {

namespace {

// The first 32 bits of the fractional parts of roots of the first primes.
struct Constants {
  uint32_t cube[64], square[8];
  Constants() {
    int found = 0;
    for (uint32_t n = 2; found < 64; ++n) {
      bool prime = true;
      for (uint32_t d = 2; d * d <= n; ++d) prime = prime && n % d;
      if (!prime) continue;
      if (found < 8) square[found] = fraction(std::sqrt(static_cast<long double>(n)));
      cube[found++] = fraction(std::cbrt(static_cast<long double>(n)));
    }
  }
  static uint32_t fraction(long double root) {
    return static_cast<uint32_t>((root - std::floor(root)) * 4294967296.0L);
  }
};

void add_block(uint32_t (&h)[8], const uint8_t* p, const Constants& k) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i, p += 4)
    w[i] = uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | p[3];
  for (int i = 16; i < 64; ++i) {
    uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + w[i - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
  }
  uint32_t v[8];
  for (int i = 0; i < 8; ++i) v[i] = h[i];
  for (int i = 0; i < 64; ++i) {
    uint32_t t1 = v[7] + (std::rotr(v[4], 6) ^ std::rotr(v[4], 11) ^ std::rotr(v[4], 25)) +
                  ((v[4] & v[5]) ^ (~v[4] & v[6])) + k.cube[i] + w[i];
    uint32_t t2 = (std::rotr(v[0], 2) ^ std::rotr(v[0], 13) ^ std::rotr(v[0], 22)) +
                  ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
    for (int j = 7; j > 0; --j) v[j] = v[j - 1];
    v[4] += t1;
    v[0] = t1 + t2;
  }
  for (int i = 0; i < 8; ++i) h[i] += v[i];
}

}  // namespace

Digest sha256(std::string_view data) {
  static const Constants constants;
  uint32_t h[8];
  for (int i = 0; i < 8; ++i) h[i] = constants.square[i];
  std::string all(data);
  all.push_back('\x80');
  all.resize((all.size() + 8 + 63) / 64 * 64 - 8);
  for (int i = 7; i >= 0; --i)
    all.push_back(static_cast<char>(uint64_t{data.size()} * 8 >> (8 * i) & 0xff));
  for (size_t at = 0; at < all.size(); at += 64)
    add_block(h, reinterpret_cast<const uint8_t*>(all.data()) + at, constants);
  Digest out;
  for (int i = 0; i < 32; ++i) out[i] = static_cast<uint8_t>(h[i / 4] >> (24 - i % 4 * 8));
  return out;
}

Digest hmac_sha256(std::string_view key, std::string_view data) {
  std::string block(key);
  if (block.size() > 64) {
    Digest d = sha256(key);
    block.assign(d.begin(), d.end());
  }
  block.resize(64);
  std::string inner, outer;
  for (char c : block) {
    inner.push_back(static_cast<char>(c ^ 0x36));
    outer.push_back(static_cast<char>(c ^ 0x5c));
  }
  inner += data;
  Digest d = sha256(inner);
  outer.append(d.begin(), d.end());
  return sha256(outer);
}

bool same_digest(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  int different = 0;
  for (size_t i = 0; i < a.size(); ++i) different |= a[i] ^ b[i];
  return different == 0;
}

std::string random_bytes(size_t n) {
  std::string out(n, '\0');
  size_t at = 0;
  while (at < n) {
    ssize_t got = getrandom(out.data() + at, n - at, 0);
    TS_CHECK(got > 0, "the system gives no random numbers");
    at += static_cast<size_t>(got);
  }
  return out;
}

std::string hex(std::string_view bytes) {
  std::string out;
  for (unsigned char c : bytes) {
    out += "0123456789abcdef"[c >> 4];
    out += "0123456789abcdef"[c & 15];
  }
  return out;
}

}  // namespace tessera::distributed
