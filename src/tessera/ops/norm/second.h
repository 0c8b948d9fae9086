// Gradients of the gradients of normalisations, by operators.
#pragma once
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/call.h"
#include "tessera/ops/in_dtype.h"

namespace tessera {

inline DType stats_dtype(DType t) { return t == DType::kFloat64 ? t : DType::kFloat32; }

// Parameters have the input's dtype; those of a half-precision input may also have float32.
inline void check_parameter_dtypes(const TensorBase& x,
                                   std::initializer_list<const TensorBase*> parameters) {
  bool mixed = false;
  for (const TensorBase* p : parameters) mixed |= p->defined() && p->dtype() != x.dtype();
  if (!mixed) [[likely]]
    return;
  const char* where = x.device().is_cpu() ? "mixed dtype (CPU)" : "mixed dtype";
  for (const TensorBase* p : parameters)
    TS_CHECK(!p->defined() || p->dtype() == DType::kFloat32 ||
                 (p->dtype() == x.dtype() && is_reduced_floating(x.dtype())),
             where, ": expect parameter to have scalar type of Float");
  TS_CHECK(is_reduced_floating(x.dtype()), where, ": all inputs must share same datatype.");
}

// The dtype PyTorch hands statistics out in: on the CPU that of the input, or of the weights where
// theirs is another; elsewhere what they are computed in.
inline DType given_stats_dtype(const TensorBase& x, std::initializer_list<TensorBase> parameters) {
  if (!x.device().is_cpu()) return stats_dtype(x.dtype());
  for (const TensorBase& p : parameters)
    if (p.defined() && p.dtype() != x.dtype()) return p.dtype();
  return x.dtype();
}

// Of an operator with the arguments grad, input, mean, factor, weight and the results dx, dw, db.
// With xh = (x - mean) * factor and P = factor * (1 - mean - xh * mean(xh * .)), which is
// symmetric: dx = P(g * w), dw = sum(g * xh), db = sum(g). L lays operands out: values(), stats(),
// weights() broadcast against each other, mean() is over what was normalised together,
// channel_sums() over what shares a weight.
template <class L>
void norm_second_gradients(Backward& b, const L& l, bool centred) {
  const TensorBase &g = b.tensor(0), &x = b.tensor(1);
  const DType wide = stats_dtype(x.dtype());
  TensorBase factor = l.stats(b.tensor(3)), grad = l.values(in_dtype(g, wide));
  TensorBase xh = op::mul(op::sub(l.values(in_dtype(x, wide)), l.stats(b.tensor(2))), factor);
  TensorBase w = b.has(4) ? l.weights(in_dtype(b.tensor(4), wide)) : TensorBase();
  auto times_w = [&](const TensorBase& t) { return w.defined() ? op::mul(t, w) : t; };
  auto project = [&](const TensorBase& t) {
    TensorBase p = op::sub(t, op::mul(xh, l.mean(op::mul(t, xh))));
    if (centred) p = op::sub(p, l.mean(t));
    return op::mul(p, factor);
  };
  auto add = [](const TensorBase& a, const TensorBase& t) {
    return a.defined() ? op::add(a, t) : t;
  };
  TensorBase dg, dx, gxh;  // gradients of g, of x, of xh
  if (b.has_grad(0)) {
    TensorBase big = l.values(in_dtype(b.result_grads[0], wide)), gw = times_w(grad);
    TensorBase projected = project(big);
    dg = times_w(projected);
    if (b.wants(4))
      b.set(4, op::reshape(l.channel_sums(op::mul(grad, projected)), b.shape(4).span()));
    TensorBase mean_gx = l.mean(op::mul(gw, xh)), mean_bx = l.mean(op::mul(big, xh));
    gxh = op::neg(op::mul(factor, op::add(op::mul(gw, mean_bx), op::mul(big, mean_gx))));
    // Of the factor in front: its slope is -factor^2 * xh / n.
    TensorBase q = op::sub(l.mean(op::mul(big, gw)), op::mul(mean_gx, mean_bx));
    if (centred) q = op::sub(q, op::mul(l.mean(gw), l.mean(big)));
    dx = op::neg(op::mul(op::mul(q, op::mul(factor, factor)), xh));
  }
  if (b.has_grad(1)) {
    TensorBase gw = l.weights(b.result_grads[1]);
    dg = add(dg, op::mul(gw, xh));
    gxh = add(gxh, op::mul(gw, grad));
  }
  if (b.has_grad(2)) {
    Dims all = l.shape();
    dg = add(dg, op::expand(l.weights(b.result_grads[2]), all.span()));
  }
  if (gxh.defined()) dx = add(dx, project(gxh));
  if (b.wants(0) && dg.defined()) b.set(0, op::reshape(dg, g.sizes().span()));
  if (b.wants(1) && dx.defined()) b.set(1, op::reshape(dx, x.sizes().span()));
}

}  // namespace tessera
