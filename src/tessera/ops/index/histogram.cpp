// Counts of values: bincount, histc, histogram; histogramdd is made of them in
// python/tessera/_indexing.py.
#include <cmath>

#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/index.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/view.h"
#include "tessera/ops/in_dtype.h"
#include "tessera/ops/index/layout.h"

namespace tessera {

namespace {

constexpr int64_t kFlat = -1;

// As PyTorch: the result seems to have a gradient, and backward raises.
void refuse_gradient(Backward&) {
  raise(ErrorKind::kNotImplemented, "the derivative of a histogram is not implemented");
}

}  // namespace

TS_OP({
    .schema = "bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor",
    .doc = "How often each number occurs among non-negative integers, or the sum of its weights.",
    .example = "torch.bincount(torch.tensor([1, 3, 1]))",
    .kind = Kind::kKernel,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      TensorBase weights = c.maybe(1);
      TS_CHECK_IMPLEMENTED(is_integral(self.dtype(), false), "\"bincount\" not implemented for ",
                           self.dtype());
      TS_CHECK(c.integer(2) >= 0, "minlength should be >= 0");
      TS_CHECK(self.dim() == 1, "bincount only supports 1-d non-negative integral inputs.");
      TS_CHECK(!weights.defined() || (weights.dim() == 1 && weights.numel() == self.numel()),
               "weights should be 1-d and have the same length as input");
      check_same_device(c.op, c.args);
      DType dtype = !weights.defined()                   ? DType::kInt64
                    : weights.dtype() == DType::kFloat32 ? DType::kFloat32
                                                         : DType::kFloat64;
      int64_t length = c.integer(2);
      TensorBase wide = in_dtype(self, DType::kInt64);
      if (self.numel() > 0) {
        TS_CHECK(host_scalar(op::amin(wide)).to_int() >= 0,
                 "bincount only supports 1-d non-negative integral inputs.");
        length = std::max(length, host_scalar(op::amax(wide)).to_int() + 1);
      }
      TensorBase out = op::zeros({&length, 1}, dtype, self.device());
      if (self.numel() == 0) return out;
      if (!weights.defined() && has_kernel(self.device(), "bincount")) {
        const TensorBase in[] = {op::contiguous(wide)};
        launch("bincount", {&out, 1}, in);
        return out;
      }
      TensorBase values =
          weights.defined() ? in_dtype(weights, dtype) : number_like(Scalar(1), out);
      write_along(out, 0, self, values, Combine::kAdd, IndexError::kIndex);
      return out;
    },
    .backward = refuse_gradient,
    .samples = {{"I([1, 3, 1, 0])"}, {"I([1, 3, 1]), torch.tensor([0.5, 1.0, 2.0]), 6"}},
});

namespace {

enum class Bins : int64_t { kEven, kEvenSearch, kSearch };

struct Range {
  double left, right;
};

TensorBase even_edges(Range r, int64_t n, const TensorBase& like) {
  return op::linspace(Value(r.left), Value(r.right), n, like.dtype(), like.device());
}

Range range_of(const TensorBase& t) {
  return {host_scalar(op::amin(t)).to_double(), host_scalar(op::amax(t)).to_double()};
}

void check_histogram_type(const char* name, const TensorBase& t, bool narrow) {
  TS_CHECK_IMPLEMENTED(is_floating(t.dtype()) && (narrow || !is_reduced_floating(t.dtype())), "\"",
                       name, "\" not implemented for ", t.dtype());
}

// The counts in a grid of these edges; points are [n, dims].
TensorBase count(const TensorBase& points, const TensorBase& weight,
                 std::span<const TensorBase> edges, Bins bins) {
  Dims shape;
  for (const TensorBase& e : edges) shape.push_back(e.numel() - 1);
  TensorBase out = new_empty(shape, points.dtype(), points.device());
  std::vector<TensorBase> in = {op::contiguous(points)};
  if (weight.defined()) in.push_back(op::contiguous(weight));
  for (const TensorBase& e : edges) in.push_back(op::contiguous(e));
  int64_t ints[] = {static_cast<int64_t>(bins), weight.defined()};
  if (out.numel() > 0) launch("histogram", {&out, 1}, in, ints);
  return out;
}

// Counts as a density: divided by their sum and by the volume of each cell.
TensorBase as_density(TensorBase hist, std::span<const TensorBase> edges) {
  hist = op::div(hist, op::sum(hist));
  for (size_t d = 0; d < edges.size(); ++d) {
    int64_t n = edges[d].numel();
    TensorBase widths = op::sub(op::slice(edges[d], 0, 1, n), op::slice(edges[d], 0, 0, n - 1));
    Dims shape(edges.size(), 1);
    shape[d] = n - 1;
    hist = op::div(hist, op::reshape(widths, shape.span()));
  }
  return hist;
}

// The outer edges along one dimension of a histogram.
Range outer_edges(const TensorBase& column, const double* given, int dim) {
  Range r{0, 1};
  if (given)
    r = {given[0], given[1]};
  else if (column.numel() > 0)
    r = range_of(column);
  TS_CHECK(std::isfinite(r.left) && std::isfinite(r.right), "torch.histogramdd: dimension ", dim,
           "'s range [", r.left, ", ", r.right, "] is not finite");
  TS_CHECK(r.left <= r.right, "torch.histogramdd: min should not exceed max, but got min ", r.left,
           " max ", r.right, " for dimension ", dim);
  if (r.left == r.right) r = {r.left - 0.5, r.right + 0.5};
  return r;
}

void check_points(const TensorBase& self, std::span<const TensorBase> edges,
                  const TensorBase& weight) {
  TS_CHECK(self.dim() >= 2,
           "torch.histogramdd: input tensor should have at least 2 dimensions, but got ",
           self.dim());
  int64_t n = self.size(-1);
  TS_CHECK(static_cast<int64_t>(edges.size()) == n, "torch.histogramdd: expected ", n,
           " sequences of bin edges for a ", n, "-dimensional histogram but got ", edges.size());
  for (size_t d = 0; d < edges.size(); ++d) {
    TS_CHECK(edges[d].dtype() == self.dtype(),
             "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got "
             "input with dtype ",
             self.dtype(), " and bins for dimension ", d, " with dtype ", edges[d].dtype());
    TS_CHECK(edges[d].dim() == 1,
             "torch.histogramdd: bins tensor should have one dimension, but got ", edges[d].dim(),
             " dimensions in the bins tensor for dimension ", d);
    TS_CHECK(edges[d].numel() > 0,
             "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in "
             "the bins tensor for dimension ",
             d);
    TS_CHECK(edges[d].numel() > 1, "torch.histogram(): bins must be > 0, but got 0 for dimension ",
             d);
  }
  if (!weight.defined()) return;
  TS_CHECK(weight.dtype() == self.dtype(),
           "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should "
           "have the same dtype, but got input(",
           self.dtype(), "), and weight(", weight.dtype(), ")");
  Dims shape = self.sizes(), given = weight.dim() ? weight.sizes() : Dims{1};
  shape.resize(shape.size() - 1);
  TS_CHECK(shape == given,
           "torch.histogramdd: if weight tensor is provided it should have the same shape as the "
           "input tensor excluding its innermost dimension, but got input with shape ",
           self.sizes(), " and weight with shape ", weight.sizes());
}

TensorBase histogramdd(const TensorBase& self, std::span<const TensorBase> edges,
                       const TensorBase& weight, bool density, Bins bins) {
  check_points(self, edges, weight);
  check_histogram_type("histogram_cpu", self, false);
  Dims shape = {self.numel() / std::max<int64_t>(1, self.size(-1)), self.size(-1)};
  TensorBase flat_weight = weight.defined() ? op::reshape(weight, {&kFlat, 1}) : TensorBase();
  TensorBase hist = count(op::reshape(self, shape.span()), flat_weight, edges, bins);
  return density ? as_density(hist, edges) : hist;
}

std::vector<TensorBase> even_grid(const TensorBase& self, std::span<const int64_t> bins,
                                  const Value& range) {
  TS_CHECK(self.dim() >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions");
  int64_t n = self.size(-1);
  TS_CHECK(static_cast<int64_t>(bins.size()) == n,
           "histogramdd: The size of bins must be equal to the innermost dimension of the input.");
  TS_CHECK(range.is_none() || static_cast<int64_t>(range.floats.size()) == 2 * n,
           "torch.histogramdd: for a ", n, "-dimensional histogram range should have ", 2 * n,
           " elements, but got ", range.is_none() ? size_t{0} : range.floats.size());
  std::vector<TensorBase> edges;
  for (int64_t d = 0; d < n; ++d) {
    int64_t m = bins[static_cast<size_t>(d)];
    TS_CHECK(m > 0, "torch.histogram(): bins must be > 0, but got ", m, " for dimension ", d);
    const double* given = range.is_none() ? nullptr : range.floats.data() + 2 * d;
    Range r = outer_edges(op::select(self, -1, d), given, static_cast<int>(d));
    edges.push_back(even_edges(r, m + 1, self));
  }
  return edges;
}

// histogram(self) is a histogramdd of one dimension, with a weight for each element.
TensorBase as_points(const TensorBase& self) {
  Dims shape = {self.numel(), 1};
  return op::reshape(self, shape.span());
}

TensorBase flat_weight(const TensorBase& self, const TensorBase& weight) {
  if (!weight.defined()) return weight;
  TS_CHECK(weight.sizes() == self.sizes(),
           "torch.histogram: if weight tensor is provided it should have the same shape as the "
           "input tensor excluding its innermost dimension, but got input with shape ",
           self.sizes(), " and weight with shape ", weight.sizes());
  return op::reshape(weight, {&kFlat, 1});
}

}  // namespace

TS_OP({
    .schema = "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
    .doc = "How many elements fall into each of equally wide bins between min and max; between the "
           "least and the greatest element where both are 0.",
    .example = "torch.histc(torch.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      int64_t bins = c.integer(1);
      check_histogram_type("histogram_cpu", self, true);
      TS_CHECK(bins > 0, "bins must be > 0");
      Range r{c.scalar(2).to_double(), c.scalar(3).to_double()};
      if (r.left == r.right && self.numel() > 0 && !self.device().is_meta()) r = range_of(self);
      if (r.left == r.right) r = {r.left - 1, r.right + 1};
      TS_CHECK(std::isfinite(r.left) && std::isfinite(r.right), "torch.histc: range of [", r.left,
               ", ", r.right, "] is not finite");
      TS_CHECK(r.left < r.right, "torch.histc: max must be larger than min");
      TensorBase edges = even_edges(r, bins + 1, self);
      return count(as_points(self), TensorBase(), {&edges, 1}, Bins::kEven);
    },
    .backward = refuse_gradient,
    .exact_out = true,
    .samples = {{"torch.tensor([[-3.5, 0.5], [2.0, 3.0]]), 5, -3, 3"},
                {"torch.tensor([1.0, 2.0, 4.0]), 4"}},
});

TS_OP({
    .schema = "histogram(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> "
              "(Tensor hist, Tensor bin_edges)",
    .doc = "How many elements fall between neighbouring edges, or the sum of their weights.",
    .example = "torch.histogram(torch.tensor([1.0, 2.0, 1.0]), torch.tensor([0.0, 1.5, 3.0]))",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &self = c.tensor(0), &edges = c.tensor(1);
      TensorBase hist = histogramdd(as_points(self), {&edges, 1}, flat_weight(self, c.maybe(2)),
                                    c.flag(3), Bins::kSearch);
      return {hist, op::clone(edges)};
    },
    .backward = refuse_gradient,
    .samples = {{"torch.tensor([-3.5, 0.5, 1.5]), torch.tensor([-3.0, 0.0, 1.0, 3.0])"}},
});

TS_OP({
    .schema = "histogram(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, "
              "bool density=False) -> (Tensor hist, Tensor bin_edges)",
    .doc = "How many elements fall into each of equally wide bins, or the sum of their weights.",
    .example = "torch.histogram(torch.tensor([1.0, 2.0, 1.0]), bins=4, range=(0.0, 3.0))",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      TensorBase points = as_points(self);
      int64_t bins = c.integer(1);
      TensorBase edges = even_grid(points, {&bins, 1}, c.args[2])[0];
      TensorBase hist = histogramdd(points, {&edges, 1}, flat_weight(self, c.maybe(3)), c.flag(4),
                                    Bins::kEvenSearch);
      return {hist, edges};
    },
    .backward = refuse_gradient,
    .samples =
        {{"torch.tensor([-3.5, 0.5, 1.5]), 5, range=(-3.0, 3.0)"},
         {"torch.tensor([1.0, 2.0, 4.0]), 4, weight=torch.tensor([0.5, 1.0, 2.0]), density=True"}},
});

TS_OP({
    .schema = "_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, "
              "Tensor? weight=None, bool density=False) -> Tensor[]",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return even_grid(c.tensor(0), c.args[1].ints, c.args[2]);
    },
    .backward = refuse_gradient,
});

TS_OP({
    .schema = "_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, "
              "Tensor? weight=None, bool density=False) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      std::vector<TensorBase> edges = even_grid(c.tensor(0), c.args[1].ints, c.args[2]);
      return histogramdd(c.tensor(0), edges, c.maybe(3), c.flag(4), Bins::kEvenSearch);
    },
    .backward = refuse_gradient,
});

TS_OP({
    .schema = "_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, "
              "bool density=False) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return histogramdd(c.tensor(0), c.tensors(1), c.maybe(2), c.flag(3), Bins::kSearch);
    },
    .backward = refuse_gradient,
});

}  // namespace tessera
