#include "second.h"
#include "tessera/gen/binary.h"
#include "tessera/gen/norm.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"

namespace tessera {

namespace {

void check_shapes(const char* name, const TensorBase& x, const Dims& shape,
                  const TensorBase& weight, const TensorBase& bias) {
  TS_CHECK(shape.ndim() >= 1,
           "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
           "element, but got normalized_shape = ",
           shape);
  TS_CHECK(!weight.defined() || weight.sizes() == shape,
           "Expected weight to be of same shape as normalized_shape, but got weight of shape ",
           weight.defined() ? weight.sizes() : Dims(), " and normalized_shape = ", shape);
  TS_CHECK(!bias.defined() || bias.sizes() == shape,
           "Expected bias to be of same shape as normalized_shape, but got bias of shape ",
           bias.defined() ? bias.sizes() : Dims(), " and normalized_shape = ", shape);
  bool fits = x.dim() >= shape.ndim();
  std::string wanted = "[*";
  for (int i = 0; i < shape.ndim(); ++i) {
    fits = fits && x.size(i - shape.ndim()) == shape[static_cast<size_t>(i)];
    wanted += ", " + std::to_string(shape[static_cast<size_t>(i)]);
  }
  TS_CHECK(fits, "Given normalized_shape=", shape, ", expected input with shape ", wanted,
           "], but got input of size", x.sizes());
  const bool takes_complex = std::string_view(name) == "rms_norm";
  TS_CHECK_IMPLEMENTED(is_floating(x.dtype()) || (takes_complex && is_complex(x.dtype())), "\"",
                       name, "\" not implemented for ", x.dtype());
  if (takes_complex) {  // promotes, as far as numbers of its kind go
    TS_CHECK(!weight.defined() || is_complex(x.dtype()) || !is_complex(weight.dtype()), name,
             "(): a complex weight for a real input");
    return;
  }
  check_parameter_dtypes(x, {&weight, &bias});
}

int64_t count(const Dims& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

// Rows of the normalised elements; those of an empty tensor from its leading sizes.
int64_t rows_of(const TensorBase& x, const Dims& shape) {
  int64_t rows = 1;
  for (int d = 0; d < x.dim() - shape.ndim(); ++d) rows *= x.size(d);
  return rows;
}

// By the mean of squares, not of their sizes: PyTorch's formula, of complex numbers.
TensorBase complex_rms_norm(const Call& c, const TensorBase& x, int ndim,
                            const TensorBase& weight) {
  Dims dims;
  for (int d = x.dim() - ndim; d < x.dim(); ++d) dims.push_back(d);
  const double eps = c.has(3) ? c.number(3) : x.dtype() == DType::kComplex128 ? 0x1p-52 : 0x1p-23;
  TensorBase mean = op::mean(op::mul(x, x), dims.span(), true);
  TensorBase y = op::mul(x, op::rsqrt(op::add(mean, Scalar(eps))));
  return weight.defined() ? op::mul(y, weight) : y;
}

}  // namespace

TS_OP({
    .schema = "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? "
              "bias, float eps) -> (Tensor, Tensor, Tensor)",
    .doc = "layer_norm with the mean and the inverse deviation it used.",
    .example = "torch.native_layer_norm(torch.tensor([[1.0, 3.0]]), [2], None, None, 1e-5)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& x = c.tensor(0);
      const Dims shape = c.ints(1);
      TensorBase weight = c.maybe(2), bias = c.maybe(3);
      check_shapes("layer_norm", x, shape, weight, bias);
      Outputs r =
          op::_row_norm(x, weight, bias, rows_of(x, shape), 1, count(shape), true, c.number(4));
      Dims stats = x.sizes();
      for (int i = 0; i < shape.ndim(); ++i) stats[stats.size() - 1 - static_cast<size_t>(i)] = 1;
      // Only the first result has a gradient.
      const DType dtype = given_stats_dtype(x, {weight, bias});
      auto plain = [&](const TensorBase& t) {
        return in_dtype(alias(t, stats, contiguous_strides(stats), t.storage_offset()), dtype);
      };
      return std::vector<TensorBase>{r[0], plain(r[1]), plain(r[2])};
    },
    .autocast = Autocast::kFloat32Gpu,
});

TS_OP({
    .schema = "nn.functional.layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, "
              "Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor",
    .also = "layer_norm",
    .doc = "Brings the last dimensions of each element to mean zero and variance one, then scales "
           "by weight and shifts by bias.",
    .example = "torch.nn.functional.layer_norm(torch.tensor([[1.0, 3.0]]), [2])",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& x = c.tensor(0);
      const Dims shape = c.ints(1);
      TensorBase weight = c.maybe(2), bias = c.maybe(3);
      check_shapes("layer_norm", x, shape, weight, bias);
      Outputs r =
          op::_row_norm(x, weight, bias, rows_of(x, shape), 1, count(shape), true, c.number(4));
      return r[0];
    },
    .autocast = Autocast::kFloat32Gpu,
    .samples = {{"T(3, 4), [4]"},
                {"T(2, 3, 4), [3, 4], T(3, 4), T(3, 4), 1e-3"},
                {"T(2, 5), [5], None, T(5)"},
                {"T(0, 4), [4]"}},
});

TS_OP({
    .schema = "nn.functional.rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, "
              "float? eps=None) -> Tensor",
    .also = "rms_norm",
    .doc = "Divides the last dimensions of each element by the root of their mean square, then "
           "scales by weight.",
    .example = "torch.nn.functional.rms_norm(torch.tensor([[1.0, 7.0]]), [2])",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& x = c.tensor(0);
      const Dims shape = c.ints(1);
      TensorBase weight = c.maybe(2);
      check_shapes("rms_norm", x, shape, weight, TensorBase());
      if (is_complex(x.dtype())) return complex_rms_norm(c, x, shape.ndim(), weight);
      // Without one, the machine's of the dtype it computes in.
      const double own = x.dtype() == DType::kFloat64 ? 0x1p-52 : 0x1p-23;
      Outputs r = op::_row_norm(x, weight, TensorBase(), rows_of(x, shape), 1, count(shape), false,
                                c.has(3) ? c.number(3) : own);
      return r[0];
    },
    .autocast = Autocast::kFloat32Gpu,
    .reference = "self / np.sqrt((self * self).mean(-1, keepdims=True) + 1.1920929e-7)",
});

}  // namespace tessera
