// Values combined in the order of their indices. The places that indices name are brought into
// order, so that values of one place stand side by side; pieces of them are combined by a thread
// for each element of a row, and what goes on from one piece to the next is combined after that.
#include <numeric>

#include "indexed.h"
#include "sorting.h"

namespace tessera::cuda {
namespace {

// Values of a piece: long ones where there are many, as each piece keeps two sums aside.
constexpr int64_t kPiece = 32, kLongPiece = 256, kManyThreads = 1 << 23;

// A place as the number of elements in front of it, by `divisor`.
constexpr auto kKeysText = join(kIndexedText, R"(
struct Params { Space space; KEY::S* keys; int64_t none, divisor; };
extern "C" __global__ void __launch_bounds__(256) index_keys(const __grid_constant__ Params p) {
  for (int64_t i = thread(); i < p.space.n; i += threads()) {
    Place x = locate(p.space, (I)i);
    p.keys[i] = (KEY::S)(follow(p.space, x) ? x.tensor / p.divisor : p.none);
  }
})");
constexpr TextKernel kKeys{"index_keys", kKeysText.text};

constexpr auto kPiecesText = join(kCombineText, R"(
typedef T::S S; typedef T::A A;
typedef Vec<S, V> In;
struct Sum { A v[V]; };
struct Params {
  S* tensor; const S* values; const KEY::S* keys; const int64_t* order; Sum* parts;
  int64_t n, row, pieces, divisor, none; Walk<2> rows; Walk<1> points;
};
TS_FN Sum load(const S* at) {
  const In x = *(const In*)at;
  Sum s;
  #pragma unroll
  for (int i = 0; i < V; ++i) s.v[i] = T::ld(x.v[i]);
  return s;
}
TS_FN void fold(Sum& to, const Sum& x) {
  #pragma unroll
  for (int i = 0; i < V; ++i) to.v[i] = combined(to.v[i], x.v[i]);
}
TS_FN void finish(const Params& p, S* to, int64_t key, const Sum& x) {
  if (key == p.none) return;
  S* at = to + key * p.divisor;
  Sum s = x;
  if constexpr (COMBINE != 0) {
    s = load(at);
    fold(s, x);
  }
  In out;
  #pragma unroll
  for (int i = 0; i < V; ++i) out.v[i] = T::st(s.v[i]);
  *(In*)at = out;
}
)");
// What begins before a piece goes to its first part, what begins in it and goes on to its second.
constexpr auto kWithinText = join(kPiecesText.text, R"(
extern "C" __global__ void __launch_bounds__(256) index_pieces(const __grid_constant__ Params p) {
  for (int64_t i = thread(); i < p.pieces * p.row; i += threads()) {
    const int64_t piece = i / p.row, j = i - piece * p.row;
    int64_t o[2];
    offsets(p.rows, j, o);
    const S* values = p.values + o[0];
    S* to = p.tensor + o[1];
    const int64_t first = piece * PIECE, end = first + PIECE < p.n ? first + PIECE : p.n;
    int64_t key = p.keys[first];
    bool earlier = first > 0 && p.keys[first - 1] == key, any = false;
    Sum sum;
    #pragma unroll 1
    for (int64_t s = first; s < end; s += 4) {
      int64_t next[4];
      Sum x[4];
      #pragma unroll
      for (int u = 0; u < 4; ++u)
        if (s + u < end) {
          next[u] = p.keys[s + u];
          x[u] = load(values + offset(p.points, p.order[s + u]));
        }
      #pragma unroll
      for (int u = 0; u < 4; ++u) {
        if (s + u >= end) break;
        if (any && next[u] == key) {
          fold(sum, x[u]);
          continue;
        }
        if (any && earlier) p.parts[piece * 2 * p.row + j] = sum;
        else if (any) finish(p, to, key, sum);
        if (any) earlier = false;
        key = next[u];
        sum = x[u];
        any = true;
      }
    }
    const bool later = end < p.n && p.keys[end] == key;
    if (earlier) p.parts[piece * 2 * p.row + j] = sum;
    else if (later) p.parts[(piece * 2 + 1) * p.row + j] = sum;
    else finish(p, to, key, sum);
  }
})");
constexpr TextKernel kWithin{"index_pieces", kWithinText.text};

constexpr auto kAcrossText = join(kPiecesText.text, R"(
extern "C" __global__ void __launch_bounds__(256) index_joints(const __grid_constant__ Params p) {
  for (int64_t i = thread(); i < p.pieces * p.row; i += threads()) {
    const int64_t piece = i / p.row, j = i - piece * p.row;
    const int64_t first = piece * PIECE;
    int64_t end = first + PIECE;
    if (end >= p.n) continue;
    const int64_t key = p.keys[end];
    if (p.keys[end - 1] != key || (first > 0 && p.keys[first - 1] == key)) continue;
    int64_t o[2];
    offsets(p.rows, j, o);
    Sum sum = p.parts[(piece * 2 + 1) * p.row + j];
    #pragma unroll 1
    for (int64_t other = piece + 1; end < p.n && p.keys[end] == key; ++other, end += PIECE)
      fold(sum, p.parts[other * 2 * p.row + j]);
    finish(p, p.tensor + o[1], key, sum);
  }
})");
constexpr TextKernel kAcross{"index_joints", kAcrossText.text};

}  // namespace

int64_t Indexed::divisor() const {
  int64_t g = 0;
  for (int i = 0; i < nd_; ++i)
    if (!dims_[i].free(count_)) g = std::gcd(g, dims_[i].tensor);
  for (int k = 0; k < count_; ++k) g = std::gcd(g, of_[k].stride);
  return g == 0 ? 1 : g;
}

int64_t Indexed::span(int64_t divisor) const {
  int64_t last = 0;
  for (int i = 0; i < nd_; ++i)
    if (!dims_[i].free(count_)) last += (dims_[i].size - 1) * dims_[i].tensor;
  for (int k = 0; k < count_; ++k) last += (of_[k].size - 1) * of_[k].stride;
  return last / divisor + 1;
}

template <int W>
Status Indexed::make_keys(Device& d, CUstream stream, int64_t divisor, int64_t none, DType key,
                          CUdeviceptr keys) const {
  struct {
    IndexedSpace<W> space;
    CUdeviceptr keys;
    int64_t none, divisor;
  } p{{d.slot_on_device, points(), error_, {}, {}}, keys, none, divisor};
  for (int i = 0; i < nd_; ++i) {
    if (dims_[i].free(count_)) continue;
    int64_t s[W] = {0, dims_[i].tensor};
    for (int k = 0; k < count_; ++k) s[2 + k] = dims_[i].index[k];
    TS_TRY(p.space.walk.add(dims_[i].size, s));
  }
  for (int k = 0; k < count_; ++k) p.space.of[k] = of_[k];
  const int64_t nd = p.space.walk.nd;
  return launch_text(d, stream, kKeys,
                     {def("KEY", key), def("INDEX", index_dtype_), def("W", W),
                      def("INDICES", count_), def("ND", nd <= 3 ? nd : 0),
                      def("NARROW", p.space.narrow(count_)), def("NEGATIVE", negative_)},
                     {fill_blocks(d, p.space.n), 256}, &p);
}

Status Indexed::combine_in_order(Device& d, CUstream stream, Combine how) const {
  const int64_t n = points(), by = divisor(), none = span(by);
  if (n >= int64_t{1} << 32)
    return fail(Code::kUnsupported, "more than 2^32 indices are not implemented for CUDA");
  const DType key = none <= INT32_MAX ? DType::kInt32 : DType::kInt64;
  Parts sizes;
  const size_t at_keys = sizes.add(n, itemsize(key)), at_sorted = sizes.add(n, itemsize(key)),
               at_order = sizes.add(n, sizeof(int64_t));
  Scratch memory(d, stream);
  TS_TRY(memory.take(sizes.bytes));
  const CUdeviceptr keys = memory.address() + at_keys;
  TS_TRY(count_ == 1 ? make_keys<3>(d, stream, by, none, key, keys)
                     : make_keys<2 + kMaxIndices>(d, stream, by, none, key, keys));
  TS_TRY(sort_rows(d, stream,
                   {key, 1, n, false, part<void>(memory, at_keys), part<void>(memory, at_sorted),
                    part<int64_t>(memory, at_order), n}));

  Walk<2> rows;
  Walk<1> points;
  for (int i = 0; i < nd_; ++i) {
    if (dims_[i].free(count_))
      TS_TRY(rows.add(dims_[i].size, {dims_[i].values, dims_[i].tensor}));
    else
      TS_TRY(points.add(dims_[i].size, {dims_[i].values}));
  }
  // Several elements of a row at a time, where all addresses allow it.
  const int64_t item = static_cast<int64_t>(itemsize(dtype_));
  int64_t v = 1;
  const int last = static_cast<int>(rows.nd) - 1;
  if (last >= 0 && rows.strides[0][last] == 1 && rows.strides[1][last] == 1) {
    uint64_t all = static_cast<uint64_t>(rows.sizes[last]) | static_cast<uint64_t>(by);
    for (int i = 0; i < last; ++i)
      all |= static_cast<uint64_t>(rows.strides[0][i]) | static_cast<uint64_t>(rows.strides[1][i]);
    for (int i = 0; i < points.nd; ++i) all |= static_cast<uint64_t>(points.strides[0][i]);
    all = all * static_cast<uint64_t>(item) | reinterpret_cast<uintptr_t>(values_) |
          reinterpret_cast<uintptr_t>(tensor_);
    const int64_t fits = static_cast<int64_t>(all & (~all + 1));
    v = std::max<int64_t>(1, std::min<int64_t>(fits, 16) / item);
    if (v > 8) v = 8;
    if (v > 1) {
      rows.sizes[last] /= v;
      rows.strides[0][last] = rows.strides[1][last] = v;
    }
  }
  const int64_t row = rows.numel();
  const int64_t piece = n / kPiece * row > kManyThreads ? kLongPiece : kPiece;
  const int64_t pieces = (n + piece - 1) / piece;
  const bool complex = is_complex(dtype_);
  const size_t accumulator = complex                               ? static_cast<size_t>(item)
                             : reg_class(dtype_) == RegClass::kF32 ? 4
                             : reg_class(dtype_) == RegClass::kB8  ? 1
                                                                   : 8;
  Scratch parts(d, stream);
  TS_TRY(parts.take(static_cast<size_t>(pieces * 2 * row * v) * accumulator));
  struct {
    void* tensor;
    const void* values;
    const void* keys;
    const int64_t* order;
    CUdeviceptr parts;
    int64_t n, row, pieces, divisor, none;
    Walk<2> rows;
    Walk<1> points;
  } p{tensor_,
      values_,
      part<void>(memory, at_sorted),
      part<int64_t>(memory, at_order),
      parts.address(),
      n,
      row,
      pieces,
      by,
      none,
      rows,
      points};
  for (const TextKernel* kernel : {&kWithin, &kAcross}) {
    if (kernel == &kAcross && pieces == 1) break;
    TS_TRY(launch_text(d, stream, *kernel,
                       {def("T", dtype_), def("COMBINE", static_cast<int64_t>(how)), def("V", v),
                        def("PIECE", piece), def("KEY", key)},
                       {fill_blocks(d, pieces * row), 256}, &p));
  }
  return ok();
}

}  // namespace tessera::cuda
