// Reductions over neighbouring positions: scatter_reduce by the segment each position lies in.
#include <limits>

#include "tessera/gen/binary.h"
#include "tessera/gen/bitwise.h"
#include "tessera/gen/compare.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/index.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/ternary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/index/layout.h"
#include "tessera/ops/valid.h"

namespace tessera {

TS_OP({
    .schema =
        "_segment_ids(Tensor bounds, int length, bool lengths, bool open_end=False) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      TS_CHECK(c.tensor(0).dim() > 0, c.op.name, "(): expected bounds of one dimension or more");
      check_integer(c, 1, 0);
      TensorBase bounds = op::contiguous(as_index(c.tensor(0), c.tensor(0)));
      Dims shape = bounds.sizes();
      shape[shape.size() - 1] = c.integer(1);
      TensorBase out = new_empty(shape, DType::kInt64, bounds.device());
      int64_t ints[] = {c.flag(2), c.flag(3)};
      launch("segment_ids", {&out, 1}, {&bounds, 1}, ints);
      return out;
    },
    .not_differentiable = true,
});

namespace {

// Sums of `t` over the segments, in the shape of `like`.
TensorBase segment_sum(const TensorBase& t, int64_t axis, const TensorBase& ids,
                       const TensorBase& like) {
  return op::scatter_add(op::zeros_like(like), axis, ids, t);
}

// The gradient is shared among the elements that are the extreme one, and all NaN are; the initial
// value has no part.
TensorBase extreme_gradient(const TensorBase& grad, const TensorBase& data, const TensorBase& out,
                            int64_t axis, const TensorBase& ids) {
  TensorBase is = op::logical_or(op::eq(data, op::gather(out, axis, ids)), op::isnan(data));
  TensorBase weight = op::_to_dtype(is, data.dtype());
  TensorBase n = segment_sum(weight, axis, ids, out);
  n = op::masked_fill(n, op::eq(n, Scalar(0)), Value(Scalar(1)));
  return op::mul(weight, op::gather(op::div(grad, n), axis, ids));
}

// The product of the others: of zeros and NaN without dividing by them.
TensorBase product_gradient(const TensorBase& grad, const TensorBase& data, const TensorBase& out,
                            const TensorBase& base, int64_t axis, const TensorBase& ids) {
  TensorBase zero = op::eq(data, Scalar(0)), nan = op::isnan(data);
  TensorBase special = op::logical_or(zero, nan);
  TensorBase regular = op::masked_fill(data, special, Value(Scalar(1)));
  TensorBase product = op::scatter_reduce(base, axis, ids, regular, "prod");
  // The number of others in the segment that are `which`.
  auto others = [&](const TensorBase& which) {
    TensorBase n = op::_to_dtype(which, data.dtype());
    return op::sub(op::gather(segment_sum(n, axis, ids, out), axis, ids), n);
  };
  TensorBase rest = op::gather(product, axis, ids);
  rest = op::where(op::gt(others(zero), Scalar(0)), op::mul(rest, Scalar(0)), rest);
  // Filled rather than multiplied by NaN, whose gradient would be NaN everywhere.
  rest = op::masked_fill(rest, op::gt(others(nan), Scalar(0)),
                         Value(Scalar(std::numeric_limits<double>::quiet_NaN())));
  TensorBase divided = op::div(op::gather(out, axis, ids), regular);
  return op::mul(op::gather(grad, axis, ids), op::where(special, rest, divided));
}

}  // namespace

// The reduction of segments over base, which has the initial value everywhere.
TS_OP({
    .schema = "_segment_scatter(Tensor data, Tensor base, Tensor ids, int axis, str reduce) -> "
              "Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return op::scatter_reduce(c.tensor(1), c.integer(3), c.tensor(2), c.tensor(0), c.text(4));
    },
    .saves = "data base ids result",
    .backward =
        [](Backward& b) {
          const TensorBase &data = b.tensor(0), &ids = b.tensor(2);
          const int64_t axis = b.integer(3);
          b.set(0, b.text(4) == "prod"
                       ? product_gradient(b.grad, data, b.result, b.tensor(1), axis, ids)
                       : extreme_gradient(b.grad, data, b.result, axis, ids));
        },
});

namespace {

void check_covered(const TensorBase& bounds, int64_t size, bool lengths) {
  if (bounds.device().is_meta()) return;
  TensorBase host = host_data(op::_to_dtype(bounds, DType::kInt64));
  const int64_t* v = reinterpret_cast<const int64_t*>(host.raw());
  int64_t n = bounds.size(-1), rows = n > 0 ? bounds.numel() / n : 0;
  for (int64_t r = 0; r < rows; ++r, v += n) {
    int64_t sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      int64_t length = lengths ? v[i] : i > 0 ? v[i] - v[i - 1] : 0;
      TS_CHECK(length >= 0, lengths ? "lengths" : "offsets", " contains negative value!");
      sum += length;
    }
    if (lengths)
      TS_CHECK(sum == size,
               "segment_reduce(): Expected all rows of lengths along axis to sum to "
               "data.size(lengths.dim()-1) when !unsafe.");
    else
      TS_CHECK(n == 0 || (v[0] == 0 && v[n - 1] == size),
               "segment_reduce(): Expected all rows of offsets along axis to begin with 0 and end "
               "with data.size(offsets.dim()-1) when !unsafe.");
  }
}

}  // namespace

TS_OP({
    .schema = "_segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, "
              "Tensor? indices=None, Tensor? offsets=None, int axis=0, bool unsafe=False, "
              "Scalar? initial=None) -> Tensor",
    .also = "segment_reduce",
    .doc =
        "The \"sum\", \"mean\", \"max\", \"min\" or \"prod\" of segments along an axis, given by "
        "their lengths or by where they begin and the last one ends.",
    .example = "torch.segment_reduce(torch.ones(4), 'sum', lengths=torch.tensor([1, 3]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& data = c.tensor(0);
      std::string_view how = c.text(1);
      bool is_max = how == "max", is_min = how == "min", is_mean = how == "mean";
      TS_CHECK(is_max || is_min || is_mean || how == "sum" || how == "prod",
               "unsupported reduction given! ", how);
      TS_CHECK_IMPLEMENTED(is_floating(data.dtype()),
                           "\"_segment_reduce_cpu\" not implemented for ", data.dtype());
      TS_CHECK(!c.has(3), "segment_reduce(): indices based reduction is not supported yet.");
      TS_CHECK(c.has(2) || c.has(4),
               "segment_reduce(): Either lengths or offsets must be defined.");
      check_same_device(c.op, c.args);
      bool by_length = c.has(2);
      const TensorBase& bounds = c.tensor(by_length ? 2 : 4);
      int axis = wrap_dim(c.integer(5), data.dim());
      const char* name = by_length ? "lengths" : "offsets";
      TS_CHECK(data.dim() >= bounds.dim() && data.dim() > 0, "segment_reduce(): ", name, " has ",
               bounds.dim(), " dimensions and data ", data.dim());
      TS_CHECK(axis == bounds.dim() - 1,
               "segment_reduce(): Expected axis to be the last dimension "
               "of ",
               name, " but got ", axis, ".");
      const size_t d = static_cast<size_t>(axis);
      for (int i = 0; i < axis; ++i)
        TS_CHECK(bounds.sizes()[i] == data.sizes()[i], "segment_reduce(): ", name, " of shape ",
                 bounds.sizes(), " does not fit data of shape ", data.sizes());
      int64_t size = data.sizes()[d];
      if (!c.flag(6)) check_covered(bounds, size, by_length);
      int64_t segments = std::max<int64_t>(0, bounds.size(-1) - (by_length ? 0 : 1));

      // Positions of no segment go into one more, which is left out of the result.
      TensorBase ids = op::_segment_ids(bounds, size, by_length);
      ids = op::masked_fill(ids, op::eq(ids, Scalar(-1)), Value(Scalar(segments)));
      for (int i = axis + 1; i < data.dim(); ++i) ids = op::unsqueeze(ids, -1);
      ids = op::expand(ids, data.sizes().span());
      Dims shape = data.sizes();
      shape[d] = segments + 1;
      std::string_view reduce = is_max ? "amax" : is_min ? "amin" : is_mean ? "sum" : how;
      Scalar start = c.has(7) ? c.scalar(7) : neutral_element(combine_of(reduce), data.dtype());
      TensorBase base = op::full(shape.span(), start, data.dtype(), data.device());
      TensorBase out = reduce == "sum" ? op::scatter_reduce(base, axis, ids, data, reduce)
                                       : op::_segment_scatter(data, base, ids, axis, reduce);
      if (is_mean) {
        TensorBase n = op::zeros(shape.span(), data.dtype(), data.device());
        op::scatter_add_(n, axis, ids, op::ones_like(data));
        TensorBase none = op::eq(n, Scalar(0));
        out = op::div(out, op::masked_fill(n, none, Value(Scalar(1))));
        if (!c.has(7))
          out = op::masked_fill(out, none, Value(std::numeric_limits<double>::quiet_NaN()));
      }
      return op::slice(out, axis, 0, segments);
    },
    .samples = {{"T(5, 2), 'sum', lengths=I([2, 0, 3])"},
                {"T(5), 'mean', offsets=I([0, 1, 5]), initial=1"},
                {"P(5), 'prod', lengths=I([2, 3])"},
                {"T(2, 4), 'max', lengths=I([[1, 3], [4, 0]]), axis=1, initial=0"}},
});

}  // namespace tessera
