// Maximum pooling in windows whose places are drawn.
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/index.h"
#include "tessera/gen/join.h"
#include "tessera/gen/pool.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/call.h"

namespace tessera {

namespace {

const char* kSides[] = {"time", "height", "width"};

void check(const TensorBase& x, const Dims& kernel, const Dims& out, const TensorBase& samples) {
  const int n = kernel.ndim();
  const std::string name = "fractional_max_pool" + std::to_string(n) + "d";
  TS_CHECK(n == 2 || n == 3, "fractional_max_pool(): 2 or 3 sizes of a window, not ", n);
  TS_CHECK(out.ndim() == n, name, "(): output_size must either be a single Int or tuple of Ints");
  TS_CHECK(x.dim() == n + 1 || x.dim() == n + 2, name, "(): Expected ", n + 1, "D or ", n + 2,
           "D tensor, but got: ", x.sizes());
  for (int d = x.dim() - n - 1; d < x.dim(); ++d)
    TS_CHECK(x.size(d) > 0, name,
             "(): Expected input to have non-zero size for non-batch dimensions, but got ",
             x.sizes(), " with dimension ", d, " being empty.");
  for (int d = 0; d < n; ++d) {
    const int64_t in = x.size(d - n), k = kernel[static_cast<size_t>(d)],
                  o = out[static_cast<size_t>(d)];
    TS_CHECK(k > 0 && o > 0, name, "(): kernel_size and output_size must be greater than zero");
    TS_CHECK(o + k - 1 <= in, name, "(): pool ", kSides[d + 3 - n], " ", k,
             " too large relative to input ", kSides[d + 3 - n], " ", in);
  }
  TS_CHECK_IMPLEMENTED(is_floating(x.dtype()), "\"", name, "\" not implemented for ", x.dtype());
  TS_CHECK(samples.dtype() == x.dtype(), "Expect _random_samples to have the same dtype as input");
  TS_CHECK(samples.dim() == 3, "Expect _random_samples to have 3 dimensions, got ", samples.dim());
  const int64_t batch = x.dim() == n + 2 ? x.size(0) : 1;
  TS_CHECK(samples.size(0) >= batch,
           "Expect _random_samples.size(0) no less then input batch size.");
  TS_CHECK(samples.size(1) == x.size(-n - 1),
           "Expect _random_samples.size(1) equals to input channel size.");
  TS_CHECK(samples.size(2) == n, "Expect _random_samples.size(2) equals to ", n, "; got ",
           samples.size(2), ".");
}

// Where the windows start along one dimension: [batch, channels, out]. In the tensor's own dtype,
// rounded after every step, as the samples are.
TensorBase starts(const TensorBase& sample, int64_t in, int64_t kernel, int64_t out) {
  const DType dtype = sample.dtype();
  const Device device = sample.device();
  auto number = [&](int64_t v) { return op::full(Dims{}.span(), Scalar(v), dtype, device); };
  Dims last_size{sample.size(0), sample.size(1), 1};
  TensorBase last = op::full(last_size.span(), Scalar(in - kernel), DType::kInt64, device);
  if (out == 1) return last;
  TensorBase alpha = op::div(number(in - kernel), number(out - 1));
  auto whole = [&](const TensorBase& t) {
    return op::_to_dtype(op::trunc(op::mul(t, alpha)), DType::kInt64);
  };
  TensorBase at = op::arange(Scalar(out - 1), dtype, device);
  TensorBase before = op::sub(whole(op::add(sample, at)), whole(sample));
  TensorBase both[] = {before, last};
  return op::cat(both, 2);
}

Outputs pooled(const Call& c) {
  TensorBase x = c.tensor(0), samples = c.tensor(3);
  const Dims kernel = c.ints(1), out = c.ints(2);
  check(x, kernel, out, samples);
  const int n = kernel.ndim();
  Dims shape = x.sizes();
  for (int d = 0; d < n; ++d)
    shape[shape.size() - static_cast<size_t>(n - d)] = out[static_cast<size_t>(d)];
  const int64_t batch = x.dim() == n + 2 ? x.size(0) : 1, channels = x.size(-n - 1);
  samples = op::slice(samples, 0, 0, batch);
  // Places in a plane: of each window's first element, and of its elements from there.
  TensorBase first, within;
  int64_t step = 1, places = 1, windows = 1, elements = 1;
  for (int d = n - 1; d >= 0; --d) {
    const int64_t in = x.size(d - n), k = kernel[static_cast<size_t>(d)],
                  o = out[static_cast<size_t>(d)];
    // Samples are in the order of the dimensions of a volume, and in the other of an image.
    const int64_t which = n == 3 ? d : 1 - d;
    Dims start_size{batch, channels}, offset_size;
    for (int e = 0; e < n; ++e) {
      start_size.push_back(e == d ? o : 1);
      offset_size.push_back(e == d ? k : 1);
    }
    TensorBase start = starts(op::slice(samples, 2, which, which + 1), in, k, o);
    start = op::mul(op::reshape(start, start_size.span()), Scalar(step));
    TensorBase offset = op::arange(Scalar(k), DType::kInt64, x.device());
    offset = op::mul(op::reshape(offset, offset_size.span()), Scalar(step));
    first = first.defined() ? op::add(first, start) : start;
    within = within.defined() ? op::add(within, offset) : offset;
    step *= in;
    places *= in;
    windows *= o;
    elements *= k;
  }
  Dims plane{batch, channels, places}, column{batch, channels, windows, 1}, row{elements};
  Dims line{batch, channels, windows * elements}, table{batch, channels, windows, elements};
  TensorBase index = op::add(op::reshape(first, column.span()), op::reshape(within, row.span()));
  TensorBase values = op::gather(op::reshape(x, plane.span()), 2, op::reshape(index, line.span()));
  Outputs largest = op::max(op::reshape(values, table.span()), 3, true);
  return Outputs(op::reshape(largest[0], shape.span()),
                 op::reshape(op::gather(index, 3, largest[1]), shape.span()));
}

}  // namespace

// samples: numbers from [0, 1), one for each dimension of each channel.
TS_OP({
    .schema = "_fractional_max_pool(Tensor input, int[] kernel_size, int[] output_size, Tensor "
              "random_samples) -> (Tensor values, Tensor indices)",
    .forms = kFunction,
    .run = pooled,
    .saves = "indices",
    .backward =
        [](Backward& b) {
          b.set(0, op::_pool_scatter(b.grad, b.results[1], b.shape(0).span(), b.ints(1).ndim()));
        },
    .autocast = Autocast::kFloat32Cpu,
});

}  // namespace tessera
