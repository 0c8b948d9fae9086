// Products with weights, as layers of neural networks make them.
#include "tessera/gen/binary.h"
#include "tessera/gen/linalg.h"
#include "tessera/gen/view.h"
#include "tessera/ops/linalg/common.h"

namespace tessera {

using linalg::numel_of;

TS_OP({
    .schema = "nn.functional.linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
    .doc = "input @ weight.T + bias, over the last dimension of input.",
    .example = "torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3), torch.ones(4))",
    .run = [](const Call& c) -> Outputs {
      const TensorBase &x = c.tensor(0), &w = c.tensor(1);
      TensorBase bias = c.maybe(2);
      check_same_device(c.op, c.args);
      TS_CHECK(x.dim() > 0 && w.dim() > 0,
               "both arguments to linear need to be at least 1D, but they are ", x.dim(), "D and ",
               w.dim(), "D");
      if (bias.defined() && x.dim() >= 2 && w.dim() == 2 && bias.dim() == 1 && x.numel() > 0) {
        if (x.dim() == 2) return op::addmm(bias, x, op::t(w));
        Dims shape(x.sizes().span().first(x.sizes().size() - 1));
        Dims flat{numel_of(shape), x.size(-1)};
        shape.push_back(w.size(0));
        return op::reshape(op::addmm(bias, op::reshape(x, flat.span()), op::t(w)), shape.span());
      }
      TensorBase out = op::matmul(x, w.dim() == 1 ? w : op::t(w));
      return bias.defined() ? op::add(out, bias) : out;
    },
    .autocast = Autocast::kLower,
    .samples = {{"T(2, 3), T(4, 3), T(4)"}, {"T(3), T(4, 3)"}, {"T(2, 1, 3), T(4, 3), T(4)"}},
});

TS_OP({
    .schema = "nn.functional.bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? "
              "bias=None) -> Tensor",
    .doc = "input1 @ weight[k] @ input2 for each k, over the last dimension of both, plus bias.",
    .example = "torch.nn.functional.bilinear(torch.ones(2, 3), torch.ones(2, 4), "
               "torch.ones(5, 3, 4)).shape",
    .run = [](const Call& c) -> Outputs {
      const TensorBase &a = c.tensor(0), &b = c.tensor(1), &w = c.tensor(2);
      TensorBase bias = c.maybe(3);
      check_same_device(c.op, c.args);
      TS_CHECK(a.dim() == b.dim(), "bilinear(): input dimensions do not match: got ", a.dim(),
               " and ", b.dim());
      TS_CHECK(w.dim() == 3, "bilinear(): weight must have 3 dimensions, got ", w.dim());
      TS_CHECK(a.dim() > 0, "bilinear(): inputs must have at least 1 dimension");
      for (int d = 0; d + 1 < a.dim(); ++d)
        TS_CHECK(a.size(d) == b.size(d), "bilinear(): input batch dimensions do not match at dim ",
                 d, ": got ", a.size(d), " and ", b.size(d));
      TS_CHECK(a.size(-1) == w.size(1), "bilinear(): input1 size does not match weight size: got ",
               a.size(-1), " but expected ", w.size(1));
      TS_CHECK(b.size(-1) == w.size(2), "bilinear(): input2 size does not match weight size: got ",
               b.size(-1), " but expected ", w.size(2));
      TS_CHECK(!bias.defined() || bias.numel() == w.size(0),
               "bilinear(): bias size does not match weight size: got ",
               bias.defined() ? bias.numel() : 0, " but expected ", w.size(0));
      Dims shape(a.sizes().span().first(a.sizes().size() - 1));
      const int64_t n = numel_of(shape), k = w.size(0), i = w.size(1), j = w.size(2);
      // [n, i] x [i, k j], then for each row [k, j] x [j].
      Dims flat_a{n, i}, flat_b{n, j, 1}, matrix{i, k * j}, rows{n, k, j}, order{1, 0, 2};
      TensorBase x = op::mm(op::reshape(a, flat_a.span()),
                            op::reshape(op::permute(w, order.span()), matrix.span()));
      x = op::bmm(op::reshape(x, rows.span()), op::reshape(b, flat_b.span()));
      shape.push_back(k);
      x = op::reshape(x, shape.span());
      return bias.defined() ? op::add(x, bias) : x;
    },
    .autocast = {Cast::kPromote, Cast::kKeep},
    .samples = {{"T(2, 3), T(2, 4), T(5, 3, 4), T(5)"}, {"T(3), T(4), T(2, 3, 4)"}},
});

}  // namespace tessera
