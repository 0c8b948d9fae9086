// Indexing with tensors: some neighbouring dimensions of a tensor are named by index tensors of one
// shape, the dimensions before and after them are walked whole. index_select and index_add are the
// case of one dimension.
#include <algorithm>
#include <cstring>
#include <new>

#include "index_range.h"
#include "strided.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kTile = 256;
constexpr int64_t kSmall = 1 << 14;  // elements that one thread does alone

// A tensor as [outer, indexed dimensions, inner] and where its pieces lie.
struct Layout {
  const KernelTensor& t;
  const KernelTensor* index;  // one for each indexed dimension
  int before, indexed, after;
  int64_t outer = 1, count, inner = 1, item;
  bool inner_dense = true;
  OffsetWalk outer_walk, inner_walk;

  Layout(const KernelTensor& tensor, int dims_before, int dims_indexed, const KernelTensor* idx)
      : t(tensor),
        index(idx),
        before(dims_before),
        indexed(dims_indexed),
        after(tensor.ndim - dims_before - dims_indexed),
        count(idx[0].numel),
        item(static_cast<int64_t>(itemsize(tensor.dtype))),
        outer_walk(dims_before, tensor.sizes, tensor.strides),
        inner_walk(after, tensor.sizes + dims_before + dims_indexed,
                   tensor.strides + dims_before + dims_indexed) {
    for (int d = 0; d < before; ++d) outer *= t.sizes[d];
    for (int d = t.ndim - 1; d >= before + indexed; --d) {
      if (t.sizes[d] != 1 && t.strides[d] != inner) inner_dense = false;
      inner *= t.sizes[d];
    }
  }
  int64_t outer_offset(int64_t o) const {
    int64_t at;
    outer_walk.offsets(o, 1, &at);
    return at;
  }
  // Offsets of the places that index points [first, first + n) name. With `wrong` they are looked
  // at first: one for each indexed dimension; false where one is not within its range.
  bool places(int64_t first, int64_t n, int64_t* out, WrongIndex* wrong = nullptr) const {
    int64_t room[kTile];
    for (int j = 0; j < indexed; ++j) {
      const int64_t size = t.sizes[before + j], stride = t.strides[before + j];
      const int64_t* v = IndexReader(index[j]).tile(first, n, room);
      if (wrong && !wrong[j].fits(v, n, first)) return false;
      if (j == 0)
        for (int64_t k = 0; k < n; ++k) out[k] = (v[k] < 0 ? v[k] + size : v[k]) * stride;
      else
        for (int64_t k = 0; k < n; ++k) out[k] += (v[k] < 0 ? v[k] + size : v[k]) * stride;
    }
    return true;
  }
  // One past the largest place.
  int64_t span() const {
    int64_t n = 1;
    for (int j = 0; j < indexed; ++j) n += (t.sizes[before + j] - 1) * t.strides[before + j];
    return n;
  }
  char* address(int64_t offset) const { return static_cast<char*>(t.data) + offset * item; }
};

Status check_all(const Layout& l, IndexError error, const int64_t* dims) {
  for (int j = 0; j < l.indexed; ++j) {
    Status s = check_indices(l.index[j], static_cast<int>(dims[j]), l.t.sizes[l.before + j], error);
    if (!s.ok()) return s;
  }
  return {};
}

// The errors of all indexed dimensions, without a place in the heap for the usual few.
class WrongIndices {
 public:
  WrongIndices(const Layout& l, IndexError error) : layout_(l) {
    for (int j = 0; j < l.indexed; ++j) new (at(j)) WrongIndex(l.t.sizes[l.before + j], error);
  }
  WrongIndex* get() { return at(0); }
  Status status(const int64_t* dims) {
    for (int j = 0; j < layout_.indexed; ++j) {
      Status s = at(j)->status(layout_.index[j], static_cast<int>(dims[j]));
      if (!s.ok()) return s;
    }
    return {};
  }

 private:
  WrongIndex* at(int j) { return reinterpret_cast<WrongIndex*>(room_) + j; }
  const Layout& layout_;
  alignas(WrongIndex) char room_[kMaxDims * sizeof(WrongIndex)];
};

// out is dense: [outer, index points, inner].
Status read(const Layout& l, void* out_, IndexError error, const int64_t* dims) {
  for (int j = 0; j < l.indexed; ++j) {
    Status s = check_index_dtype(l.index[j]);
    if (!s.ok()) return s;
  }
  if (l.outer == 0 || l.inner == 0) return check_all(l, error, dims);
  WrongIndices wrong(l, error);
  char* out = static_cast<char*>(out_);
  const int64_t row = l.inner * l.item;
  const ReadPointsFn points = read_points(l.t.dtype);
  const int64_t grain = std::max<int64_t>(1, kSmall / l.inner);
  parallel_for(0, l.outer * l.count, grain, [&](int64_t b, int64_t e) {
    int64_t at[kTile], zero[kMaxDims] = {};
    const int skip = l.before + l.indexed;
    for (int64_t i = b; i < e;) {
      const int64_t o = i / l.count, first = i % l.count;
      const int64_t n = std::min({kTile, e - i, l.count - first});
      const char* base = l.address(l.outer_offset(o));
      char* to = out + i * row;
      if (!l.places(first, n, at, wrong.get())) return;
      if (l.inner == 1) {
        points(to, base, at, n);
      } else if (l.inner_dense) {
        for (int64_t k = 0; k < n; ++k)
          std::memcpy(to + k * row, base + at[k] * l.item, static_cast<size_t>(row));
      } else {
        for (int64_t k = 0; k < n; ++k)
          gather_run(to + k * row, base + at[k] * l.item, l.after, l.t.sizes + skip,
                     l.t.strides + skip, zero, l.inner, static_cast<size_t>(l.item));
      }
      i += n;
    }
  });
  return wrong.status(dims);
}

// Writes into places; values have the shape [outer, index points, inner].
class Writer {
 public:
  Writer(const Layout& layout, const KernelTensor& values, Combine combine)
      : l_(layout),
        values_(values),
        points_(write_points(combine, layout.t.dtype)),
        run_(combine_run(combine, layout.t.dtype)),
        span_(layout.span()) {}
  bool known() const { return points_ && run_; }

  // Each element is written by one thread alone, in the order of the index: the result does not
  // depend on how many there are.
  void write() const {
    const int64_t work = l_.outer * l_.count * l_.inner;
    const int64_t threads = num_threads();
    if (work <= kSmall || threads == 1) return part(0, l_.outer, 0, l_.inner, 0, span_);
    if (l_.outer >= 2 * threads) {
      const int64_t grain = std::max<int64_t>(1, kSmall / (l_.count * l_.inner));
      parallel_for(0, l_.outer, grain,
                   [&](int64_t b, int64_t e) { part(b, e, 0, l_.inner, 0, span_); });
    } else if (l_.inner >= 64 * threads) {
      const int64_t pieces = std::min(threads, l_.inner / 64);
      parallel_for(0, pieces, 1, [&](int64_t b, int64_t e) {
        part(0, l_.outer, l_.inner * b / pieces, l_.inner * e / pieces, 0, span_);
      });
    } else {
      const int64_t pieces = std::min(threads, span_);
      parallel_for(0, pieces, 1, [&](int64_t b, int64_t e) {
        part(0, l_.outer, 0, l_.inner, span_ * b / pieces, span_ * e / pieces);
      });
    }
  }

 private:
  // Outer and inner positions of a range, and only places within [low, high).
  void part(int64_t outer_begin, int64_t outer_end, int64_t inner_begin, int64_t inner_end,
            int64_t low, int64_t high) const {
    int64_t at[kTile];
    for (int64_t o = outer_begin; o < outer_end; ++o) {
      char* base = l_.address(l_.outer_offset(o));
      for (int64_t first = 0; first < l_.count; first += kTile) {
        const int64_t n = std::min(kTile, l_.count - first);
        l_.places(first, n, at);
        const int64_t linear = o * l_.count + first;
        if (l_.inner == 1)
          elements(base, at, linear, n, low, high);
        else
          rows(base, at, linear, n, inner_begin, inner_end, low, high);
      }
    }
  }

  void elements(char* base, int64_t* at, int64_t linear, int64_t n, int64_t low,
                int64_t high) const {
    alignas(64) char room[kTile * 16];
    const void* from = values_.tile(linear, n, room);
    if (low == 0 && high == span_) return points_(base, at, from, n);
    if (from != room) std::memcpy(room, from, static_cast<size_t>(n * l_.item));
    n = keep_within(low, high, at, room, n, static_cast<size_t>(l_.item));
    points_(base, at, room, n);
  }

  void rows(char* base, const int64_t* at, int64_t linear, int64_t n, int64_t begin, int64_t end,
            int64_t low, int64_t high) const {
    alignas(64) char room[kTile * 16];
    int64_t inner_at[kTile];
    for (int64_t k = 0; k < n; ++k) {
      if (at[k] < low || at[k] >= high) continue;
      char* place = base + at[k] * l_.item;
      for (int64_t j = begin; j < end;) {
        const bool whole = l_.inner_dense && values_.dense();
        const int64_t m = whole ? end - j : std::min(kTile, end - j);
        const void* from = values_.tile((linear + k) * l_.inner + j, m, room);
        if (l_.inner_dense) {
          run_(place + j * l_.item, from, m);
        } else {
          l_.inner_walk.offsets(j, m, inner_at);
          points_(place, inner_at, from, m);
        }
        j += m;
      }
    }
  }

  const Layout& l_;
  TileReader values_;
  WritePointsFn points_;
  CombineRunFn run_;
  int64_t span_;
};

Status write(const Layout& l, const KernelTensor& values, Combine combine) {
  Writer writer(l, values, combine);
  if (!writer.known())
    return fail(Code::kUnsupported, "not implemented for %s", dtype_name(l.t.dtype));
  if (values.numel > 0) writer.write();
  return {};
}

}  // namespace

// inputs: the tensor, an index for each of the indexed dimensions; ints: dimensions before them,
// how many they are, how errors are worded, their numbers for the user.
Status index_read(const KernelArgs& args) {
  Layout l(args.inputs[0], static_cast<int>(args.ints[0]), static_cast<int>(args.ints[1]),
           args.inputs + 1);
  return read(l, args.outputs[0].data, static_cast<IndexError>(args.ints[2]), args.ints + 3);
}

// The same with values before the indices, and how they are combined before the numbers.
Status index_write(const KernelArgs& args) {
  Layout l(args.outputs[0], static_cast<int>(args.ints[0]), static_cast<int>(args.ints[1]),
           args.inputs + 1);
  Status s = check_all(l, static_cast<IndexError>(args.ints[2]), args.ints + 4);
  if (!s.ok()) return s;
  return write(l, args.inputs[0], static_cast<Combine>(args.ints[3]));
}

Status index_select(const KernelArgs& args) {
  const int dim = static_cast<int>(args.ints[0]);
  Layout l(args.inputs[0], dim, 1, args.inputs + 1);
  return read(l, args.outputs[0].data, IndexError::kSelect, args.ints);
}

Status index_add(const KernelArgs& args) {
  const int dim = static_cast<int>(args.ints[0]);
  Layout l(args.outputs[0], dim, 1, args.inputs);
  Status s = check_all(l, IndexError::kSelect, args.ints);
  if (!s.ok()) return s;
  return write(l, args.inputs[1], Combine::kAdd);
}

TS_KERNEL("index_read", index_read)
TS_KERNEL("index_write", index_write)
TS_KERNEL("index_select", index_select)
TS_KERNEL("index_add", index_add)

}  // namespace tessera::cpu
