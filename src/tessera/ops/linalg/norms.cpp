// Norms of vectors and matrices.
#include <cmath>

#include "tessera/gen/binary.h"
#include "tessera/gen/bitwise.h"
#include "tessera/gen/compare.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/linalg.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/ternary.h"
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/in_dtype.h"
#include "tessera/ops/linalg/common.h"
#include "tessera/ops/reduce/dims.h"
#include "tessera/ops/reduce_loops.h"

namespace tessera {

using namespace linalg;

namespace {

TS_REDUCE(norm_two, (TS_FLOATS), T(0), a* a, x + y, sqrt(x))
TS_REDUCE(norm_one, (TS_FLOATS), T(0), abs(a), x + y, x)
TS_REDUCE(norm_zero, (TS_FLOATS), T(0), select(a != T(0), T(1), T(0)), x + y, x)

// Dtypes of `dtype=`: the input is converted before anything is computed.
TensorBase converted(const Call& c, int dtype, std::string_view name) {
  const TensorBase& self = c.tensor(0);
  TS_CHECK(is_differentiable(self.dtype()), name,
           ": Expected a floating point or complex tensor as input. Got ",
           dtype_title(self.dtype()));
  if (!c.has(dtype)) return self;
  const DType to = c.args[dtype].dtype;
  TS_CHECK(is_differentiable(to), name, ": dtype should be floating point or complex, but got ",
           to);
  TS_CHECK(is_complex(self.dtype()) == is_complex(to), name, ": dtype should be ",
           is_complex(self.dtype()) ? "complex" : "real", " for ",
           is_complex(self.dtype()) ? "complex" : "real", " inputs, but got ", to);
  TS_CHECK(promote(self.dtype(), to) == to, name, ": the dtype of the input (", self.dtype(),
           ") should be convertible without narrowing to the specified dtype (", to, ")");
  return in_dtype(self, to);
}

}  // namespace

// Over `dim` (all where that is empty), of real numbers.
TS_OP({
    .schema = "_vector_norm(Tensor self, float ord, int[] dim, bool keepdim) -> Tensor",
    .kind = Kind::kReduction,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      const double p = c.number(1);
      Dims dims = reduced_dims(c, 2, self.dim());
      const bool keep = c.flag(3);
      if (p == 2) return reduce(norm_two_reduce, self, dims, keep, self.dtype());
      if (p == 1) return reduce(norm_one_reduce, self, dims, keep, self.dtype());
      if (p == 0) return reduce(norm_zero_reduce, self, dims, keep, self.dtype());
      TensorBase sizes = op::abs(self);
      if (std::isinf(p))
        return p > 0 ? op::amax(sizes, dims.span(), keep) : op::amin(sizes, dims.span(), keep);
      const DType dtype = self.dtype();
      if (is_reduced_floating(dtype)) sizes = op::_to_dtype(sizes, DType::kFloat32);
      TensorBase sum = op::sum(op::pow(sizes, Scalar(p)), dims.span(), keep);
      TensorBase out = op::pow(sum, Scalar(1 / p));
      return in_dtype(out, dtype);
    },
    .saves = "self result",
    .backward =
        [](Backward& b) {
          const TensorBase& x = b.tensor(0);
          const double p = b.number(1);
          Dims dims = dims_of(b, 2, x.dim());
          TensorBase g = with_reduced_dims(b.grad, dims, b.flag(3), x.sizes());
          TensorBase norm = with_reduced_dims(b.result, dims, b.flag(3), x.sizes());
          if (p == 0) return b.set(0, op::zeros_like(x));
          if (p == 1) return b.set(0, op::mul(op::sgn(x), g));
          // Where the norm is zero, or an element that counts by a negative power, the
          // subgradient is zero.
          auto where_not_zero = [](const TensorBase& of, const TensorBase& t) {
            return op::where(op::eq(of, Scalar(0)), Scalar(0.0), t);
          };
          if (p == 2) return b.set(0, op::mul(g, where_not_zero(norm, op::div(x, norm))));
          TensorBase sizes = op::abs(x);
          if (std::isinf(p)) {
            TensorBase same = op::logical_or(op::eq(sizes, norm), op::isnan(x));
            TensorBase hits = op::_to_dtype(same, x.dtype());
            TensorBase count = op::sum(hits, dims.span(), true);
            return b.set(0, op::mul(op::mul(op::sgn(x), hits), op::div(g, count)));
          }
          if (p < 1) {
            TensorBase t = where_not_zero(x, op::mul(op::sgn(x), op::pow(sizes, Scalar(p - 1))));
            return b.set(0, op::mul(t, op::mul(g, op::pow(norm, Scalar(1 - p)))));
          }
          if (p < 2) {
            TensorBase t = where_not_zero(x, op::mul(op::sgn(x), op::pow(sizes, Scalar(p - 1))));
            TensorBase scale = where_not_zero(norm, op::div(g, op::pow(norm, Scalar(p - 1))));
            return b.set(0, op::mul(t, scale));
          }
          TensorBase ratio = where_not_zero(norm, op::div(sizes, norm));
          b.set(0, op::mul(op::mul(op::sgn(x), op::pow(ratio, Scalar(p - 1))), g));
        },
});

TS_OP({
    .schema = "linalg.vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, "
              "*, dtype? dtype=None) -> Tensor",
    .doc = "(sum of |x|^ord)^(1 / ord) of all elements or of those along dimensions; inf is the "
           "largest, -inf the smallest, 0 the number that are not zero.",
    .example = "torch.linalg.vector_norm(torch.tensor([3.0, 4.0]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      TensorBase x = converted(c, 4, "linalg.vector_norm");
      TS_CHECK(!c.scalar(1).is_complex(),
               "linalg.vector_norm: Expected a non-complex scalar as the order of norm.");
      const double p = c.number(1);
      Dims dims = reduced_dims(c, 2, x.dim());
      if (p < 0 || std::isinf(p)) {
        int64_t count = 1;
        for (int64_t d : dims) count *= x.size(d);
        TS_CHECK(count > 0 || x.numel() > 0, "linalg.vector_norm cannot compute the ", p,
                 " norm on an empty tensor because the operation does not have an identity");
      }
      if (is_complex(x.dtype())) x = op::abs(x);
      return op::_vector_norm(x, p, dims.span(), c.flag(3));
    },
    .autocast = Autocast::kFloat32Gpu,
    .exact_out = true,
    .samples = {{"T(3, 4)"},
                {"T(3, 4), 1, 0"},
                {"T(3, 4), 3, (0, 1), True"},
                {"T(3, 4), 2.5, 1"},
                {"T(3, 4), float('inf'), 1"}},
});

namespace {

// dim=(-2, -1) unless given: two different ones.
Dims matrix_dims(const Call& c, int arg, int ndim) {
  TS_CHECK(ndim >= 2, "linalg.matrix_norm: The input tensor A must have at least 2 dimensions.");
  Dims dims = c.has(arg) ? c.ints(arg) : Dims{-2, -1};
  TS_CHECK(dims.size() == 2, "linalg.matrix_norm: dim must be a 2-tuple. Got ", dims);
  for (int64_t& d : dims) d = wrap_dim(d, ndim);
  TS_CHECK(dims[0] != dims[1], "linalg.matrix_norm: dims must be different. Got (", dims[0], ", ",
           dims[1], ")");
  return dims;
}

// The singular values of the matrices along two dimensions.
TensorBase values_along(const TensorBase& a, const Dims& dims) {
  Dims order;
  for (int64_t d = 0; d < a.dim(); ++d)
    if (d != dims[0] && d != dims[1]) order.push_back(d);
  order.push_back(dims[0]);
  order.push_back(dims[1]);
  return op::linalg_svdvals(op::permute(a, order.span()));
}

// With ones where the two dimensions were.
TensorBase with_kept(const TensorBase& t, const Dims& dims, bool keep) {
  if (!keep) return t;
  const int64_t low = std::min(dims[0], dims[1]), high = std::max(dims[0], dims[1]);
  return op::unsqueeze(op::unsqueeze(t, low), high);
}

// Of no norms at all the largest is 0; a smallest there is not.
TensorBase largest(const TensorBase& norms, int64_t dim, bool keep) {
  return norms.size(dim) == 0 ? op::sum(norms, over(dim), keep) : op::amax(norms, over(dim), keep);
}

Outputs matrix_norm(const Call& c) {
  TensorBase a = converted(c, 4, "linalg.matrix_norm");
  Dims dims = matrix_dims(c, 2, a.dim());
  const bool keep = c.flag(3);
  constexpr int64_t last = -1;
  const Value& ord = c.args[1];
  if (!ord.is_scalar()) {
    TS_CHECK(ord.string == "fro" || ord.string == "nuc", "linalg.matrix_norm: Order ", ord.string,
             " not supported.");
    if (ord.string == "fro") return op::linalg_vector_norm(a, Scalar(2), dims.span(), keep);
    check_lapack_dtype(a, "linalg.matrix_norm");
    return with_kept(op::sum(values_along(a, dims), over(last), false), dims, keep);
  }
  const double p = ord.scalar.to_double(), size = std::abs(p);
  TS_CHECK(size == 2 || size == 1 || std::isinf(p), "linalg.matrix_norm: Order ", p,
           " not supported.");
  if (size == 2) {
    check_lapack_dtype(a, "linalg.matrix_norm");
    TensorBase s = values_along(a, dims);
    s = p > 0 ? largest(s, last, false) : op::amin(s, over(last), false);
    return with_kept(s, dims, keep);
  }
  // Largest or smallest sum of columns (1) or rows (inf).
  const int64_t summed = size == 1 ? dims[0] : dims[1];
  int64_t other = size == 1 ? dims[1] : dims[0];
  TensorBase sums = op::linalg_vector_norm(a, Scalar(1), std::span(&summed, 1), keep);
  if (!keep && other > summed) --other;
  return p > 0 ? largest(sums, other, keep) : op::amin(sums, over(other), keep);
}

}  // namespace

TS_OP({
    .schema = "linalg.matrix_norm(Tensor self, Scalar ord, int[]? dim=None, bool keepdim=False, *, "
              "dtype? dtype=None) -> Tensor",
    .doc = "A norm of each matrix: 'fro' (the root of the sum of squares), 'nuc' (the sum of "
           "singular values), 2 or -2 (the largest, smallest of them), 1 or -1 (sums of columns), "
           "inf or -inf (sums of rows). dim is (-2, -1) unless told.",
    .example = "torch.linalg.matrix_norm(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))",
    .forms = kFunction | kOut,
    .run = matrix_norm,
    .autocast = Autocast::kFloat32Gpu,
    .exact_out = true,
    .samples = {{"T(3, 4), 1"}, {"T(2, 3, 4), float('inf'), (0, 2), True"}},
});

TS_OP({
    .schema =
        "linalg.matrix_norm(Tensor self, str ord=\"fro\", int[]? dim=None, bool keepdim=False, "
        "*, dtype? dtype=None) -> Tensor",
    .forms = kFunction | kOut,
    .run = matrix_norm,
    .autocast = Autocast::kFloat32Gpu,
    .exact_out = true,
    .samples = {{"T(3, 4)"}},
});

TS_OP({
    .schema = "linalg.norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, "
              "dtype? dtype=None) -> Tensor",
    .doc = "A norm of vectors or, with ord and two dimensions, of matrices.",
    .example = "torch.linalg.norm(torch.tensor([3.0, 4.0]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& x = c.tensor(0);
      std::optional<DType> dtype = c.has(4) ? std::optional(c.args[4].dtype) : std::nullopt;
      std::optional<std::span<const int64_t>> dim;
      if (c.has(2)) {
        dim = c.args[2].ints;
        TS_CHECK(dim->size() == 1 || dim->size() == 2,
                 "linalg.norm: If dim is specified, it must be of length 1 or 2. Got ", Dims(*dim));
      } else if (c.has(1)) {
        TS_CHECK(x.dim() == 1 || x.dim() == 2,
                 "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. "
                 "Got ",
                 x.dim(), "D.");
      }
      const bool matrices = c.has(1) && (dim ? dim->size() == 2 : x.dim() == 2);
      if (matrices) return op::linalg_matrix_norm(x, c.scalar(1), dim, c.flag(3), dtype);
      return op::linalg_vector_norm(x, c.has(1) ? c.scalar(1) : Scalar(2), dim, c.flag(3), dtype);
    },
    .autocast = Autocast::kFloat32Gpu,
    .exact_out = true,
    .samples = {{"T(3, 4)"}, {"T(3, 4), 1"}, {"T(3), 3"}, {"T(2, 3, 4), 2, 1"}},
});

TS_OP({
    .schema = "linalg.norm(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, dtype? "
              "dtype=None) -> Tensor",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& x = c.tensor(0);
      std::optional<DType> dtype = c.has(4) ? std::optional(c.args[4].dtype) : std::nullopt;
      std::optional<std::span<const int64_t>> dim;
      if (c.has(2)) {
        dim = c.args[2].ints;
        TS_CHECK(dim->size() == 1 || dim->size() == 2,
                 "linalg.norm: If dim is specified, it must be of length 1 or 2. Got ", Dims(*dim));
      } else {
        TS_CHECK(x.dim() == 1 || x.dim() == 2,
                 "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. "
                 "Got ",
                 x.dim(), "D.");
      }
      return op::linalg_matrix_norm(x, c.text(1), dim, c.flag(3), dtype);
    },
    .autocast = Autocast::kFloat32Gpu,
    .exact_out = true,
});

TS_OP({
    .schema = "norm(Tensor self, Scalar? p, int[1]? dim=None, bool keepdim=False, *, dtype? "
              "dtype=None) -> Tensor",
    .doc = "The old norm: that of all elements, or of those along dimensions, as vectors; p='nuc' "
           "is the sum of a matrix' singular values.",
    .example = "torch.norm(torch.tensor([3.0, 4.0]))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      std::optional<DType> dtype = c.has(4) ? std::optional(c.args[4].dtype) : std::nullopt;
      std::optional<std::span<const int64_t>> dim;
      if (c.has(2)) dim = c.args[2].ints;
      return op::linalg_vector_norm(c.tensor(0), c.has(1) ? c.scalar(1) : Scalar(2), dim, c.flag(3),
                                    dtype);
    },
    .autocast = Autocast::kFloat32Gpu,
    .exact_out = true,
    .samples = {{"T(3, 4), 2"}, {"T(3, 4), 3, 1, True"}},
});

TS_OP({
    .schema = "norm(Tensor self, str p=\"fro\", int[1]? dim=None, bool keepdim=False, *, dtype? "
              "dtype=None) -> Tensor",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& x = c.tensor(0);
      std::optional<DType> dtype = c.has(4) ? std::optional(c.args[4].dtype) : std::nullopt;
      std::optional<std::span<const int64_t>> dim;
      if (c.has(2)) dim = c.args[2].ints;
      if (c.text(1) == "fro") return op::linalg_vector_norm(x, Scalar(2), dim, c.flag(3), dtype);
      TS_CHECK(c.text(1) == "nuc", "only valid string values are 'fro' (None) or 'nuc', found ",
               c.text(1));
      return op::linalg_matrix_norm(x, std::string_view("nuc"), dim, c.flag(3), dtype);
    },
    .autocast = Autocast::kFloat32Gpu,
    .exact_out = true,
    .samples = {{"T(3, 4)"}},
});

}  // namespace tessera
