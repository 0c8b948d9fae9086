#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/index.h"
#include "tessera/gen/view.h"
#include "tessera/ops/embedding/rows.h"

namespace tessera {

void check_row_numbers(const TensorBase& indices, const char* function) {
  TS_CHECK(indices.dtype() == DType::kInt64 || indices.dtype() == DType::kInt32,
           "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
           "Long, Int; but got ",
           indices.dtype(), " instead (while checking arguments for ", function, ")");
}

void renorm_rows(const TensorBase& weight, const TensorBase& indices, double max_norm,
                 double norm_type) {
  check_row_numbers(indices, "embedding_renorm_");
  TS_CHECK(weight.dim() == 2, "Expected 2-dimensional tensor, but got ", weight.dim(),
           "-dimensional tensor for argument #1 'weight' (while checking arguments for "
           "embedding_renorm_)");
  double doubles[] = {max_norm, norm_type};
  if (indices.numel() > 0) launch("embedding_renorm", {&weight, 1}, {&indices, 1}, {}, doubles);
  count_write(weight);
}

TS_OP({
    .schema = "embedding_renorm_(Tensor self, Tensor indices, float max_norm, float norm_type) -> "
              "Tensor",
    .doc = "Scales the rows named by indices whose norm is above max_norm, in place.",
    .example = "torch.embedding_renorm_(torch.ones(3, 2), torch.tensor([1]), 1.0, 2.0)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      renorm_rows(c.tensor(0), c.tensor(1), c.number(2), c.number(3));
      return c.tensor(0);
    },
    .not_differentiable = true,
});

namespace {

TensorBase look_up(const TensorBase& weight, const TensorBase& indices) {
  TS_CHECK(weight.dim() == 2, "'weight' must be 2-D");
  check_row_numbers(indices, "embedding");
  if (indices.dim() == 1) return op::index_select(weight, 0, indices);
  const int64_t flat = -1;
  Dims shape = indices.sizes();
  shape.push_back(weight.sizes()[1]);
  return op::view(op::index_select(weight, 0, op::reshape(indices, {&flat, 1})), shape.span());
}

// The gradients of equal rows added up, in the order of the indices.
TensorBase weight_gradient(const TensorBase& grad, const TensorBase& indices_, const Dims& shape,
                           int64_t padding_idx, bool scale_by_frequency) {
  const int64_t flat = -1, rows[] = {indices_.numel(), shape[1]};
  TensorBase indices = op::reshape(indices_, {&flat, 1});
  TensorBase g = op::reshape(grad, rows);
  if (padding_idx >= 0) {
    TensorBase pad = op::unsqueeze(op::eq(indices, Scalar(padding_idx)), 1);
    g = op::masked_fill(g, pad, Value(Scalar(0)));
  }
  if (scale_by_frequency) {
    TensorBase n = op::new_zeros(g, shape.span().first(1));
    n = op::index_add(n, 0, indices, op::ones(std::span(rows, 1), g.dtype(), g.device()));
    g = op::div(g, op::unsqueeze(op::index_select(n, 0, indices), 1));
  }
  TensorBase whole = op::new_zeros(g, shape.span());
  return op::index_add_(whole, 0, indices, g);
}

// Only the gradient of a sparse embedding is another one.
void check_dense(bool sparse) {
  TS_CHECK_IMPLEMENTED(!sparse,
                       "embedding: sparse gradients are not implemented; pass sparse=False");
}

}  // namespace

TS_OP({
    .schema = "nn.functional.embedding(Tensor input, Tensor weight, int? padding_idx=None, "
              "float? max_norm=None, float norm_type=2.0, bool scale_grad_by_freq=False, "
              "bool sparse=False) -> Tensor",
    .doc = "The rows of a table that input names.",
    .example = "torch.nn.functional.embedding(torch.tensor([2, 0]), torch.ones(3, 4)).shape",
    .kind = Kind::kKernel,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &input = c.tensor(0), &weight = c.tensor(1);
      check_same_device(c.op, c.args);
      TS_CHECK(weight.dim() == 2, "'weight' must be 2-D");
      if (c.has(2)) {
        int64_t rows = weight.sizes()[0], pad = c.integer(2);
        TS_CHECK_VALUE(pad >= -rows && pad < rows, "Padding_idx must be within num_embeddings");
      }
      if (c.has(3)) renorm_rows(weight, input, c.number(3), c.number(4));
      return look_up(weight, input);
    },
    .saves = "input",
    .backward =
        [](Backward& b) {
          check_dense(b.flag(6));
          int64_t pad = b.has(2) ? b.integer(2) : -1;
          if (b.has(2) && pad < 0) pad += b.shape(1)[0];
          b.set(1, weight_gradient(b.grad, b.tensor(0), b.shape(1), pad, b.flag(5)));
        },
    .samples = {{"I([[0, 3], [1, 0]], 4), T(4, 3)"}, {"I([0, 3, 0], 4), T(4, 3)"}},
});

TS_OP({
    .schema = "_embedding(Tensor weight, Tensor indices, int padding_idx=-1, "
              "bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
    .also = "embedding",
    .doc = "The rows of a table that indices name.",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      check_same_device(c.op, c.args);
      return look_up(c.tensor(0), c.tensor(1));
    },
    .saves = "indices",
    .backward =
        [](Backward& b) {
          check_dense(b.flag(4));
          b.set(0, weight_gradient(b.grad, b.tensor(1), b.shape(0), b.integer(2), b.flag(3)));
        },
});

}  // namespace tessera
