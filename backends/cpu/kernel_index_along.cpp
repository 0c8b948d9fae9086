// gather and scatter: an index for every element, along one dimension.
#include <algorithm>

#include "index_range.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kTile = 256;
constexpr int64_t kSmall = 1 << 14;

// Offsets in `self` of the elements that points of `index` name.
class Along {
 public:
  Along(const KernelTensor& self, const KernelTensor& index, int dim)
      : index_(index),
        walk_(index.ndim, index.sizes, self.strides, dim),
        stride_(index.ndim > 0 ? self.strides[dim] : 0) {}
  void offsets(int64_t first, int64_t n, int64_t* at) const {
    int64_t room[kTile];
    const int64_t* v = index_.tile(first, n, room);
    walk_.offsets(first, n, at);
    for (int64_t k = 0; k < n; ++k) at[k] += v[k] * stride_;
  }

 private:
  IndexReader index_;
  OffsetWalk walk_;
  int64_t stride_;
};

int64_t product(const int64_t* sizes, int begin, int end) {
  int64_t n = 1;
  for (int d = begin; d < end; ++d) n *= sizes[d];
  return n;
}

class Scatter {
 public:
  Scatter(const KernelTensor& self, const KernelTensor& index, const KernelTensor& src, int dim,
          WritePointsFn points)
      : self_(self),
        along_(self, index, dim),
        src_(src),
        points_(points),
        item_(static_cast<int64_t>(itemsize(self.dtype))),
        size_(index.ndim > 0 ? index.sizes[dim] : 1),
        outer_(product(index.sizes, 0, index.ndim > 0 ? dim : 0)),
        inner_(index.ndim > 0 ? product(index.sizes, dim + 1, index.ndim) : 1) {}

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
    int64_t at[kTile];
    alignas(64) char room[kTile * 16];
    for (int64_t i = begin; i < end; i += kTile) {
      const int64_t n = std::min(kTile, end - i);
      along_.offsets(i, n, at);
      points_(self_.data, at, src_.tile(i, n, room), n);
    }
  }

  const KernelTensor& self_;
  Along along_;
  TileReader src_;
  WritePointsFn points_;
  int64_t item_, size_, outer_, inner_;
};

}  // namespace

Status gather(const KernelArgs& args) {
  const KernelTensor &self = args.inputs[0], &index = args.inputs[1], &out = args.outputs[0];
  const int dim = static_cast<int>(args.ints[0]);
  Status s = check_indices(index, dim, self.ndim > 0 ? self.sizes[dim] : 1, IndexError::kGather);
  if (!s.ok()) return s;
  const Along along(self, index, dim);
  const ReadPointsFn points = read_points(self.dtype);
  const int64_t item = static_cast<int64_t>(itemsize(self.dtype));
  parallel_for(0, index.numel, kSmall, [&](int64_t b, int64_t e) {
    int64_t at[kTile];
    for (int64_t i = b; i < e; i += kTile) {
      const int64_t n = std::min(kTile, e - i);
      along.offsets(i, n, at);
      points(static_cast<char*>(out.data) + i * item, self.data, at, n);
    }
  });
  return {};
}

// inputs: index, and src of its shape; ints: the dimension, how they are combined.
Status scatter(const KernelArgs& args) {
  const KernelTensor &self = args.outputs[0], &index = args.inputs[0], &src = args.inputs[1];
  const int dim = static_cast<int>(args.ints[0]);
  Status s = check_indices(index, dim, self.ndim > 0 ? self.sizes[dim] : 1, IndexError::kGather);
  if (!s.ok() || index.numel == 0) return s;
  WritePointsFn points = write_points(static_cast<Combine>(args.ints[1]), self.dtype);
  if (!points)
    return fail(Code::kUnsupported, "scatter(): not implemented for %s", dtype_name(self.dtype));
  Scatter(self, index, src, dim, points).run();
  return {};
}

TS_KERNEL("gather", gather)
TS_KERNEL("scatter", scatter)

}  // namespace tessera::cpu
