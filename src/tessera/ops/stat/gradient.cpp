#include "tessera/gen/binary.h"
#include "tessera/gen/join.h"
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"

namespace tessera {

namespace {

// The dimensions asked for, after PyTorch's checks; `spacings` is how many were given, -1 for one
// number or none.
Dims checked_dims(const TensorBase& self, bool has_dim, const Dims& given, int64_t spacings,
                  int64_t edge_order) {
  TS_CHECK(self.dtype() != DType::kUInt8, "torch.gradient does not support uint8 input.");
  if (spacings >= 0 && !has_dim)
    TS_CHECK(spacings == 1 || spacings == self.dim(),
             "torch.gradient expected spacing to be unspecified, a scalar, or a list of length "
             "equal to 'self.dim() = ",
             self.dim(), "', since dim argument was not given, but got a list of length ", spacings,
             ".");
  if (spacings >= 0 && has_dim)
    TS_CHECK(spacings == given.ndim(),
             "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim "
             "arguments to have the same length, but got a spacing argument of length ",
             spacings, " and a dim argument of length ", given.ndim(), ".");
  TS_CHECK(edge_order == 1 || edge_order == 2,
           "torch.gradient only supports edge_order=1 and edge_order=2.");
  Dims dims = given;
  if (!has_dim)
    for (int d = 0; d < self.dim(); ++d) dims.push_back(d);
  uint64_t seen = 0;
  for (int64_t& d : dims) {
    d = wrap_dim(d, self.dim());
    TS_CHECK(!(seen >> d & 1), "dim ", d, " appears multiple times in the list of dims");
    seen |= uint64_t{1} << d;
    TS_CHECK(self.size(d) >= edge_order + 1,
             "torch.gradient expected each dimension size to be at least edge_order+1");
  }
  return dims;
}

// Elements [from, to) along a dimension, both from the end where negative; to = 0 is the end.
TensorBase part(const TensorBase& t, int64_t dim, int64_t from, int64_t to) {
  const int64_t n = t.size(dim);
  return op::slice(t, dim, from < 0 ? from + n : from, to <= 0 ? to + n : to);
}
TensorBase joined(const TensorBase& before, const TensorBase& center, const TensorBase& after,
                  int64_t dim) {
  const TensorBase parts[] = {before, center, after};
  return op::cat(parts, dim);
}

// Points at equal distances.
TensorBase evenly(const TensorBase& x, int64_t d, Scalar dx, int64_t edge_order) {
  TensorBase center = op::div(op::sub(part(x, d, 2, 0), part(x, d, 0, -2)), dx);
  TensorBase before, after;
  if (edge_order == 1) {
    before = op::div(op::sub(part(x, d, 1, 2), part(x, d, 0, 1)), dx);
    after = op::div(op::sub(part(x, d, -1, 0), part(x, d, -2, -1)), dx);
  } else {
    auto third_order = [&](const TensorBase& a, const TensorBase& b, const TensorBase& c) {
      TensorBase t = op::sub(op::mul(b, 2), op::div(c, 2.0));
      return op::sub(t, op::mul(a, 1.5));
    };
    before = op::div(third_order(part(x, d, 0, 1), part(x, d, 1, 2), part(x, d, 2, 3)), dx);
    after = op::neg(
        op::div(third_order(part(x, d, -1, 0), part(x, d, -2, -1), part(x, d, -3, -2)), dx));
  }
  return joined(before, op::div(center, 2), after, d);
}

// Points at the coordinates `at`.
TensorBase unevenly(const TensorBase& x, int64_t d, const TensorBase& at, int64_t edge_order) {
  TS_CHECK(at.dim() == 1,
           "torch.gradient expected each element of spacing to have one dimension, but got an "
           "element with ",
           at.dim(), " dimensions!");
  Dims shape(static_cast<size_t>(x.dim()), 1);
  shape[static_cast<size_t>(d)] = -1;
  TensorBase dx = op::sub(part(at, 0, 1, 0), part(at, 0, 0, -1));
  auto shaped = [&](const TensorBase& t) { return op::reshape(t, shape.span()); };
  // Weights of three neighbours whose distances are p and q, for the slope at the middle one.
  auto weights = [&](const TensorBase& p, const TensorBase& q, TensorBase(&w)[3]) {
    TensorBase sum = op::add(p, q);
    w[0] = shaped(op::neg(op::div(q, op::mul(p, sum))));
    w[1] = shaped(op::div(op::sub(q, p), op::mul(p, q)));
    w[2] = shaped(op::div(p, op::mul(q, sum)));
  };
  auto weighted = [&](const TensorBase(&w)[3], const TensorBase& a, const TensorBase& b,
                      const TensorBase& c) {
    return op::add(op::add(op::mul(w[0], a), op::mul(w[1], b)), op::mul(w[2], c));
  };
  TensorBase w[3];
  weights(part(dx, 0, 0, -1), part(dx, 0, 1, 0), w);
  TensorBase center = weighted(w, part(x, d, 0, -2), part(x, d, 1, -1), part(x, d, 2, 0));
  TensorBase before, after;
  if (edge_order == 1) {
    before = op::div(op::sub(part(x, d, 1, 2), part(x, d, 0, 1)), shaped(part(dx, 0, 0, 1)));
    after = op::div(op::sub(part(x, d, -1, 0), part(x, d, -2, -1)), shaped(part(dx, 0, -1, 0)));
  } else {
    // The same at an end: p is the distance at the end, q the next.
    auto end = [&](const TensorBase& p, const TensorBase& q, TensorBase(&v)[3]) {
      TensorBase sum = op::add(p, q);
      v[0] = shaped(op::neg(op::div(op::add(op::mul(p, 2), q), op::mul(p, sum))));
      v[1] = shaped(op::div(sum, op::mul(p, q)));
      v[2] = shaped(op::neg(op::div(p, op::mul(q, sum))));
    };
    end(part(dx, 0, 0, 1), part(dx, 0, 1, 2), w);
    before = weighted(w, part(x, d, 0, 1), part(x, d, 1, 2), part(x, d, 2, 3));
    end(part(dx, 0, -1, 0), part(dx, 0, -2, -1), w);
    after = op::neg(weighted(w, part(x, d, -1, 0), part(x, d, -2, -1), part(x, d, -3, -2)));
  }
  return joined(before, center, after, d);
}

Dims given_dims(const Call& c) { return c.has(2) ? c.ints(2) : Dims(); }

}  // namespace

TS_OP({
    .schema = "gradient(Tensor self, *, Scalar? spacing=None, int[1]? dim=None, int edge_order=1) "
              "-> Tensor[]",
    .doc = "Slopes along each dimension by differences of neighbours, at equal distances.",
    .example = "torch.gradient(torch.tensor([1.0, 4.0, 9.0]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      std::vector<TensorBase> out;
      for (int64_t d : checked_dims(self, c.has(2), given_dims(c), -1, c.integer(3)))
        out.push_back(evenly(self, d, c.has(1) ? c.scalar(1) : Scalar(1), c.integer(3)));
      return out;
    },
    .samples = {{"T(4, 5)"}, {"T(4, 5), spacing=0.5, dim=1, edge_order=2"}},
});
TS_OP({
    .schema = "gradient(Tensor self, *, float[] spacing, int[1]? dim=None, int edge_order=1) -> "
              "Tensor[]",
    .doc = "Slopes along each dimension, with a distance for each.",
    .example = "torch.gradient(torch.ones(3, 3), spacing=[1.0, 2.0])",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      std::span<const double> dx = c.floats(1);
      const Dims dims = checked_dims(self, c.has(2), given_dims(c), static_cast<int64_t>(dx.size()),
                                     c.integer(3));
      std::vector<TensorBase> out;
      for (size_t i = 0; i < dims.size(); ++i)
        out.push_back(evenly(self, dims[i], Scalar(dx[dx.size() == 1 ? 0 : i]), c.integer(3)));
      return out;
    },
});
TS_OP({
    .schema = "gradient(Tensor self, *, Tensor[] spacing, int[1]? dim=None, int edge_order=1) -> "
              "Tensor[]",
    .doc = "Slopes along each dimension, with the coordinates of the points.",
    .example = "torch.gradient(torch.tensor([1.0, 4.0, 9.0]), spacing=[torch.tensor([1.0, 2.0, "
               "3.0])])",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      std::span<const TensorBase> at = c.tensors(1);
      const Dims dims = checked_dims(self, c.has(2), given_dims(c), static_cast<int64_t>(at.size()),
                                     c.integer(3));
      std::vector<TensorBase> out;
      for (size_t i = 0; i < dims.size(); ++i)
        out.push_back(unevenly(self, dims[i], at[at.size() == 1 ? 0 : i], c.integer(3)));
      return out;
    },
});

}  // namespace tessera
