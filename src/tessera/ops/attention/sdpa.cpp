// Attention of queries over keys and values.
#include <cmath>
#include <cstring>

#include "tessera/gen/attention.h"
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/index.h"
#include "tessera/gen/linalg.h"
#include "tessera/gen/random.h"
#include "tessera/gen/softmax.h"
#include "tessera/gen/view.h"
#include "tessera/ops/attention/fused.h"
#include "tessera/ops/in_dtype.h"

namespace tessera {

namespace {

// True where a query may not look: at keys after it.
TensorBase future(int64_t queries, int64_t keys, Device device) {
  TensorBase host = new_empty(Dims{queries, keys}, DType::kBool, Device{});
  auto* at = reinterpret_cast<uint8_t*>(host.raw());
  for (int64_t i = 0; i < queries; ++i, at += keys) {
    int64_t seen = std::min(i + 1, keys);
    std::memset(at, 0, static_cast<size_t>(seen));
    std::memset(at + seen, 1, static_cast<size_t>(keys - seen));
  }
  return device.is_cpu() ? host : op::_to_device(host, device);
}

// Heads of keys and values repeated until there are as many as of queries.
TensorBase repeated(const TensorBase& t, int64_t heads) {
  int64_t own = t.sizes()[static_cast<size_t>(t.dim() - 3)];
  if (own == heads) return t;
  TS_CHECK(own > 0 && heads % own == 0,
           "Number of heads in key and value must divide the number of heads in query");
  Dims wide = t.sizes(), size = t.sizes();
  size_t at = static_cast<size_t>(t.dim() - 2);
  wide.insert(at, heads / own);
  size[at - 1] = heads;
  return op::reshape(op::expand(op::unsqueeze(t, static_cast<int64_t>(at)), wide.span()),
                     size.span());
}

void check(const TensorBase& q, const TensorBase& k, const TensorBase& v, const TensorBase& mask) {
  TS_CHECK(q.dim() >= 2 && k.dim() >= 2 && v.dim() >= 2,
           "scaled_dot_product_attention: Expected query, key, and value to all be  at least 2 "
           "dimensional, but got Query dim: ",
           q.dim(), ", Key dim: ", k.dim(), " and Value dim: ", v.dim(), " instead.");
  TS_CHECK(q.dtype() == k.dtype() && q.dtype() == v.dtype(),
           "Expected query, key, and value to have the same dtype, but got query.dtype: ",
           q.dtype(), " key.dtype: ", k.dtype(), " and value.dtype: ", v.dtype(), " instead.");
  TS_CHECK(!mask.defined() || mask.dtype() == DType::kBool || mask.dtype() == q.dtype() ||
               mask.dtype() == DType::kFloat32,
           "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
           "attn_mask.dtype: ",
           mask.dtype(), " and  query.dtype: ", q.dtype(), " instead.");
}

}  // namespace

TS_OP({
    .schema = "nn.functional.scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, "
              "Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, "
              "float? scale=None, bool enable_gqa=False) -> Tensor",
    .doc = "softmax(query key^T * scale + mask) value: what each query takes from the values.",
    .example = "torch.nn.functional.scaled_dot_product_attention(torch.ones(1, 2, 4), "
               "torch.ones(1, 3, 4), torch.ones(1, 3, 4)).shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      TensorBase q = c.tensor(0), k = c.tensor(1), v = c.tensor(2), mask = c.maybe(3);
      check_same_device(c.op, c.args);
      check(q, k, v, mask);
      TS_CHECK(!mask.defined() || !c.flag(5),
               "scaled_dot_product_attention: Explicit attn_mask should not be set when "
               "is_causal=True");
      const int64_t width = q.sizes()[static_cast<size_t>(q.dim() - 1)];
      const double scale = c.has(6) ? c.number(6) : 1 / std::sqrt(static_cast<double>(width));
      if (!mask.defined() && c.number(4) == 0) {
        TensorBase out = attention::fused(q, k, v, c.flag(5), scale, c.flag(7));
        if (out.defined()) return out;
      }
      if (c.flag(7) && q.dim() >= 3) {
        int64_t heads = q.sizes()[static_cast<size_t>(q.dim() - 3)];
        k = repeated(k, heads);
        v = repeated(v, heads);
      }
      // On the CPU half floats are widened, and rounded once at the end.
      const DType own = q.dtype();
      const bool widen = q.device().is_cpu() && is_floating(own) && itemsize(own) < 4;
      if (widen)
        for (TensorBase* t : {&q, &k, &v}) *t = op::_to_dtype(*t, DType::kFloat32);
      TensorBase weights = op::matmul(op::mul(q, Scalar(scale)), op::transpose(k, -2, -1));
      constexpr double kNever = -std::numeric_limits<double>::infinity();
      int64_t rows = weights.sizes()[static_cast<size_t>(weights.dim() - 2)];
      int64_t columns = weights.sizes()[static_cast<size_t>(weights.dim() - 1)];
      TensorBase hidden;
      if (c.flag(5)) hidden = future(rows, columns, q.device());
      if (mask.defined() && mask.dtype() == DType::kBool) hidden = op::eq(mask, Scalar(false));
      if (hidden.defined())
        weights = op::masked_fill(weights, hidden, Scalar(kNever));
      else if (mask.defined())
        weights = op::add(weights, in_dtype(mask, q.dtype()));
      weights = hidden.defined() || mask.defined() ? op::_safe_softmax(weights, -1)
                                                   : op::softmax(weights, -1);
      if (c.number(4) > 0) weights = op::dropout(weights, c.number(4), true);
      TensorBase out = op::matmul(weights, v);
      return widen ? op::_to_dtype(out, own) : out;
    },
    .autocast = Autocast::kLower,
    .samples = {{"T(1, 2, 3), T(1, 4, 3), T(1, 4, 2)"},
                {"T(2, 3, 4), T(2, 3, 4), T(2, 3, 4), None, 0.0, True"}},
});

}  // namespace tessera
