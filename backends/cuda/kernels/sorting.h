// Rows of elements in order: what sort, the selections, unique and the choices are made of.
//
// Note [Keys]
// An element is moved as the bits it has and compared by its key: an unsigned number in the order
// of the values, the same for both zeros and for every NaN, which come last. With the place of an
// element as the second key no two are equal, so every way to sort is the one stable sort, and the
// order is that of the CPU's (backends/cpu/packed_keys.h).
#pragma once
#include <algorithm>
#include <array>

#include "../kernels.h"
#include "../text.h"
#include "../walk.h"

namespace tessera::cuda {

// Rows of n elements side by side, sorted; `keep` of each, from number `skip` on, are written, side
// by side too.
struct SortRows {
  DType dtype;
  int64_t rows, n;
  bool descending;
  const void* in;
  void* values;      // of the dtype, or null
  int64_t* indices;  // places in the row, or null
  int64_t keep, skip = 0;
  // Short rows alone: a row is the n elements at these places of a longer one.
  const uint32_t* places = nullptr;
  int64_t source_n = 0;
};
Status sort_rows(Device& d, CUstream stream, const SortRows& s);
// Its three ways: several rows a block, one row a block, several blocks a row. Rows of up to
// kShortRow elements may be sorted by any.
inline constexpr int64_t kShortRow = 2048, kTinyRow = 256;
Status sort_short_rows(Device& d, CUstream stream, const SortRows& s);
Status sort_block_rows(Device& d, CUstream stream, const SortRows& s);
Status sort_long_rows(Device& d, CUstream stream, const SortRows& s);

// A tensor as lines along one dimension, counted in row-major order of the others.
struct Lines {
  int64_t n = 1, stride = 1, lines = 1;
  Walk<1> walk;
  bool side_by_side = true;  // line i begins at element i * n and is dense
};
Status make_lines(const KernelTensor& t, int64_t dim, Lines* out);
// Elements of `bytes` from lines to rows side by side, and back.
Status gather_lines(Device& d, CUstream stream, const Lines& from, const void* in, void* rows,
                    int64_t bytes);
Status scatter_lines(Device& d, CUstream stream, const Lines& to, const void* rows, void* out,
                     int64_t bytes);

// The lines of a tensor where they lie if they are side by side, else gathered.
class DenseLines {
 public:
  DenseLines(Device& d, CUstream stream) : device_(d), stream_(stream), room_(d, stream) {}
  Status take(const KernelTensor& t, int64_t dim);
  const void* data() const { return data_; }
  int64_t n() const { return lines_.n; }
  int64_t rows() const { return lines_.lines; }

 private:
  Device& device_;
  CUstream stream_;
  Lines lines_;
  Scratch room_;
  const void* data_ = nullptr;
};

// Parts of one allocation, each aligned.
struct Parts {
  size_t bytes = 0;
  size_t add(int64_t count, size_t item) {
    const size_t at = bytes;
    bytes += (static_cast<size_t>(count) * item + 255) / 256 * 256;
    return at;
  }
};
template <class T>
T* part(const Scratch& s, size_t at) {
  return reinterpret_cast<T*>(s.address() + at);
}

// For the definitions of a kernel with kKeyText.
enum class KeyKind : int64_t { kUnsigned, kSigned, kFloat };
inline KeyKind key_kind(DType t) {
  if (is_floating(t)) return KeyKind::kFloat;
  return t == DType::kBool || t == DType::kUInt8 ? KeyKind::kUnsigned : KeyKind::kSigned;
}
// The bits of infinity: what is above is no number.
inline int64_t infinity_bits(DType t) {
  switch (t) {
    case DType::kFloat16:
      return 0x7c00;
    case DType::kBFloat16:
      return 0x7f80;
    case DType::kFloat32:
      return 0x7f800000;
    default:
      return 0x7ff0000000000000;
  }
}
#define TS_KEY_DEFS(dtype)                                \
  def_bytes("B", static_cast<int64_t>(itemsize(dtype))),  \
      def("KIND", static_cast<int64_t>(key_kind(dtype))), \
      def("INF", key_kind(dtype) == KeyKind::kFloat ? infinity_bits(dtype) : int64_t{0})
inline constexpr char kKeyText[] = R"(
TS_FN bool is_nan_bits(B x) {
  return KIND == 2 && (B)(x & (B)~((B)1 << (8 * sizeof(B) - 1))) > (B)INF;
}
TS_FN B key_of(B x) {
  const B sign = (B)((B)1 << (8 * sizeof(B) - 1));
  if constexpr (KIND == 2) {
    const B key = x & sign ? (B)~x : (B)(x | sign);
    return is_nan_bits(x) ? (B)~(B)0 : x == sign ? sign : key;
  } else {
    return KIND == 1 ? (B)(x ^ sign) : x;
  }
}
)";
// The sum over the lanes up to this one.
inline constexpr char kWarpSumText[] = R"(
TS_FN unsigned sum_to_lane(unsigned x) {
  #pragma unroll
  for (int by = 1; by < 32; by *= 2) {
    const unsigned y = __shfl_up_sync(0xffffffffu, x, by);
    if ((int)(threadIdx.x & 31) >= by) x += y;
  }
  return x;
}
)";
inline constexpr char kLanesText[] = R"(
// The lanes that have the same digit.
TS_FN unsigned lanes_with(unsigned digit) {
  unsigned same = 0xffffffffu;
  #pragma unroll
  for (int b = 0; b < 8; ++b) {
    const bool bit = digit >> b & 1;
    const unsigned with = __ballot_sync(0xffffffffu, bit);
    same &= bit ? with : ~with;
  }
  return same;
}
)";
// Texts one after another, as one literal.
template <const auto&... texts>
inline constexpr auto kJoined = [] {
  std::array<char, ((sizeof texts - 1) + ...) + 1> all{};
  size_t at = 0;
  auto append = [&](const auto& text) {
    for (size_t i = 0; i + 1 < sizeof text; ++i) all[at++] = text[i];
  };
  (append(texts), ...);
  return all;
}();

// Complex numbers have no order, and places are 32 bits.
Status check_sortable(const KernelTensor& t, int64_t n, const char* name);

}  // namespace tessera::cuda
