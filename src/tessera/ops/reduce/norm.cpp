#include "dims.h"
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/index.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/unary.h"
#include "tessera/ops/reduce_loops.h"

namespace tessera {

TS_REDUCE(norm1, (TS_FLOATS), T(0), abs(a), x + y, x)
TS_REDUCE(norm2, (TS_FLOATS), T(0), (a * a), x + y, sqrt(x))

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// |x|^p summed, to the power 1/p, in float at least.
TensorBase general(const TensorBase& x, double p, const Dims& dims, bool keepdim, DType out) {
  TensorBase wide = x;
  if (is_reduced_floating(x.dtype())) wide = op::_to_dtype(x, DType::kFloat32);
  TensorBase powers = op::pow(op::abs(wide), Scalar(p));
  TensorBase total = op::sum(powers, dims.span(), keepdim);
  TensorBase root = op::pow(total, Scalar(1 / p));
  return root.dtype() == out ? root : op::_to_dtype(root, out);
}

TensorBase vector_norm(const TensorBase& self, double p, const Dims& dims, bool keepdim,
                       DType out) {
  TensorBase x = is_complex(self.dtype()) ? op::abs(self) : self;
  if (p == kInfinity || p == -kInfinity) {
    TensorBase sizes = is_complex(self.dtype()) ? x : op::abs(x);
    TensorBase top = p > 0 ? op::amax(sizes, dims.span(), keepdim)
                           : op::amin(sizes, dims.span(), keepdim);
    return top.dtype() == out ? top : op::_to_dtype(top, out);
  }
  if (p == 0) {
    TensorBase some = op::_to_dtype(op::_to_dtype(x, DType::kBool), DType::kFloat32);
    return op::_to_dtype(op::sum(some, dims.span(), keepdim), out);
  }
  if (p == 1) return reduce(norm1_reduce, x, dims, keepdim, out);
  if (p == 2) return reduce(norm2_reduce, x, dims, keepdim, out);
  return general(x, p, dims, keepdim, out);
}

// Gradient by PyTorch's rules: none where the norm has none.
TensorBase norm_gradient(const TensorBase& x, const TensorBase& norm, const TensorBase& g, double p,
                         const Dims& dims) {
  auto without_zero = [](const TensorBase& t, const TensorBase& zero) {
    return op::masked_fill(t, op::eq(zero, 0), Scalar(0));
  };
  if (p == 0) return op::zeros_like(x);
  if (p == 1) return op::mul(op::sgn(x), g);
  if (p == 2) return op::mul(g, without_zero(op::div(x, norm), norm));
  if (p == kInfinity || p == -kInfinity) {
    TensorBase mask = op::_same(op::abs(x), norm);
    TensorBase count = op::sum(mask, dims.span(), true);
    return op::mul(op::sgn(x), op::mul(op::div(g, count), mask));
  }
  if (p < 1) {
    TensorBase scaled = op::mul(op::sgn(x), without_zero(op::pow(op::abs(x), Scalar(p - 1)), x));
    return op::mul(scaled, op::mul(g, op::pow(norm, Scalar(1 - p))));
  }
  TensorBase scale = without_zero(op::div(g, op::pow(norm, Scalar(p - 1))), norm);
  if (p < 2)
    return op::mul(op::mul(op::sgn(x), op::pow(op::abs(x), Scalar(p - 1))), scale);
  return op::mul(op::mul(x, op::pow(op::abs(x), Scalar(p - 2))), scale);
}

}  // namespace

TS_OP({
    .schema = "linalg.vector_norm(Tensor x, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
              "dtype? dtype=None) -> Tensor",
    .doc = "The norm of all elements as one vector, or of those along the given dimensions: "
           "(sum |x|^ord)^(1/ord), the largest or smallest size for inf and -inf, the number of "
           "elements that are not zero for 0.",
    .example = "torch.linalg.vector_norm(torch.tensor([3.0, 4.0]))",
    .kind = Kind::kReduction,
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      TS_CHECK(is_differentiable(self.dtype()),
               "linalg.vector_norm: Expected a floating point or complex tensor as input. Got ",
               self.dtype());
      const double p = c.number(1);
      const DType dtype = c.dtype(4, self.dtype());
      if (c.has(4)) {
        TS_CHECK(is_differentiable(dtype),
                 "linalg.vector_norm: dtype should be floating point or complex. Got ", dtype);
        TS_CHECK(is_complex(self.dtype()) == is_complex(dtype),
                 "linalg.vector_norm: dtype should be ",
                 is_complex(self.dtype()) ? "complex" : "real", " for ",
                 is_complex(self.dtype()) ? "complex" : "real", " inputs, but got ", dtype);
        TS_CHECK(promote(self.dtype(), dtype) == dtype,
                 "linalg.vector_norm: the dtype of the input ", self.dtype(),
                 " should be convertible without narrowing to the specified dtype ", dtype);
      }
      const Dims dims = reduced_dims(c, 2, self.dim());
      if (self.numel() == 0 && (p < 0 || p == kInfinity)) {
        TS_CHECK(c.has(2) && !c.args[2].ints.empty(), "linalg.vector_norm cannot compute the ", p,
                 " norm on an empty tensor because the operation does not have an identity");
        for (int64_t d : dims)
          TS_CHECK(self.size(d) != 0, "linalg.vector_norm cannot compute the ", p,
                   " norm on the dimension ", d,
                   " because this dimension is empty and the operation does not have an identity");
      }
      TensorBase x = self.dtype() == dtype ? self : op::_to_dtype(self, dtype);
      return vector_norm(x, p, dims, c.flag(3), real_dtype(dtype));
    },
    .saves = "x result",
    .backward =
        [](Backward& b) {
          TensorBase x = b.tensor(0);
          const Dims& shape = b.shape(0);
          Dims dims = dims_of(b, 2, shape.ndim());
          TensorBase g = with_reduced_dims(b.grad, dims, b.flag(3), shape);
          TensorBase norm = with_reduced_dims(b.result, dims, b.flag(3), shape);
          if (real_dtype(x.dtype()) != norm.dtype())
            x = op::_to_dtype(x, is_complex(x.dtype()) ? complex_dtype(norm.dtype()) : norm.dtype());
          b.set(0, norm_gradient(x, norm, g, b.number(1), dims));
        },
    .autocast = Autocast::kFloat32,
    .samples = {{"T(3, 4)"},
                {"T(3, 4), 1, 0"},
                {"T(3, 4), 3, [0, 1], True"},
                {"T(3, 4), float('inf'), 1"},
                {"T(3, 4), 1.5"},
                {"T(3, 4), 0.5, 0"},
                {"T(3, 4), 0"}},
});

namespace {

// torch.norm is linalg.vector_norm, with a dtype that the input is converted to first.
Outputs norm_by(const Call& c, double p) {
  const TensorBase& self = c.tensor(0);
  std::optional<std::span<const int64_t>> dims;
  if (c.has(2)) dims = c.args[2].ints;
  TS_CHECK(is_differentiable(c.dtype(4, self.dtype())),
           "norm(): input dtype should be either floating point or complex. Got ",
           c.dtype(4, self.dtype()), " instead.");
  TensorBase x = self;
  if (c.has(4) && c.args[4].dtype != self.dtype()) {
    DType to = c.args[4].dtype;
    x = op::_to_dtype(self, is_complex(self.dtype()) ? complex_dtype(to) : to);
  }
  return op::linalg_vector_norm(x, Scalar(p), dims, c.flag(3));
}

}  // namespace

TS_OP({
    .schema = "norm(Tensor self, Scalar? p=2, int[1]? dim=None, bool keepdim=False, *, dtype? "
              "dtype=None) -> Tensor",
    .doc = "The p-norm of all elements, or of those along the given dimensions.",
    .example = "torch.norm(torch.tensor([3.0, 4.0]))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) { return norm_by(c, c.has(1) ? c.number(1) : 2); },
    .autocast = Autocast::kFloat32,
    .samples = {{"T(3, 4)"}, {"T(3, 4), 1, 0"}, {"T(3, 4), 3, [0, 1], True"}},
});
TS_OP({
    .schema = "norm(Tensor self, str p, int[1]? dim=None, bool keepdim=False, *, dtype? "
              "dtype=None) -> Tensor",
    .doc = "The Frobenius norm ('fro') or the nuclear norm of matrices ('nuc').",
    .example = "torch.norm(torch.tensor([[3.0], [4.0]]), 'fro')",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      if (c.text(1) == "fro") return norm_by(c, 2);
      TS_CHECK(c.text(1) == "nuc", "only valid string values are 'fro' and 'nuc', found: ",
               c.text(1));
      raise(ErrorKind::kNotImplemented, "norm(): 'nuc'");
    },
    .autocast = Autocast::kFloat32,
    .samples = {{"T(3, 4), 'fro'"}, {"T(3, 4), 'fro', 1"}},
});

}  // namespace tessera
