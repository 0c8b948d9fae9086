// Points counted, or their weights added up, in the cells of a grid.
#include <algorithm>
#include <mutex>

#include "convert_scalar.h"
#include "kernels.h"
#include "scratch.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

enum class Bins : int64_t {
  kEven,        // evenly spaced: by division alone
  kEvenSearch,  // ... and then by the edges of the neighbours
  kSearch,      // by the edges
};

// One axis of the grid; everything is rounded to the dtype as its own arithmetic rounds.
template <class T>
struct Axis {
  using F = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const T* edges;
  int64_t count;  // of edges
  F left, right;

  F edge(int64_t i) const { return cast<F>(edges[i]); }
  static F rounded(F x) { return cast<F>(cast<T>(x)); }
  // The last edge that is not above x, within [low, high).
  int64_t below(F x, int64_t low, int64_t high) const {
    while (low < high) {
      const int64_t mid = low + (high - low) / 2;
      if (edge(mid) > x)
        high = mid;
      else
        low = mid + 1;
    }
    return low - 1;
  }
  // -1: outside, or a NaN.
  int64_t cell(F x, Bins bins) const {
    if (!(x >= left && x <= right)) return -1;
    int64_t at;
    if (bins == Bins::kSearch) {
      at = below(x, 0, count);
    } else {
      const F width = rounded(right - left), cells = rounded(static_cast<F>(count - 1));
      at = static_cast<int64_t>(rounded(rounded(rounded(x - left) * cells) / width));
      if (bins == Bins::kEvenSearch)
        at = below(x, std::max<int64_t>(0, at - 1), std::min(at + 2, count));
    }
    return std::min(at, count - 2);  // the last cell has its right edge too
  }
};

template <class T>
Status histogram_as(const KernelArgs& args) {
  using F = typename Axis<T>::F;
  const Bins bins = static_cast<Bins>(args.ints[0]);
  const bool weighted = args.ints[1] != 0;
  const KernelTensor& points = args.inputs[0];
  const KernelTensor* edges = args.inputs + (weighted ? 2 : 1);
  const int dims = args.num_inputs - (weighted ? 2 : 1);
  const T* weight = weighted ? static_cast<const T*>(args.inputs[1].data) : nullptr;
  const T* x = static_cast<const T*>(points.data);
  const int64_t n = points.sizes[0], cells = args.outputs[0].numel;
  const size_t bytes = static_cast<size_t>(cells) * sizeof(double);
  OutOfScratch failure;
  Scratch axes_room(static_cast<size_t>(dims) * sizeof(Axis<T>), failure);
  Scratch total_room(bytes, failure);
  Status s = failure.status("histogram()");
  if (!s.ok()) return s;
  Axis<T>* axes = static_cast<Axis<T>*>(axes_room.get());
  for (int d = 0; d < dims; ++d) {
    Axis<T>& a = axes[d];
    a.edges = static_cast<const T*>(edges[d].data);
    a.count = edges[d].numel;
    a.left = a.edge(0);
    a.right = a.edge(a.count - 1);
  }
  auto add = [&](double* sums, int64_t b, int64_t e) {
    if (dims == 1) {
      const Axis<T> axis = axes[0];
      for (int64_t i = b; i < e; ++i) {
        const int64_t at = axis.cell(cast<F>(x[i]), bins);
        if (at >= 0) sums[at] += weight ? cast<double>(weight[i]) : 1.0;
      }
      return;
    }
    for (int64_t i = b; i < e; ++i) {
      int64_t at = 0;
      for (int d = 0; d < dims && at >= 0; ++d) {
        const int64_t cell = axes[d].cell(cast<F>(x[i * dims + d]), bins);
        at = cell < 0 ? -1 : at * (axes[d].count - 1) + cell;
      }
      if (at >= 0) sums[at] += weight ? cast<double>(weight[i]) : 1.0;
    }
  };
  double* total = static_cast<double*>(total_room.get());
  std::fill_n(total, cells, 0.0);
  // Counts are exact in any order; weights are added up in that of the points.
  if (weighted || n < (1 << 15)) {
    add(total, 0, n);
  } else {
    std::mutex mutex;
    parallel_for(0, n, 1 << 14, [&](int64_t b, int64_t e) {
      Scratch own(bytes, failure);
      if (!own.get()) return;
      double* sums = static_cast<double*>(own.get());
      std::fill_n(sums, cells, 0.0);
      add(sums, b, e);
      std::lock_guard lock(mutex);
      for (int64_t k = 0; k < cells; ++k) total[k] += sums[k];
    });
  }
  T* out = static_cast<T*>(args.outputs[0].data);
  for (int64_t k = 0; k < cells; ++k) out[k] = cast<T>(total[k]);
  return failure.status("histogram()");
}

}  // namespace

// inputs: dense points [n, dims], weights [n] or none, dense edges of each axis; ints: how cells
// are found, whether there are weights.
Status histogram(const KernelArgs& args) {
  switch (args.inputs[0].dtype) {
    case DType::kFloat64:
      return histogram_as<double>(args);
    case DType::kFloat32:
      return histogram_as<float>(args);
    case DType::kFloat16:
      return histogram_as<Half>(args);
    case DType::kBFloat16:
      return histogram_as<BFloat>(args);
    default:
      return fail(Code::kUnsupported, "not implemented for %s", dtype_name(args.inputs[0].dtype));
  }
}

// How often each number occurs; inputs: dense int64 numbers that are places of the output.
Status bincount(const KernelArgs& args) {
  const int64_t n = args.inputs[0].numel, cells = args.outputs[0].numel;
  const int64_t* x = static_cast<const int64_t*>(args.inputs[0].data);
  int64_t* out = static_cast<int64_t*>(args.outputs[0].data);
  std::fill_n(out, cells, int64_t{0});
  // Neighbours are often equal: counting into several tables in turn, none waits for the last.
  constexpr int64_t kTables = 4;
  if (n < (1 << 15) || cells * kTables > n / num_threads()) {
    for (int64_t i = 0; i < n; ++i) ++out[x[i]];
    return {};
  }
  OutOfScratch failure;
  std::mutex mutex;
  const int64_t pieces = num_threads();
  parallel_for(0, pieces, 1, [&](int64_t first, int64_t last) {
    Scratch own(static_cast<size_t>(cells * kTables) * sizeof(int64_t), failure);
    if (!own.get()) return;
    int64_t* counts = static_cast<int64_t*>(own.get());
    std::fill_n(counts, cells * kTables, int64_t{0});
    int64_t i = n * first / pieces;
    const int64_t end = n * last / pieces;
    for (; i + kTables <= end; i += kTables)
      for (int64_t t = 0; t < kTables; ++t) ++counts[t * cells + x[i + t]];
    for (; i < end; ++i) ++counts[x[i]];
    std::lock_guard lock(mutex);
    for (int64_t t = 0; t < kTables; ++t)
      for (int64_t k = 0; k < cells; ++k) out[k] += counts[t * cells + k];
  });
  return failure.status("bincount()");
}

TS_KERNEL("histogram", histogram)
TS_KERNEL("bincount", bincount)

}  // namespace tessera::cpu
