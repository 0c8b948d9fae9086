// An index for every element, along one dimension: gather and the scatters.
#include "tessera/base/deterministic.h"
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/index.h"
#include "tessera/gen/view.h"
#include "tessera/ops/index/reduce_along.h"
#include "tessera/ops/loops.h"

namespace tessera {

namespace {

void check_index_type(const char* name, const TensorBase& index) {
  TS_CHECK(index.numel() == 0 || index.dtype() == DType::kInt64 || index.dtype() == DType::kInt32,
           name, "(): Expected dtype int32/int64 for index");
}

int at_least_one(int ndim) { return ndim > 0 ? ndim : 1; }

// No larger than self but along dim, and of as many dimensions.
void check_index_shape(const TensorBase& self, int dim, const TensorBase& index) {
  TS_CHECK(at_least_one(self.dim()) == at_least_one(index.dim()),
           "Index tensor must have the same number of dimensions as ", "input tensor");
  for (int d = 0; d < index.dim(); ++d)
    TS_CHECK(d == dim || self.dim() == 0 || index.sizes()[d] <= self.sizes()[d],
             "Size does not match at dimension ", d, " expected index ", index.sizes(),
             " to be no larger than self ", self.sizes(), " apart from dimension ", dim);
}

}  // namespace

TS_OP({
    .schema = "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    .doc = "Along a dimension, the element that each element of index names.",
    .example = "torch.gather(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([[0, 0], [1, 0]]))",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &self = c.tensor(0), &index = c.tensor(2);
      TS_CHECK_IMPLEMENTED(!c.flag(3), "gather(): sparse_grad=True is not implemented");
      int64_t dim = wrap_dim(c.integer(1), self.dim());
      check_index_type("gather", index);
      check_same_device(c.op, c.args);
      TensorBase out = new_empty(index.sizes(), self.dtype(), self.device());
      if (index.numel() == 0) return out;
      check_index_shape(self, static_cast<int>(dim), index);
      TensorBase to = at_least_1d(out);
      TensorBase in[] = {at_least_1d(self), at_least_1d(as_index(index, self))};
      launch("gather", {&to, 1}, in, {&dim, 1});
      return out;
    },
    .saves = "index",
    .backward =
        [](Backward& b) {
          TensorBase whole = op::new_zeros(b.grad, b.shape(0).span());
          b.set(0, op::scatter_add_(whole, b.integer(1), b.tensor(2), b.grad));
        },
    .exact_out = true,
    .samples = {{"T(5, 4), 0, I([[0, 4, 2], [3, 3, 1]], 5)"},
                {"T(2, 3), 1, I([[2], [0]], 3)"},
                {"T(), 0, I(0, 1)"}},
});

namespace {

void check_scatter(const Call& c, const TensorBase* src) {
  const TensorBase &self = c.tensor(0), &index = c.tensor(2);
  int dim = wrap_dim(c.integer(1), self.dim());
  check_index_type("scatter", index);
  TS_CHECK(!src || src->dtype() == self.dtype(),
           "scatter(): Expected self.dtype to be equal to src.dtype");
  check_same_device(c.op, c.args);
  if (index.numel() == 0) return;
  TS_CHECK(at_least_one(self.dim()) == at_least_one(index.dim()),
           "Index tensor must have the same number of dimensions as self tensor");
  bool fits = true;
  for (int d = 0; d < index.dim(); ++d)
    fits &= d == dim || self.dim() == 0 || index.sizes()[d] <= self.sizes()[d];
  if (!src) {
    TS_CHECK(fits, "Expected index ", index.sizes(), " to be no larger than self ", self.sizes(),
             " apart from dimension ", dim);
    return;
  }
  TS_CHECK(at_least_one(src->dim()) == at_least_one(index.dim()),
           "Index tensor must have the same number of dimensions as src tensor");
  for (int d = 0; d < index.dim(); ++d)
    fits &= src->dim() == 0 || index.sizes()[d] <= src->sizes()[d];
  TS_CHECK(fits, "Expected index ", index.sizes(), " to be no larger than self ", self.sizes(),
           " apart from dimension ", dim, " and to be no larger than src ", src->sizes());
}

// Writes src, or the part of it that index covers.
void scatter_into(const TensorBase& out, int64_t dim, const TensorBase& index_,
                  const TensorBase& src_, Combine combine) {
  if (index_.numel() == 0) return;
  TensorBase index = at_least_1d(as_index(apart_from(out, index_), out));
  TensorBase src = apart_from(out, src_);
  src = src.dim() == 0 ? alias(src, index.sizes(), Dims(index.sizes().size()), src.storage_offset())
                       : alias(src, index.sizes(), src.strides(), src.storage_offset());
  TensorBase to = at_least_1d(out), in[] = {index, src};
  int64_t ints[] = {wrap_dim(dim, to.dim()), static_cast<int64_t>(combine), deterministic()};
  launch("scatter", {&to, 1}, in, ints);
}

// 16-bit floats are added up in float32 and rounded once.
template <class F>
void in_float(const TensorBase& out, const TensorBase& src, F&& f) {
  if (!is_reduced_floating(out.dtype())) return f(out, src);
  TensorBase wide = op::_to_dtype(out, DType::kFloat32);
  f(wide, op::_to_dtype(src, DType::kFloat32));
  copy_into(out, wide, false);
}

// A gradient of the index's shape as one of src's, which may be larger.
TensorBase grown(const TensorBase& g, const Dims& shape) {
  if (g.sizes() == shape) return g;
  if (shape.empty()) return op::reshape(g, {});
  TensorBase whole = op::new_zeros(g, shape.span());
  TensorBase part = whole;
  for (int d = 0; d < g.dim(); ++d) part = op::slice(part, d, 0, g.sizes()[d]);
  op::copy_(part, g);
  return whole;
}

Combine old_reduce(const Call& c, int arg) {
  if (!c.has(arg)) return Combine::kAssign;
  TS_CHECK(c.text(arg) == "add" || c.text(arg) == "multiply",
           "reduce argument must be either add or multiply.");
  return c.text(arg) == "add" ? Combine::kAdd : Combine::kMul;
}

void check_has_gradient(Backward& b) {
  TS_CHECK_IMPLEMENTED(!b.has(4), "the derivative for 'scatter' with reduce is not implemented");
}

}  // namespace

TS_OP({
    .schema = "scatter(Tensor self, int dim, Tensor index, Tensor src, *, str? reduce=None) -> "
              "Tensor",
    .doc = "self with the elements of src written where index names, along a dimension; with "
           "reduce=\"add\" or \"multiply\" combined with what is there.",
    .example = "torch.zeros(2, 2).scatter(1, torch.tensor([[1], [0]]), torch.ones(2, 1))",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kInplace | kOut,
    .run = [](const Call& c) -> Outputs {
      check_scatter(c, &c.tensor(3));
      Combine combine = old_reduce(c, 4);
      TensorBase out = target(c);
      scatter_into(out, c.integer(1), c.tensor(2), c.tensor(3), combine);
      return out;
    },
    .saves = "index",
    .backward =
        [](Backward& b) {
          check_has_gradient(b);
          if (b.wants(0)) b.set(0, op::scatter(b.grad, b.integer(1), b.tensor(2), Scalar(0)));
          if (b.wants(3))
            b.set(3, grown(op::gather(b.grad, b.integer(1), b.tensor(2)), b.shape(3)));
        },
    .exact_out = true,
    .updates_self = true,
    .samples = {{"T(5, 3), 0, I([[0, 4, 2], [3, 3, 1]], 5), T(2, 3)"},
                {"T(5, 3), 1, I([[0, 2]], 3), T(1, 2)"}},
});

TS_OP({
    .schema = "scatter(Tensor self, int dim, Tensor index, Scalar value, *, str? reduce=None) -> "
              "Tensor",
    .doc = "self with a number written where index names, along a dimension.",
    .example = "torch.zeros(2, 2).scatter(1, torch.tensor([[1], [0]]), 5.0)",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kInplace | kOut,
    .run = [](const Call& c) -> Outputs {
      check_scatter(c, nullptr);
      Combine combine = old_reduce(c, 4);
      TensorBase out = target(c);
      scatter_into(out, c.integer(1), c.tensor(2), number_like(c.scalar(3), out), combine);
      return out;
    },
    .saves = "index",
    .backward =
        [](Backward& b) {
          check_has_gradient(b);
          b.set(0, op::scatter(b.grad, b.integer(1), b.tensor(2), Scalar(0)));
        },
    .exact_out = true,
    .updates_self = true,
    .samples = {{"T(5, 3), 0, I([[0, 4, 2], [3, 3, 1]], 5), 2.5"}},
});

TS_OP({
    .schema = "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    .doc = "self with the elements of src added where index names, along a dimension.",
    .example = "torch.zeros(3).scatter_add(0, torch.tensor([0, 0, 2]), torch.ones(3))",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kInplace | kOut,
    .run = [](const Call& c) -> Outputs {
      check_scatter(c, &c.tensor(3));
      TensorBase out = target(c);
      if (c.tensor(2).numel() > 0)
        in_float(out, c.tensor(3), [&](const TensorBase& to, const TensorBase& src) {
          scatter_into(to, c.integer(1), c.tensor(2), src, Combine::kAdd);
        });
      return out;
    },
    .saves = "index",
    .backward =
        [](Backward& b) {
          b.set(0, b.grad);
          if (b.wants(3))
            b.set(3, grown(op::gather(b.grad, b.integer(1), b.tensor(2)), b.shape(3)));
        },
    .autocast = Autocast::kPromoteGpu,
    .exact_out = true,
    .updates_self = true,
    .samples = {{"T(5, 3), 0, I([[0, 4, 2], [0, 3, 2]], 5), T(2, 3)"},
                {"T(5, 3), 1, I([[0, 0]], 3), T(1, 2)"}},
});

namespace {

Spread scatter_spread(int64_t dim, const TensorBase& index) {
  Spread s;
  s.dim = dim;
  s.index = index;
  s.read = [](const TensorBase& t, int64_t d, const TensorBase& i) { return op::gather(t, d, i); };
  s.add = [](const TensorBase& t, int64_t d, const TensorBase& i, const TensorBase& source) {
    return op::scatter_add(t, d, i, source);
  };
  s.clear = [](const TensorBase& t, int64_t d, const TensorBase& i) {
    return op::scatter(t, d, i, Scalar(0));
  };
  s.reduce = [](const TensorBase& t, int64_t d, const TensorBase& i, const TensorBase& source,
                std::string_view how, bool include_self) {
    return op::scatter_reduce(t, d, i, source, how, include_self);
  };
  s.no_second_gradient =
      "scatter_reduce(): Double backward is unsupported for src when >1 zeros in src are scattered "
      "to the same position in self";
  return s;
}

}  // namespace

TS_OP({
    .schema = "scatter_reduce(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, "
              "bool include_self=True) -> Tensor",
    .doc = "self with the elements of src combined where index names: \"sum\", \"prod\", \"mean\", "
           "\"amax\" or \"amin\" of them, and of self's element unless include_self is False.",
    .example = "torch.ones(3).scatter_reduce(0, torch.tensor([0, 0]), torch.ones(2), 'sum')",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kInplace | kOut,
    .run = [](const Call& c) -> Outputs {
      std::string_view how = c.text(4);
      TS_CHECK(how == "sum" || how == "prod" || how == "mean" || how == "amax" || how == "amin",
               "reduce argument must be either sum, prod, mean, amax or amin.");
      check_scatter(c, &c.tensor(3));
      Combine combine = combine_of(how);
      bool ordered = combine == Combine::kMin || combine == Combine::kMax;
      TS_CHECK(!ordered || !is_complex(c.tensor(0).dtype()), "scatter_reduce(): ", how,
               " is not defined for complex numbers");
      TS_CHECK_IMPLEMENTED(how != "mean" || c.tensor(0).dtype() != DType::kBool,
                           "\"scatter_reduce\" with mean not implemented for 'Bool'");
      TensorBase out = target(c);
      int64_t dim = c.integer(1);
      const TensorBase& index = c.tensor(2);
      if (index.numel() == 0) return out;
      in_float(out, c.tensor(3), [&](const TensorBase& to, const TensorBase& src) {
        if (!c.flag(5))
          scatter_into(to, dim, index, number_like(neutral_element(combine, to.dtype()), to),
                       Combine::kAssign);
        scatter_into(to, dim, index, src, combine);
        if (how == "mean") divide_by_counts(to, scatter_spread(dim, index), src, c.flag(5));
      });
      return out;
    },
    .saves = "self index src result",
    .backward =
        [](Backward& b) {
          TS_CHECK(!b.wants(3) || b.shape(3) == b.tensor(2).sizes(),
                   "scatter_reduce(): the gradient of src needs it to have the shape of index, ",
                   b.tensor(2).sizes(), ", but it has ", b.shape(3));
          reduce_along_backward(b, scatter_spread(b.integer(1), b.tensor(2)), b.text(4), b.flag(5));
        },
    .updates_self = true,
    .samples = {{"T(5, 3), 0, I([[0, 4, 2], [0, 3, 2]], 5), T(2, 3), 'sum'"},
                {"T(5, 3), 0, I([[0, 4, 2], [0, 3, 2]], 5), P(2, 3), 'prod'"},
                {"T(5, 3), 0, I([[0, 4, 2], [0, 3, 2]], 5), T(2, 3), 'mean', include_self=False"},
                {"T(5, 3), 1, I([[0, 0]], 3), T(1, 2), 'amax'"}},
});

TS_BODY(wrap_index, "t", 't', 1, (int64_t), return select(a < T(0), a + s0, a);)
TS_OP({
    .schema = "_wrap_index(Tensor self, Scalar size) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kSame,
    .forms = kFunction,
    .body = &wrap_index_body,
    .not_differentiable = true,
});

TS_OP({
    .schema = "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
    .doc = "gather with both tensors broadcast, in which negative indices count from the end; "
           "without dim over the flattened tensor.",
    .example = "torch.take_along_dim(torch.tensor([[3, 1, 2]]), torch.tensor([[1]]), dim=1)",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &self = c.tensor(0), &indices = c.tensor(1);
      check_same_device(c.op, c.args);
      const int64_t flat = -1;
      auto found = [](const TensorBase& t, int64_t along, const TensorBase& i) {
        return op::gather(t, along, op::_wrap_index(i, Scalar(t.size(along))));
      };
      TS_CHECK(indices.dtype() == DType::kInt64,
               "torch.take_along_dim(): dtype of indices should be Long but got ", indices.dtype());
      if (!c.has(2))
        return found(op::reshape(self, {&flat, 1}), 0, op::reshape(indices, {&flat, 1}));
      TS_CHECK(self.dim() == indices.dim(),
               "torch.take_along_dim(): input and indices should have the same number of "
               "dimensions, but got ",
               self.dim(), " dimensions for input, and ", indices.dim(), " dimensions for indices");
      int dim = wrap_dim(c.integer(2), self.dim());
      size_t d = static_cast<size_t>(dim);
      if (self.dim() == 0)
        return op::reshape(
            found(op::reshape(self, {&flat, 1}), 0, op::reshape(indices, {&flat, 1})), {});
      Dims like_index = self.sizes(), like_self = indices.sizes();
      like_index[d] = indices.sizes()[d];
      like_self[d] = self.sizes()[d];
      TensorBase i = op::expand(indices, broadcast_shapes(like_index, indices.sizes()).span());
      TensorBase t = op::expand(self, broadcast_shapes(like_self, self.sizes()).span());
      return found(t, dim, i);
    },
    .exact_out = true,
    .samples = {{"T(3, 4), I([[0, 3, 2, 1]], 4), 1"}, {"T(3, 4), I([[11, 0]], 12)"}},
});

}  // namespace tessera
