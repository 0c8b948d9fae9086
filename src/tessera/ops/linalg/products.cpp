// Products of vectors, and of chains and batches of matrices.
#include "tessera/gen/binary.h"
#include "tessera/gen/linalg.h"
#include "tessera/gen/view.h"
#include "tessera/ops/linalg/common.h"

namespace tessera {

using linalg::conj;

TS_OP({
    .schema = "mv(Tensor self, Tensor vec) -> Tensor",
    .doc = "The product of a matrix and a vector.",
    .example = "torch.mv(torch.ones(2, 3), torch.ones(3))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &a = c.tensor(0), &v = c.tensor(1);
      check_same_device(c.op, c.args);
      TS_CHECK(a.dim() == 2 && v.dim() == 1, "vector + matrix @ vector expected, got 1, ", a.dim(),
               ", ", v.dim());
      TS_CHECK(a.size(1) == v.size(0), "size mismatch, got input (", a.size(0), "), mat (",
               a.size(0), "x", a.size(1), "), vec (", v.size(0), ")");
      TS_CHECK(a.dtype() == v.dtype(), "expected mat and vec to have the same dtype, but got ",
               dtype_title(a.dtype()), " and ", dtype_title(v.dtype()));
      return op::squeeze(op::mm(a, op::unsqueeze(v, 1)), 1);
    },
    .autocast = {Cast::kLower, Cast::kKeep},
    .exact_out = true,
    .samples = {{"T(3, 4), T(4)"}, {"T(3, 0), T(0)"}},
});

namespace {

void check_vectors(const Call& c) {
  const TensorBase &a = c.tensor(0), &b = c.tensor(1);
  check_same_device(c.op, c.args);
  TS_CHECK(a.dim() == 1 && b.dim() == 1, "1D tensors expected, but got ", a.dim(), "D and ",
           b.dim(), "D tensors");
  TS_CHECK(a.dtype() == b.dtype(), "dot : expected both vectors to have same dtype, but found ",
           dtype_title(a.dtype()), " and ", dtype_title(b.dtype()));
  TS_CHECK(a.numel() == b.numel(), "inconsistent tensor size, expected tensor [", a.numel(),
           "] and src [", b.numel(), "] to have the same number of elements, but got ", a.numel(),
           " and ", b.numel(), " elements respectively");
}

TensorBase dot(const TensorBase& a, const TensorBase& b) {
  return op::squeeze(op::squeeze(op::mm(op::unsqueeze(a, 0), op::unsqueeze(b, 1)), 1), 0);
}

}  // namespace

TS_OP({
    .schema = "dot(Tensor self, Tensor tensor) -> Tensor",
    .doc = "The dot product of two vectors.",
    .example = "torch.dot(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      check_vectors(c);
      return dot(c.tensor(0), c.tensor(1));
    },
    .autocast = {Cast::kPromote, Cast::kKeep},
    .exact_out = true,
    .samples = {{"T(4), T(4)"}, {"T(0), T(0)"}},
});

TS_OP({
    .schema = "vdot(Tensor self, Tensor other) -> Tensor",
    .doc = "The dot product of two vectors, the first one conjugated.",
    .example = "torch.vdot(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      check_vectors(c);
      return dot(conj(c.tensor(0)), c.tensor(1));
    },
    .autocast = {Cast::kPromote, Cast::kKeep},
    .exact_out = true,
    .samples = {{"T(4), T(4)"}},
});

TS_OP({
    .schema = "outer(Tensor self, Tensor vec2) -> Tensor",
    .also = "ger",
    .doc = "The products of each element of one vector with each of another.",
    .example = "torch.outer(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &a = c.tensor(0), &b = c.tensor(1);
      TS_CHECK(a.dim() == 1, "outer: Expected 1-D argument self, but got ", a.dim(), "-D");
      TS_CHECK(b.dim() == 1, "outer: Expected 1-D argument vec2, but got ", b.dim(), "-D");
      return op::mul(op::unsqueeze(a, 1), b);
    },
    .samples = {{"T(3), T(4)"}},
});

TS_OP({
    .schema = "inner(Tensor self, Tensor other) -> Tensor",
    .doc = "Dot products over the last dimension of two tensors, for all pairs of the others.",
    .example = "torch.inner(torch.tensor([1.0, 2.0]), torch.tensor([[3.0, 4.0], [5.0, 6.0]]))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &a = c.tensor(0), &b = c.tensor(1);
      check_same_device(c.op, c.args);
      if (a.dim() == 0 || b.dim() == 0) return op::mul(a, b);
      TS_CHECK(a.dtype() == b.dtype(), "expected both vectors to have same dtype, but found ",
               dtype_title(a.dtype()), " and ", dtype_title(b.dtype()));
      TS_CHECK(a.size(-1) == b.size(-1),
               "inner() the last dimension must match on both input tensors but got shapes ",
               a.sizes(), " and ", b.sizes());
      if (a.dim() == 1 && b.dim() == 1) return op::dot(a, b);
      int64_t of_a = a.dim() - 1, of_b = b.dim() - 1;
      return op::tensordot(a, b, {&of_a, 1}, {&of_b, 1});
    },
    .autocast = Autocast::kPromoteGpu,
    .exact_out = true,
    .samples = {{"T(4), T(4)"}, {"T(2, 4), T(3, 4)"}, {"T(), T(3)"}},
});

TS_OP({
    .schema = "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
    .doc = "Sums of products over given dimensions of both tensors; the others follow one another.",
    .example = "torch.tensordot(torch.ones(2, 3), torch.ones(3, 4), dims=1)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      TensorBase a = c.tensor(0), b = c.tensor(1);
      check_same_device(c.op, c.args);
      Dims over_a = c.ints(2), over_b = c.ints(3);
      TS_CHECK(over_a.size() == over_b.size(), "both dimension lists should have same length, got ",
               over_a, " and ", over_b);
      TS_CHECK(a.dtype() == b.dtype(), "both inputs should have same dtype, but got ",
               dtype_title(a.dtype()), " and ", dtype_title(b.dtype()));
      uint64_t in_a = 0, in_b = 0;
      int64_t inner = 1, rows = 1, columns = 1;
      for (size_t i = 0; i < over_a.size(); ++i) {
        over_a[i] = wrap_dim(over_a[i], a.dim());
        over_b[i] = wrap_dim(over_b[i], b.dim());
        TS_CHECK(!(in_a >> over_a[i] & 1) && !(in_b >> over_b[i] & 1), "dim ",
                 in_a >> over_a[i] & 1 ? over_a[i] : over_b[i],
                 " appears multiple times in the list of dims");
        in_a |= uint64_t{1} << over_a[i];
        in_b |= uint64_t{1} << over_b[i];
        const int64_t na = a.size(over_a[i]), nb = b.size(over_b[i]);
        TS_CHECK(na == nb || na == 1 || nb == 1,
                 "contracted dimensions need to match, but first has size ", na, " in dim ",
                 over_a[i], " and second has size ", nb, " in dim ", over_b[i]);
        // One of a repeated size: the others' products are summed with it.
        const int64_t n = na == 1 ? nb : na;
        auto repeat = [n](const TensorBase& t, int64_t d) {
          Dims shape = t.sizes();
          shape[static_cast<size_t>(d)] = n;
          return op::expand(t, shape.span());
        };
        if (na != n) a = repeat(a, over_a[i]);
        if (nb != n) b = repeat(b, over_b[i]);
        inner *= n;
      }
      Dims order_a, order_b = over_b, shape;
      for (int64_t d = 0; d < a.dim(); ++d)
        if (!(in_a >> d & 1)) {
          order_a.push_back(d);
          shape.push_back(a.size(d));
          rows *= a.size(d);
        }
      for (int64_t d : over_a) order_a.push_back(d);
      for (int64_t d = 0; d < b.dim(); ++d)
        if (!(in_b >> d & 1)) {
          order_b.push_back(d);
          shape.push_back(b.size(d));
          columns *= b.size(d);
        }
      Dims flat_a{rows, inner}, flat_b{inner, columns};
      TensorBase x = op::reshape(op::permute(a, order_a.span()), flat_a.span());
      TensorBase y = op::reshape(op::permute(b, order_b.span()), flat_b.span());
      return op::reshape(op::mm(x, y), shape.span());
    },
    .autocast = Autocast::kPromoteGpu,
});

namespace {

// The order of products of a chain that takes the fewest multiplications, by the classic table.
class Chain {
 public:
  explicit Chain(std::span<const TensorBase> all) : all_(all), n_(all.size()) {
    Dims p;
    for (const TensorBase& t : all) p.push_back(t.size(0));
    p.push_back(all.back().size(1));
    cost_.assign(n_ * n_, 0);
    cut_.assign(n_ * n_, 0);
    for (size_t length = 1; length < n_; ++length)
      for (size_t i = 0; i + length < n_; ++i) {
        size_t j = i + length;
        double best = -1;
        for (size_t k = i; k < j; ++k) {
          double cost = cost_[i * n_ + k] + cost_[(k + 1) * n_ + j] +
                        static_cast<double>(p[i]) * static_cast<double>(p[k + 1]) *
                            static_cast<double>(p[j + 1]);
          if (best >= 0 && cost >= best) continue;
          best = cost;
          cut_[i * n_ + j] = k;
        }
        cost_[i * n_ + j] = best;
      }
  }
  TensorBase product() const { return product(0, n_ - 1); }

 private:
  TensorBase product(size_t i, size_t j) const {
    if (i == j) return all_[i];
    size_t k = cut_[i * n_ + j];
    return op::mm(product(i, k), product(k + 1, j));
  }
  std::span<const TensorBase> all_;
  size_t n_;
  std::vector<double> cost_;
  std::vector<size_t> cut_;
};

}  // namespace

TS_OP({
    .schema = "linalg.multi_dot(Tensor[] tensors) -> Tensor",
    .doc = "The product of several matrices, in the order that takes the fewest operations; the "
           "first and the last may be vectors.",
    .example = "torch.linalg.multi_dot([torch.ones(2, 3), torch.ones(3, 4), torch.ones(4)])",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      std::span<const TensorBase> given = c.tensors(0);
      TS_CHECK(given.size() >= 2, "multi_dot(): expected at least 2 tensors but got ",
               given.size());
      check_same_device(c.op, c.args);
      std::vector<TensorBase> all(given.begin(), given.end());
      const DType dtype = all[0].dtype();
      Dims shape;
      TensorBase &first = all.front(), &last = all.back();
      TS_CHECK(first.dim() == 1 || first.dim() == 2,
               "multi_dot(): the first tensor must be 1D or 2D but got ", first.dim(), "D");
      TS_CHECK(last.dim() == 1 || last.dim() == 2,
               "multi_dot(): the last tensor must be 1D or 2D but got ", last.dim(), "D");
      if (first.dim() == 1)
        first = op::unsqueeze(first, 0);
      else
        shape.push_back(first.size(0));
      if (last.dim() == 1)
        last = op::unsqueeze(last, 1);
      else
        shape.push_back(last.size(1));
      for (size_t i = 0; i < all.size(); ++i) {
        TS_CHECK(all[i].dim() == 2, "multi_dot(): tensor ", i, " must be 2D but got ", all[i].dim(),
                 "D");
        TS_CHECK(all[i].dtype() == dtype,
                 "multi_dot(): all tensors must have be the same dtype but tensor 0 is ",
                 dtype_title(dtype), " and tensor ", i, " ", dtype_title(all[i].dtype()));
        if (i > 0)
          TS_CHECK(all[i - 1].size(1) == all[i].size(0), "multi_dot(): tensors ", i - 1, " and ", i,
                   " with shapes ", given[i - 1].sizes(), " and ", given[i].sizes(),
                   " cannot be multiplied");
      }
      return op::reshape(Chain(all).product(), shape.span());
    },
    .autocast = Autocast::kLower,
    .exact_out = true,
    .samples = {{"[T(2, 3), T(3, 4), T(4, 2)]"}, {"[T(3), T(3, 4), T(4)]"}, {"[T(2, 3), T(3)]"}},
});

TS_OP({
    .schema = "chain_matmul(Tensor... matrices) -> Tensor",
    .doc = "The product of matrices in the order that takes the fewest operations; the old name of "
           "linalg.multi_dot.",
    .example = "torch.chain_matmul(torch.ones(2, 3), torch.ones(3, 4), torch.ones(4, 1))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      std::span<const TensorBase> all = c.tensors(0);
      TS_CHECK(!all.empty(), "chain_matmul(): Expected one or more matrices");
      for (const TensorBase& t : all)
        TS_CHECK(t.dim() == 2, "Tensor dimension is ", t.dim(), ", expected 2 instead.");
      return all.size() == 1 ? all[0] : op::linalg_multi_dot(all);
    },
    .autocast = Autocast::kLower,
    .exact_out = true,
    .samples = {{"T(2, 3), T(3, 4), T(4, 2)"}},
});

namespace {

// A view with one dimension moved to the end.
TensorBase with_last(const TensorBase& t, int64_t dim) {
  dim = wrap_dim(dim, t.dim());
  Dims order;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (d != dim) order.push_back(d);
  order.push_back(dim);
  return op::permute(t, order.span());
}

}  // namespace

TS_OP({
    .schema = "linalg.vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor",
    .doc = "Dot products of vectors along a dimension, the first one conjugated.",
    .example = "torch.linalg.vecdot(torch.ones(2, 3), torch.ones(3))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      TensorBase x = c.tensor(0), y = c.tensor(1);
      check_same_device(c.op, c.args);
      TS_CHECK(is_differentiable(x.dtype()),
               "linalg.vecdot: Expected a floating point or complex tensor as input. Got ",
               dtype_title(x.dtype()));
      TS_CHECK(x.dtype() == y.dtype(),
               "linalg.vecdot: Expected x and y to have the same dtype. Got ",
               dtype_title(x.dtype()), " and ", dtype_title(y.dtype()), " instead");
      if (x.dim() == 1 && y.dim() == 1) return op::vdot(x, y);
      x = op::unsqueeze(conj(with_last(x, c.integer(2))), -2);
      y = op::unsqueeze(with_last(y, c.integer(2)), -1);
      return op::squeeze(op::squeeze(op::matmul(x, y), -1), -1);
    },
    .autocast = Autocast::kLower,
    .samples = {{"T(2, 3), T(2, 3)"}, {"T(2, 3), T(3)"}, {"T(3, 2), T(3, 2), dim=0"}},
});

}  // namespace tessera
