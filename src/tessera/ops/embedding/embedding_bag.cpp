#include "tessera/gen/binary.h"
#include "tessera/gen/compare.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/embedding.h"
#include "tessera/gen/index.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/view.h"
#include "tessera/ops/embedding/rows.h"
#include "tessera/ops/in_dtype.h"
#include "tessera/ops/valid.h"

namespace tessera {

namespace {

constexpr int64_t kFlat = -1;

struct Bags {
  TensorBase indices;  // of all bags, one after the other
  TensorBase weights;  // of each, or undefined
  TensorBase ids;      // the bag of each; -1: of none
  int64_t count;
};

int64_t element(const TensorBase& t, int64_t at) {
  return host_scalar(alias(t, {}, {}, t.storage_offset() + at * t.strides()[0])).to_int();
}

// Rows of a matrix of indices are the bags, or offsets say where each begins.
Bags read_bags(const TensorBase& input, const TensorBase& offsets, const TensorBase& weights,
               bool include_last) {
  Bags bags;
  bags.indices = op::reshape(input, {&kFlat, 1});
  if (weights.defined()) bags.weights = op::reshape(weights, {&kFlat, 1});
  int64_t n = input.numel();
  if (input.dim() == 2) {
    TS_CHECK_VALUE(!offsets.defined(),
                   "if input is 2D, then offsets has to be None, as input is treated is a "
                   "mini-batch of fixed length sequences. However, found offsets of type <class "
                   "'torch.Tensor'>");
    bags.count = input.sizes()[0];
    TensorBase lengths =
        op::full({&bags.count, 1}, Scalar(input.sizes()[1]), DType::kInt64, input.device());
    bags.ids = op::_segment_ids(lengths, n, true);
    return bags;
  }
  TS_CHECK_VALUE(input.dim() == 1, "input has to be 1D or 2D Tensor, but got Tensor of dimension ",
                 input.dim());
  TS_CHECK_VALUE(offsets.defined(), "offsets has to be a 1D Tensor but got None");
  TS_CHECK_VALUE(offsets.dim() == 1, "offsets has to be a 1D Tensor");
  check_row_numbers(offsets, "embedding_bag");
  int64_t given = offsets.numel();
  TS_CHECK(!include_last || given >= 1,
           "include_last_offset: number of offset should be at least 1");
  if (given > 0 && !offsets.device().is_meta()) {
    int64_t first = element(offsets, 0), last = element(offsets, given - 1);
    TS_CHECK(first == 0,
             "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
             "position 0. However, got ",
             first);
    TS_CHECK(!include_last || last >= n,
             "embedding_bag: with include_last_offset=True the last offset has to be the length of "
             "input (",
             n, "), but got offsets[-1] of ", last);
    TS_CHECK(last <= n, "offsets[-1] can not be greater than input's length(", n,
             ") but got offsets[-1] of ", last);
    if (given > 1) {
      TensorBase before = op::narrow(offsets, 0, 0, given - 1);
      TensorBase after = op::narrow(offsets, 0, 1, given - 1);
      TS_CHECK(!host_scalar(op::all(op::le(before, after))).is_zero(),
               "offsets of embedding_bag must not decrease");
    }
  }
  bags.count = given - include_last;
  bags.ids = op::_segment_ids(offsets, n, false, !include_last);
  return bags;
}

// Where an index is of no bag, or the one for padding.
TensorBase left_out(const Bags& bags, std::optional<int64_t> padding_idx) {
  TensorBase none = op::eq(bags.ids, Scalar(-1));
  if (!padding_idx) return none;
  return op::masked_fill(none, op::eq(bags.indices, Scalar(*padding_idx)), Value(Scalar(true)));
}

}  // namespace

TS_OP({
    .schema = "_embedding_bag_max(Tensor weight, Tensor indices, Tensor ids, int bags) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& weight = c.tensor(0);
      check_dim(c, 0, 2);
      check_dim(c, 1, 1);
      check_shape(c, 2, {c.tensor(1).numel()});
      check_row_numbers(c.tensor(1), "embedding_bag");
      check_dtype(c, 2, DType::kInt64);
      check_integer(c, 3, 0);
      TensorBase in[] = {weight, op::contiguous(in_dtype(c.tensor(1), DType::kInt64)),
                         op::contiguous(c.tensor(2))};
      TensorBase out = new_empty({c.integer(3), weight.sizes()[1]}, DType::kInt64, weight.device());
      if (out.numel() > 0) launch("embedding_bag_max", {&out, 1}, in);
      return out;
    },
    .not_differentiable = true,
});

TS_OP({
    .schema = "nn.functional.embedding_bag(Tensor input, Tensor weight, Tensor? offsets=None, "
              "float? max_norm=None, float norm_type=2, bool scale_grad_by_freq=False, "
              "str mode=\"mean\", bool sparse=False, Tensor? per_sample_weights=None, "
              "bool include_last_offset=False, int? padding_idx=None) -> Tensor",
    .doc = "The sums, means or maxima of bags of rows of a table.",
    .example = "torch.nn.functional.embedding_bag(torch.tensor([[0, 1]]), torch.ones(3, 4)).shape",
    .run = [](const Call& c) -> Outputs {
      // PyTorch still takes the table first, as it once was.
      bool swapped = c.tensor(1).dtype() == DType::kInt64 && is_floating(c.tensor(0).dtype());
      const TensorBase &input = c.tensor(swapped), &weight = c.tensor(!swapped);
      std::string_view mode = c.text(6);
      TensorBase sample_weights = c.maybe(8);
      TS_CHECK_VALUE(!sample_weights.defined() || sample_weights.sizes() == input.sizes(),
                     "embedding_bag: If per_sample_weights (",
                     sample_weights.defined() ? sample_weights.sizes() : Dims{},
                     ") is not None, then it must have the same shape as the input (",
                     input.sizes(), ")");
      TS_CHECK_VALUE(weight.dim() == 2,
                     "weight has to be a 2D Tensor, but got Tensor of dimension ", weight.dim());
      bool is_max = mode == "max", is_mean = mode == "mean";
      TS_CHECK_VALUE(is_max || is_mean || mode == "sum", "mode has to be one of sum, mean or max");
      TS_CHECK_VALUE(!is_max || !c.flag(5),
                     "max mode does not support scaling the gradient by the frequency");
      TS_CHECK_VALUE(!is_max || !c.flag(7), "max mode does not support sparse weights");
      TS_CHECK_IMPLEMENTED(
          !sample_weights.defined() || mode == "sum",
          "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
          "for mode='sum' (got mode='",
          mode, "'). Please open a feature request on GitHub.");
      TS_CHECK(!sample_weights.defined() || sample_weights.dtype() == weight.dtype(),
               "expected scalar type ", weight.dtype(), " but found ",
               sample_weights.defined() ? sample_weights.dtype() : weight.dtype());
      check_row_numbers(input, "embedding_bag");
      check_same_device(c.op, c.args);
      std::optional<int64_t> padding;
      int64_t rows = weight.sizes()[0];
      if (c.has(10)) {
        padding = c.integer(10);
        TS_CHECK(*padding >= -rows && *padding < rows,
                 "padding_idx must be within the number of embeddings, -", rows, " through ",
                 rows - 1, ", but got ", *padding);
        if (*padding < 0) *padding += rows;
      }
      if (c.has(3)) renorm_rows(weight, input, c.number(3), c.number(4));

      Bags bags = read_bags(input, c.maybe(2), sample_weights, c.flag(9));
      TensorBase out_of_bags = left_out(bags, padding);
      Dims shape = {bags.count, weight.sizes()[1]};
      if (is_max) {
        TensorBase ids = op::masked_fill(bags.ids, out_of_bags, Value(Scalar(-1)));
        TensorBase best = op::_embedding_bag_max(weight, bags.indices, ids, bags.count);
        if (rows == 0 || best.numel() == 0)
          return op::zeros(shape.span(), weight.dtype(), weight.device());
        TensorBase none = op::eq(best, Scalar(-1));
        TensorBase out = op::gather(weight, 0, op::masked_fill(best, none, Value(Scalar(0))));
        return op::masked_fill(out, none, Value(Scalar(0)));
      }
      // 16-bit floats are added up in float32 and rounded once.
      DType dtype = is_reduced_floating(weight.dtype()) ? DType::kFloat32 : weight.dtype();
      TensorBase out = op::zeros(shape.span(), dtype, weight.device());
      if (bags.count == 0) return in_dtype(out, weight.dtype());
      TensorBase found = op::_embedding(weight, bags.indices, -1, c.flag(5), c.flag(7));
      if (bags.weights.defined()) found = op::mul(found, op::unsqueeze(bags.weights, 1));
      found = in_dtype(found, dtype);
      found = op::masked_fill(found, op::unsqueeze(out_of_bags, 1), Value(Scalar(0)));
      TensorBase ids = op::masked_fill(bags.ids, out_of_bags, Value(Scalar(0)));
      out = op::index_add(out, 0, ids, found);
      if (is_mean) {
        TensorBase one = op::ones(bags.ids.sizes().span(), dtype, weight.device());
        one = op::masked_fill(one, out_of_bags, Value(Scalar(0)));
        TensorBase n = op::zeros({&bags.count, 1}, dtype, weight.device());
        op::index_add_(n, 0, ids, one);
        n = op::masked_fill(n, op::eq(n, Scalar(0)), Value(Scalar(1)));
        out = op::div(out, op::unsqueeze(n, 1));
      }
      return in_dtype(out, weight.dtype());
    },
    .samples = {{"I([[0, 3], [1, 0]], 4), T(4, 3)"},
                {"I([0, 3, 1, 1], 4), T(4, 3), I([0, 1]), mode='sum', per_sample_weights=P(4)"},
                {"I([0, 3, 1, 1], 4), T(4, 3), I([0, 1, 1]), mode='max'"},
                {"I([0, 3, 1, 1], 4), T(4, 3), I([0, 1, 4]), include_last_offset=True, "
                 "padding_idx=3"}},
});

}  // namespace tessera
