// Maximum pooling over windows whose places are drawn.
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/index.h"
#include "tessera/gen/join.h"
#include "tessera/gen/pool.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/pool/geometry.h"

namespace tessera {

namespace {

// Where the windows of each plane begin along one dimension: planes x out. The last one ends with
// the input, the others lie evenly but for the draw.
TensorBase starts(const TensorBase& draw, int64_t in, int64_t out, int64_t window) {
  const int64_t last = in - window, planes[] = {draw.size(0), 1};
  TensorBase end = op::full(planes, Scalar(last), DType::kInt64, draw.device());
  if (out <= 1) return end;
  const double alpha = static_cast<double>(last) / static_cast<double>(out - 1);
  TensorBase u = op::view(draw, planes);
  TensorBase i = op::arange(Scalar(out - 1), draw.dtype(), draw.device());
  TensorBase at = op::sub(op::trunc(op::mul(op::add(u, i), Scalar(alpha))),
                          op::trunc(op::mul(u, Scalar(alpha))));
  const TensorBase parts[] = {op::_to_dtype(at, DType::kInt64), end};
  return op::cat(parts, 1);
}

void check(const TensorBase& x, const TensorBase& draws, const Dims& window, const Dims& out,
           int n) {
  static constexpr const char* kAxes[] = {"time", "height", "width"};
  TS_CHECK(x.dim() == n + 1 || x.dim() == n + 2, "fractional_max_pool", n, "d(): Expected ", n + 1,
           "D or ", n + 2, "D tensor, but got: ", x.sizes());
  TS_CHECK(is_floating(x.dtype()), "\"fractional_max_pool", n, "d\" not implemented for ",
           x.dtype());
  TS_CHECK(draws.dtype() == x.dtype(), "Expect _random_samples to have the same dtype as input");
  TS_CHECK(draws.dim() == 3, "Expect _random_samples to have 3 dimensions, got ", draws.dim());
  TS_CHECK(draws.size(0) >= (x.dim() == n + 2 ? x.size(0) : 1),
           "Expect _random_samples.size(0) no less then input batch size.");
  TS_CHECK(draws.size(1) == x.size(-n - 1),
           "Expect _random_samples.size(1) equals to input channel size.");
  TS_CHECK(draws.size(2) == n, "Expect _random_samples.size(2) equals to ", n, "; got ",
           draws.size(2), ".");
  TS_CHECK(window.ndim() == n && out.ndim() == n, "fractional_max_pool", n,
           "d: kernel_size and output_size must be single ints or tuples of ", n, " ints");
  for (int d = 0; d < n; ++d) {
    const auto at = static_cast<size_t>(d);
    TS_CHECK(window[at] > 0, "kernel_size should be greater than zero, but got ", window[at]);
    TS_CHECK(out[at] + window[at] - 1 <= x.size(d - n), "fractional_max_pool", n, "d(): pool ",
             kAxes[d + 3 - n], " ", window[at], " too large relative to input ", kAxes[d + 3 - n],
             " ", x.size(d - n));
  }
}

// Numbers of elements of a plane, [planes, out_1 .. out_n, window_1 .. window_n], flattened to
// [planes, outs, windows].
TensorBase places(const TensorBase& x, const TensorBase& draws, const Dims& window, const Dims& out,
                  int n) {
  const int64_t planes = draws.size(0);
  TensorBase sum;
  int64_t stride = 1, outs = 1, windows = 1;
  for (int d = n - 1; d >= 0; --d) {
    const auto at = static_cast<size_t>(d);
    // In two dimensions the first draw is that of the width.
    TensorBase draw = op::contiguous(op::select(draws, 1, n == 2 ? 1 - d : d));
    TensorBase start = starts(draw, x.size(d - n), out[at], window[at]);
    TensorBase within = op::arange(Scalar(window[at]), DType::kInt64, x.device());
    Dims from(static_cast<size_t>(2 * n + 1), 1), step = from;
    from[0] = planes;
    from[at + 1] = out[at];
    step[at + 1 + static_cast<size_t>(n)] = window[at];
    TensorBase place = op::add(op::view(start, from.span()), op::view(within, step.span()));
    place = op::mul(place, Scalar(stride));
    sum = sum.defined() ? op::add(sum, place) : place;
    stride *= x.size(d - n);
    outs *= out[at];
    windows *= window[at];
  }
  const int64_t flat[] = {planes, outs, windows};
  return op::reshape(sum, flat);
}

}  // namespace

TS_OP({
    .schema = "_fractional_max_pool(Tensor self, int[] kernel_size, int[] output_size, Tensor "
              "random_samples) -> (Tensor values, Tensor indices)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &x = c.tensor(0), &draws = c.tensor(3);
      const Dims window = c.ints(1), out = c.ints(2);
      const int n = window.ndim();
      check_same_device(c.op, c.args);
      check(x, draws, window, out, n);
      Dims size = x.sizes();
      for (int d = 0; d < n; ++d)
        size[size.size() - static_cast<size_t>(n - d)] = out[static_cast<size_t>(d)];
      int64_t planes = 1, elements = 1;
      for (int d = 0; d < x.dim(); ++d) (d < x.dim() - n ? planes : elements) *= x.size(d);
      if (planes == 0)
        return Outputs(new_empty(size, x.dtype(), x.device()),
                       new_empty(size, DType::kInt64, x.device()));
      const bool narrow = x.dtype() == DType::kFloat16 || x.dtype() == DType::kBFloat16;
      const int64_t flat_draws[] = {planes, n}, flat[] = {planes, elements};
      TensorBase u = op::slice(draws, 0, 0, x.dim() == n + 2 ? x.size(0) : 1);
      u = op::reshape(narrow ? op::_to_dtype(u, DType::kFloat32) : u, flat_draws);
      TensorBase at = places(x, u, window, out, n);
      const int64_t all[] = {planes, at.size(1) * at.size(2)};
      TensorBase windows =
          op::view(op::gather(op::reshape(x, flat), 1, op::view(at, all)), at.sizes().span());
      Outputs best = op::max(windows, -1, true);
      TensorBase from = op::gather(at, 2, best[1]);
      return Outputs(op::reshape(best[0], size.span()), op::reshape(from, size.span()));
    },
    .saves = "indices",
    .backward =
        [](Backward& b) {
          b.set(0, op::_pool_scatter(b.grad, b.results[1], b.shape(0).span(), b.ints(1).ndim()));
        },
});

}  // namespace tessera
