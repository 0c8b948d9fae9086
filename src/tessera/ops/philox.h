// Philox4x32-10: the counter-based random numbers of CUDA devices, real and virtual, and of the CPU
// where no Mersenne Twister is asked for. Free of includes, so that this text is also legal input
// for a run-time CUDA compiler.
//
// Note [Which random word an element gets]
// With 64-bit `seed` and 64-bit `offset` (counted in blocks of four 32-bit words):
//   block(k)  = philox4x32_10(counter = {lo(offset + k), hi(offset + k), 0, 0},
//                             key     = {lo(seed), hi(seed)})
//   word32(i) = block(i / 4)[i % 4]
//   word64(i) = block(i / 2)[2 * (i % 2)] << 32 | block(i / 2)[2 * (i % 2) + 1]
// i is the element's row-major number in the output. Then
//   uniform    float: u = (word32(i) >> 8) * 2^-24; float16: (>> 21) * 2^-11; bfloat16: (>> 24) *
//              2^-8; double: (word64(i) >> 11) * 2^-53. Value u * (hi - lo) + lo, computed in float
//              (double for double), then rounded to the dtype.
//   normal     elements 2j and 2j + 1 share w1 = word(2j), w2 = word(2j + 1) (word64 for double,
//              word32 for all others); u1 = (w1 >> 8) * 2^-24 + 2^-24 in (0, 1], u2 = (w2 >> 8) *
//              2^-24 (double: >> 11 and 2^-53); r = sqrt(-2 log(u1)), t = 2 pi u2; element 2j is
//              r cos(t), 2j + 1 is r sin(t); value z * std + mean, then rounded.
//   bernoulli  1 where word32(i) * 2^-32 < p (in double), else 0.
//   randperm   the places i in the order of word64(i), the smaller place first where two are equal.
//   multinomial, normal_each: unit(i) = (word64(i) & (2^53 - 1)) * 2^-53. With replacement number k
//              of row r takes unit(r * numbers + k); without, or for one number, place j of row r
//              takes unit(r * places + j). normal_each takes unit(2i) and unit(2i + 1).
//   poisson    needs an unknown number of words, so each element has a stream of its own: block j
//   of
//              element i has the counter {lo(offset + i), hi(offset + i), 1 + j, 0}.
//   random_int low + word32(i) % (high - low) if high - low < 2^32, else low + word64(i) %
//              (high - low); the subtraction and the sum wrap as unsigned 64-bit.
// An operation over n elements takes philox_blocks(n, wide) blocks: the caller adds that to offset.
// (multinomial: n is the number of units; normal_each and poisson take n blocks.)
#pragma once
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define TS_PHILOX_FN static __host__ __device__ __forceinline__
#else
#define TS_PHILOX_FN static inline __attribute__((always_inline, unused))
#endif

namespace tessera {

struct PhiloxBlock {
  unsigned int w[4];
};

// Where the numbers of a launch come from. Of a captured one, `state` is a seed and an offset in
// the device's memory, other ones at each replay, and `offset` is what earlier launches of the
// graph took.
struct PhiloxSource {
  unsigned long long seed, offset;
  const unsigned long long* state;
};
TS_PHILOX_FN unsigned long long philox_seed(const PhiloxSource& s) {
  return s.state ? s.state[0] : s.seed;
}
TS_PHILOX_FN unsigned long long philox_offset(const PhiloxSource& s) {
  return s.state ? s.state[1] + s.offset : s.offset;
}

TS_PHILOX_FN PhiloxBlock philox_block(unsigned long long seed, unsigned long long counter,
                                      unsigned int stream = 0) {
  unsigned int c0 = (unsigned int)counter, c1 = (unsigned int)(counter >> 32), c2 = stream, c3 = 0;
  unsigned int k0 = (unsigned int)seed, k1 = (unsigned int)(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    unsigned long long p0 = (unsigned long long)c0 * 0xD2511F53u;
    unsigned long long p1 = (unsigned long long)c2 * 0xCD9E8D57u;
    unsigned int n0 = (unsigned int)(p1 >> 32) ^ c1 ^ k0;
    unsigned int n2 = (unsigned int)(p0 >> 32) ^ c3 ^ k1;
    c1 = (unsigned int)p1;
    c3 = (unsigned int)p0;
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  PhiloxBlock out;
  out.w[0] = c0;
  out.w[1] = c1;
  out.w[2] = c2;
  out.w[3] = c3;
  return out;
}

TS_PHILOX_FN unsigned int philox_word32(unsigned long long seed, unsigned long long offset,
                                        unsigned long long i) {
  return philox_block(seed, offset + i / 4).w[i % 4];
}

TS_PHILOX_FN unsigned long long philox_word64(unsigned long long seed, unsigned long long offset,
                                              unsigned long long i) {
  PhiloxBlock b = philox_block(seed, offset + i / 2);
  return ((unsigned long long)b.w[2 * (i % 2)] << 32) | b.w[2 * (i % 2) + 1];
}

TS_PHILOX_FN double philox_unit(unsigned long long seed, unsigned long long offset,
                                unsigned long long i) {
  return (double)(philox_word64(seed, offset, i) & 0x1fffffffffffffull) * 0x1p-53;
}

// Blocks that n elements take; `wide` where the rule above reads 64-bit words. The odd partner of a
// last normal number lies in the same block, so normals need no more than the others.
TS_PHILOX_FN unsigned long long philox_blocks(unsigned long long n, bool wide) {
  return wide ? (n + 1) / 2 : (n + 3) / 4;
}

}  // namespace tessera
