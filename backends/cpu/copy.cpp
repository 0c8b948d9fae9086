// Note [How a copy runs]
// Dimensions are put in the order of the target's memory, and neighbours that are one run in both
// are joined. Then it is one of
//   runs    the innermost dimension is dense in both: runs are copied as bytes;
//   blocks  the source is denser along another dimension than the target: squares of the two
//           dimensions, so that cache lines of both are used whole; transposed in registers where
//           both are dense;
//   rows    anything else: element by element along the innermost dimension.
// Of short runs and rows a task takes many, along the next dimension out.
// Large targets are written past the caches, whole lines at a time; transposed blocks whose lines
// do not begin where the target's do are made in a buffer first.
#include "copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "stream_store.h"
#include "strided.h"
#include "thread_pool.h"
#include "transpose.h"

namespace tessera::cpu {

namespace {

// Columns of a transposed block.
constexpr int64_t kBlockCols = 128;
// The same where it is made in a buffer: lines at both ends are written in parts, which is slow.
constexpr int64_t kStagedCols = 512;
constexpr int64_t kSerialBytes = 128 * 1024;
// Runs and rows below this many bytes are taken together.
constexpr int64_t kShort = 1024;
// Transposed targets from this size on are streamed: their lines are far apart, and each would be
// read before it is written.
constexpr int64_t kStreamTransposed = 8 * 1024 * 1024;

struct Copy {
  int n = 0;
  int64_t sizes[kMaxDims], ds[kMaxDims], ss[kMaxDims];
  char* dst;
  const char* src;
  int64_t item;
  int64_t numel = 1;

  void add(int64_t size, int64_t d, int64_t s) {
    int at = n++;
    for (; at > 0 && std::abs(ds[at - 1]) < std::abs(d); --at) {
      sizes[at] = sizes[at - 1];
      ds[at] = ds[at - 1];
      ss[at] = ss[at - 1];
    }
    sizes[at] = size;
    ds[at] = d;
    ss[at] = s;
    numel *= size;
  }
  void join() {
    int m = 0;
    for (int i = 1; i < n; ++i) {
      if (ds[m] == ds[i] * sizes[i] && ss[m] == ss[i] * sizes[i]) {
        sizes[m] *= sizes[i];
      } else {
        ++m;
        sizes[m] = sizes[i];
      }
      ds[m] = ds[i];
      ss[m] = ss[i];
    }
    n = std::min(n, m + 1);
  }

  // Addresses of point number i of the dimensions other than a and b.
  void locate(int64_t i, int a, int b, char*& d, const char*& s) const {
    int64_t to = 0, from = 0;
    for (int k = n - 1; k >= 0; --k) {
      if (k == a || k == b) continue;
      const int64_t c = i % sizes[k];
      i /= sizes[k];
      to += c * ds[k];
      from += c * ss[k];
    }
    d = dst + to * item;
    s = src + from * item;
  }

  int64_t bytes() const { return numel * item; }

  void run() {
    const int inner = n - 1;
    if (ds[inner] == 1 && ss[inner] == 1) return runs();
    int other = -1;
    for (int d = 0; d < inner; ++d)
      if (ss[d] != 0 && sizes[d] >= 4 &&
          (other < 0 ? std::abs(ss[d]) < std::abs(ss[inner])
                     : std::abs(ss[d]) < std::abs(ss[other])))
        other = d;
    if (other >= 0 && sizes[inner] > 1) return blocks(other);
    rows();
  }

  // Calls f(to, from, rows) for pieces of the dimension next to the innermost one, which is short.
  template <class F>
  void each_stripe(F f) const {
    const int inner = n - 1, next = n - 2;
    const int64_t rows = sizes[next], width = sizes[inner] * item;
    const int64_t most = std::max<int64_t>(1, kSerialBytes / 2 / width);
    const int64_t pieces = (rows + most - 1) / most;
    const int64_t grain = std::max<int64_t>(1, kSerialBytes / 2 / (std::min(most, rows) * width));
    parallel_for(0, numel / (rows * sizes[inner]) * pieces, grain, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        char* d;
        const char* s;
        locate(t / pieces, inner, next, d, s);
        const int64_t i = t % pieces * most;
        f(d + i * ds[next] * item, s + i * ss[next] * item, std::min(most, rows - i));
      }
    });
  }

  // Runs of bytes; long ones are cut, short ones taken several at a time.
  void runs() {
    const int64_t length = sizes[n - 1] * item, count = numel / sizes[n - 1];
    if (n > 1 && length < kShort) {
      const int64_t to = ds[n - 2] * item, from = ss[n - 2] * item;
      return each_stripe([&](char* d, const char* s, int64_t rows) {
        for (int64_t r = 0; r < rows; ++r)
          std::memcpy(d + r * to, s + r * from, static_cast<size_t>(length));
      });
    }
    const bool stream = 2 * bytes() > streaming_bytes();
    const int64_t pieces = std::max<int64_t>(1, length / kSerialBytes);
    const int64_t piece = ((length + pieces - 1) / pieces + 63) & ~int64_t{63};
    const int64_t grain = std::max<int64_t>(1, kSerialBytes / std::min(piece, length));
    parallel_for(0, count * pieces, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        char* d;
        const char* s;
        locate(i / pieces, n - 1, -1, d, s);
        const int64_t from = i % pieces * piece, to = std::min(length, from + piece);
        if (from >= to) continue;
        const size_t bytes = static_cast<size_t>(to - from);
        stream ? stream_copy(d + from, s + from, bytes)
               : void(std::memcpy(d + from, s + from, bytes));
      }
      if (stream) stream_fence();
    });
  }

  // Blocks of the innermost dimension and `other`, along which the source is denser: one line of
  // the source's memory by many of its rows. A short side leaves room for more of the other one.
  void blocks(int other) {
    const int inner = n - 1;
    const int64_t rows = sizes[other], cols = sizes[inner];
    const int64_t line = std::max<int64_t>(8, 64 / item);
    const bool dense = ds[inner] == 1 && ss[other] == 1;
    const bool stream = dense && bytes() >= kStreamTransposed && cols * item >= 128;
    bool whole_lines = stream && reinterpret_cast<uintptr_t>(dst) % 64 == 0 && item <= 8;
    for (int d = 0; d < inner; ++d) whole_lines &= ds[d] * item % 64 == 0;
    const int64_t most = stream && !whole_lines ? kStagedCols : kBlockCols;
    const int64_t bc = std::min(cols, std::max(most, most * line / rows));
    const int64_t br = std::min(rows, std::max(line, most * line / bc));
    const int64_t down = (rows + br - 1) / br, right = (cols + bc - 1) / bc;
    const int64_t planes = numel / (rows * cols);
    const int64_t grain = std::max<int64_t>(1, kSerialBytes / (br * bc * item));
    parallel_for(0, planes * down * right, grain, [&](int64_t begin, int64_t end) {
      alignas(64) char buffer[kStagedCols * 128];
      for (int64_t t = begin; t < end; ++t) {
        const int64_t i = t % down * br, j = t / down % right * bc;
        char* d;
        const char* s;
        locate(t / (down * right), inner, other, d, s);
        d += (i * ds[other] + j * ds[inner]) * item;
        s += (i * ss[other] + j * ss[inner]) * item;
        const int64_t m = std::min(br, rows - i), k = std::min(bc, cols - j);
        const size_t size = static_cast<size_t>(item);
        if (!dense) {
          move_elements(d, ds[other], ds[inner], s, ss[other], ss[inner], m, k);
        } else if (whole_lines || !stream) {
          transpose(d, ds[other], s, ss[inner], m, k, size, whole_lines);
        } else {
          transpose(buffer, k, s, ss[inner], m, k, size);
          for (int64_t r = 0; r < m; ++r)
            stream_copy(d + r * ds[other] * item, buffer + r * k * item,
                        static_cast<size_t>(k) * size);
        }
      }
      if (stream) stream_fence();
    });
  }

  void rows() {
    const int inner = n - 1;
    const int64_t cols = sizes[inner], count = numel / cols;
    if (n > 1 && cols * item < kShort)
      return each_stripe([&](char* d, const char* s, int64_t rows) {
        move_elements(d, ds[n - 2], ds[inner], s, ss[n - 2], ss[inner], rows, cols);
      });
    const int64_t pieces = std::max<int64_t>(1, cols * item / kSerialBytes);
    const int64_t piece = (cols + pieces - 1) / pieces;
    const int64_t grain = std::max<int64_t>(1, kSerialBytes / 2 / (piece * item));
    parallel_for(0, count * pieces, grain, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        char* d;
        const char* s;
        locate(t / pieces, inner, -1, d, s);
        const int64_t from = t % pieces * piece, k = std::min(piece, cols - from);
        if (k <= 0) continue;
        move_elements(d + from * ds[inner] * item, 0, ds[inner], s + from * ss[inner] * item, 0,
                      ss[inner], 1, k);
      }
    });
  }

  template <class U>
  static void move_as(char* d_, int64_t dr, int64_t dc, const char* s_, int64_t sr, int64_t sc,
                      int64_t rows, int64_t cols) {
    U* d = reinterpret_cast<U*>(d_);
    const U* s = reinterpret_cast<const U*>(s_);
    if (sc == 0 && dc == 1) {
      for (int64_t i = 0; i < rows; ++i) std::fill_n(d + i * dr, cols, s[i * sr]);
    } else if (sc == -1 && dc == 1) {  // a step that the compiler knows: it turns whole vectors
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < cols; ++j) d[i * dr + j] = s[i * sr - j];
    } else if (rows == 1 || std::abs(sc) <= std::abs(sr)) {
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < cols; ++j) d[i * dr + j * dc] = s[i * sr + j * sc];
    } else {
      for (int64_t j = 0; j < cols; ++j)
        for (int64_t i = 0; i < rows; ++i) d[i * dr + j * dc] = s[i * sr + j * sc];
    }
  }
  void move_elements(char* d, int64_t dr, int64_t dc, const char* s, int64_t sr, int64_t sc,
                     int64_t rows, int64_t cols) const {
    switch (item) {
      case 1:
        return move_as<uint8_t>(d, dr, dc, s, sr, sc, rows, cols);
      case 2:
        return move_as<uint16_t>(d, dr, dc, s, sr, sc, rows, cols);
      case 4:
        return move_as<uint32_t>(d, dr, dc, s, sr, sc, rows, cols);
      case 8:
        return move_as<uint64_t>(d, dr, dc, s, sr, sc, rows, cols);
      default:
        return move_as<unsigned __int128>(d, dr, dc, s, sr, sc, rows, cols);
    }
  }
};

}  // namespace

void copy_strided(void* dst, const int64_t* dst_strides, const void* src,
                  const int64_t* src_strides, int ndim, const int64_t* sizes,
                  size_t itemsize) noexcept {
  Copy c;
  c.dst = static_cast<char*>(dst);
  c.src = static_cast<const char*>(src);
  c.item = static_cast<int64_t>(itemsize);
  for (int d = 0; d < ndim; ++d) {
    if (sizes[d] == 0) return;
    if (sizes[d] != 1) c.add(sizes[d], dst_strides[d], src_strides[d]);
  }
  if (c.n == 0) c.add(1, 1, 1);
  c.join();
  c.run();
}

void copy_dense(void* dst, const KernelTensor& src) noexcept {
  int64_t strides[kMaxDims], step = 1;
  for (int d = src.ndim - 1; d >= 0; --d) {
    strides[d] = step;
    step *= src.sizes[d];
  }
  copy_strided(dst, strides, src.data, src.strides, src.ndim, src.sizes, itemsize(src.dtype));
}

}  // namespace tessera::cpu
