#include "tessera/ops/index/reduce_along.h"

#include "tessera/gen/binary.h"
#include "tessera/gen/complex.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/index.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/ternary.h"
#include "tessera/ops/modes.h"

namespace tessera {

// Hands its argument on; its gradient raises.
TS_OP({
    .schema = "_refuse_gradient(Tensor self, str message) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      return alias(t, t.sizes(), t.strides(), t.storage_offset());
    },
    .backward = [](Backward& b) { raise(ErrorKind::kRuntime, std::string(b.text(1))); },
});

namespace {

// Elements in each place, at least one.
TensorBase counts_of(const TensorBase& like, const Spread& s, const TensorBase& source,
                     bool include_self) {
  TensorBase n = include_self ? op::ones_like(like) : op::zeros_like(like);
  n = s.add(n, s.dim, s.index, op::ones_like(source));
  return op::masked_fill(n, op::eq(n, Scalar(0)), Value(Scalar(1)));
}

TensorBase as(const TensorBase& t, DType dtype) { return op::_to_dtype(t, dtype); }

// The gradient of the gradient has no formula where several zeros were multiplied: only for
// gradients that are differentiated again their number is read.
TensorBase without_second_gradient(const TensorBase& g, const TensorBase& zeros, const char* why) {
  if (!records_gradients() || !g.requires_grad() || zeros.device().is_meta()) return g;
  const TensorBase counts = is_complex(zeros.dtype()) ? op::real(zeros) : zeros;
  return host_scalar(op::any(op::gt(counts, Scalar(1)))).is_zero() ? g
                                                                   : op::_refuse_gradient(g, why);
}

void prod_backward(Backward& b, const Spread& s, bool include_self) {
  const TensorBase &self = b.tensor(0), &source = b.tensor(3);
  std::string_view prod = "prod";
  if (b.wants(0)) {
    // The product of the others; a zero of self is replaced, since it cannot be divided out.
    TensorBase without_zeros = op::masked_fill(self, op::eq(self, Scalar(0)), Value(Scalar(1)));
    TensorBase product = s.reduce(without_zeros, s.dim, s.index, source, prod, include_self);
    TensorBase g = op::mul(b.grad, op::conj(op::div(product, without_zeros)));
    b.set(0, include_self ? g : s.clear(g, s.dim, s.index));
  }
  if (!b.wants(3)) return;
  // A lone zero among the elements of a place: its gradient is the product of the others. Where
  // there are more, all of theirs are zero.
  TensorBase zero = op::eq(source, Scalar(0));
  TensorBase zeros = s.add(op::zeros_like(self), s.dim, s.index, as(zero, self.dtype()));
  zeros = s.read(zeros, s.dim, s.index);
  TensorBase lone = op::mul(zero, op::eq(zeros, Scalar(1)));
  TensorBase others = s.reduce(self, s.dim, s.index,
                               op::masked_fill(source, lone, Value(Scalar(1))), prod, include_self);
  TensorBase at_lone = s.read(op::mul(b.grad, op::conj(others)), s.dim, s.index);
  TensorBase elsewhere = op::div(s.read(op::mul(b.grad, op::conj(b.result)), s.dim, s.index),
                                 op::conj(op::masked_fill(source, zero, Value(Scalar(1)))));
  b.set(3,
        without_second_gradient(op::where(lone, at_lone, elsewhere), zeros, s.no_second_gradient));
}

// The gradient is shared out among all elements that are the extreme one.
void extreme_backward(Backward& b, const Spread& s, bool include_self) {
  const TensorBase &self = b.tensor(0), &source = b.tensor(3);
  TensorBase self_is = as(op::eq(self, b.result), self.dtype());
  if (!include_self) self_is = s.clear(self_is, s.dim, s.index);
  TensorBase source_is = as(op::eq(source, s.read(b.result, s.dim, s.index)), source.dtype());
  TensorBase n = s.add(self_is, s.dim, s.index, source_is);
  TensorBase shared = op::div(b.grad, n);
  // Where nothing landed the result is self; a place whose self does not count has no share of it.
  if (!include_self) shared = op::masked_fill(shared, op::eq(n, Scalar(0)), Value(Scalar(0)));
  if (b.wants(0)) b.set(0, op::mul(self_is, shared));
  if (b.wants(3)) b.set(3, op::mul(source_is, s.read(shared, s.dim, s.index)));
}

}  // namespace

void divide_by_counts(const TensorBase& out, const Spread& s, const TensorBase& source,
                      bool include_self) {
  TensorBase n = counts_of(out, s, source, include_self);
  if (is_differentiable(out.dtype()))
    op::div_(out, n);
  else
    op::floor_divide_(out, n);
}

void reduce_along_backward(Backward& b, const Spread& s, std::string_view how, bool include_self) {
  if (how == "prod") return prod_backward(b, s, include_self);
  if (how == "amax" || how == "amin") return extreme_backward(b, s, include_self);
  TensorBase g = b.grad;
  if (how == "mean") {
    TensorBase source = op::zeros(b.shape(3).span(), b.dtype(3), b.device(3));
    g = op::div(g, counts_of(b.grad, s, source, include_self));
  }
  if (b.wants(0)) b.set(0, include_self ? g : s.clear(g, s.dim, s.index));
  if (b.wants(3)) b.set(3, s.read(g, s.dim, s.index));
}

}  // namespace tessera
