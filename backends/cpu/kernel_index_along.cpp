// gather and scatter: an index for every element, along one dimension.
#include <algorithm>

#include "index_range.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kTile = 512;
constexpr int64_t kSmall = 1 << 14;

// The elements of `self` that points of `index` name, walked in row-major order. Where the last
// dimension is long it is taken a run at a time.
class Along {
 public:
  Along(const KernelTensor& self, const KernelTensor& index, int dim)
      : index_(index),
        ndim_(index.ndim),
        sizes_(index.sizes),
        walk_(index.ndim, index.sizes, self.strides, dim),
        stride_(self.strides[dim]),
        step_(dim == ndim_ - 1 ? 0 : self.strides[ndim_ - 1]),
        by_runs_(sizes_[ndim_ - 1] >= 16) {}

  const int64_t* index_tile(int64_t first, int64_t n, int64_t* room) const {
    return index_.tile(first, n, room);
  }
  // Calls run(i, m, offset) for the pieces of points [first, first + n) that lie in one row, or
  // points(at, n) with the offsets of all of them.
  template <class Run, class Points>
  void visit(int64_t first, int64_t n, const int64_t* v, Run&& run, Points&& points) const {
    int64_t at[kTile];
    if (!by_runs_) {
      walk_.offsets(first, n, at);
      for (int64_t k = 0; k < n; ++k) at[k] += v[k] * stride_;
      return points(at, n);
    }
    const int64_t row = sizes_[ndim_ - 1];
    for (int64_t i = 0; i < n;) {
      const int64_t m = std::min(n - i, row - (first + i) % row);
      walk_.offsets(first + i, 1, at);
      run(i, m, at[0]);
      i += m;
    }
  }
  int64_t step() const { return step_; }
  int64_t stride() const { return stride_; }

 private:
  IndexReader index_;
  int ndim_;
  const int64_t* sizes_;
  OffsetWalk walk_;
  int64_t stride_, step_;
  bool by_runs_;
};

int64_t product(const int64_t* sizes, int begin, int end) {
  int64_t n = 1;
  for (int d = begin; d < end; ++d) n *= sizes[d];
  return n;
}

class Scatter {
 public:
  Scatter(const KernelTensor& self, const KernelTensor& index, const KernelTensor& src, int dim,
          Combine combine)
      : data_(static_cast<char*>(self.data)),
        along_(self, index, dim),
        src_(src),
        points_(write_points(combine, self.dtype)),
        run_(write_run(combine, self.dtype)),
        item_(static_cast<int64_t>(itemsize(self.dtype))),
        size_(index.sizes[dim]),
        outer_(product(index.sizes, 0, dim)),
        inner_(product(index.sizes, dim + 1, index.ndim)) {}
  bool known() const { return points_; }

  // Points of one line along the dimension stay with one thread, in their order.
  void run() const {
    const int64_t threads = num_threads(), numel = outer_ * size_ * inner_;
    if (numel <= kSmall || threads == 1) return range(0, numel);
    if (outer_ >= threads) {
      const int64_t line = size_ * inner_, grain = std::max<int64_t>(1, kSmall / line);
      parallel_for(0, outer_, grain, [&](int64_t b, int64_t e) { range(b * line, e * line); });
    } else if (inner_ >= 16 * threads) {
      parallel_for(0, threads, 1, [&](int64_t b, int64_t e) {
        const int64_t from = inner_ * b / threads, to = inner_ * e / threads;
        for (int64_t row = 0; row < outer_ * size_; ++row)
          range(row * inner_ + from, row * inner_ + to);
      });
    } else {
      range(0, numel);
    }
  }

 private:
  void range(int64_t begin, int64_t end) const {
    int64_t index_room[kTile];
    alignas(64) char room[kTile * 16];
    for (int64_t i = begin; i < end; i += kTile) {
      const int64_t n = std::min(kTile, end - i);
      const int64_t* v = along_.index_tile(i, n, index_room);
      const char* from = static_cast<const char*>(src_.tile(i, n, room));
      along_.visit(
          i, n, v,
          [&](int64_t first, int64_t m, int64_t offset) {
            run_(data_ + offset * item_, v + first, from + first * item_, m, along_.step(),
                 along_.stride());
          },
          [&](const int64_t* at, int64_t m) { points_(data_, at, from, m); });
    }
  }

  char* data_;
  Along along_;
  TileReader src_;
  WritePointsFn points_;
  WriteRunFn run_;
  int64_t item_, size_, outer_, inner_;
};

}  // namespace

Status gather(const KernelArgs& args) {
  const KernelTensor &self = args.inputs[0], &index = args.inputs[1], &out = args.outputs[0];
  const int dim = static_cast<int>(args.ints[0]);
  Status s = check_index_dtype(index);
  if (!s.ok()) return s;
  const Along along(self, index, dim);
  const ReadPointsFn points = read_points(self.dtype);
  const ReadRunFn run = read_run(self.dtype);
  const int64_t item = static_cast<int64_t>(itemsize(self.dtype));
  const char* data = static_cast<const char*>(self.data);
  WrongIndex wrong(self.sizes[dim], IndexError::kGather);
  parallel_for(0, index.numel, kSmall, [&](int64_t b, int64_t e) {
    int64_t room[kTile];
    for (int64_t i = b; i < e; i += kTile) {
      const int64_t n = std::min(kTile, e - i);
      const int64_t* v = along.index_tile(i, n, room);
      if (!wrong.fits(v, n, i)) return;
      char* to = static_cast<char*>(out.data) + i * item;
      along.visit(
          i, n, v,
          [&](int64_t first, int64_t m, int64_t offset) {
            run(to + first * item, data + offset * item, v + first, m, along.step(),
                along.stride());
          },
          [&](const int64_t* at, int64_t m) { points(to, data, at, m); });
    }
  });
  return wrong.status(index, dim);
}

// inputs: index, and src of its shape; ints: the dimension, how they are combined.
Status scatter(const KernelArgs& args) {
  const KernelTensor &self = args.outputs[0], &index = args.inputs[0], &src = args.inputs[1];
  const int dim = static_cast<int>(args.ints[0]);
  Status s = check_indices(index, dim, self.sizes[dim], IndexError::kGather);
  if (!s.ok() || index.numel == 0) return s;
  Scatter all(self, index, src, dim, static_cast<Combine>(args.ints[1]));
  if (!all.known())
    return fail(Code::kUnsupported, "scatter(): not implemented for %s", dtype_name(self.dtype));
  all.run();
  return {};
}

TS_KERNEL("gather", gather)
TS_KERNEL("scatter", scatter)

}  // namespace tessera::cpu
