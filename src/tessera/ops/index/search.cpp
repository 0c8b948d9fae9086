// Positions in sorted sequences, and membership.
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/index.h"
#include "tessera/ops/in_dtype.h"
#include "tessera/ops/index/layout.h"

namespace tessera {

namespace {

// The dtype that two arguments are compared in; numbers count as such.
DType common_dtype(const Value& a, const Value& b) {
  auto of = [](const Value& v) { return v.is_tensor() ? v.tensor->dtype() : v.scalar.dtype(); };
  auto weak = [](const Value& v) { return !v.is_tensor() || v.tensor->dim() == 0; };
  auto category = [](DType t) {
    return is_complex(t) ? 3 : is_floating(t) ? 2 : t == DType::kBool ? 0 : 1;
  };
  // A number or a 0-d tensor counts only where it is of a higher kind.
  if (weak(a) != weak(b)) {
    const Value& strong = weak(a) ? b : a;
    const Value& other = weak(a) ? a : b;
    if (category(of(other)) <= category(of(strong))) return of(strong);
  }
  return promote(of(a), of(b));
}

TensorBase dense_as(const Value& v, DType dtype, Device device) {
  if (!v.is_tensor()) return op::full({}, v.scalar, dtype, device);
  TensorBase t = *v.tensor;
  t = in_dtype(t, dtype);
  return op::contiguous(t);
}

TensorBase find_positions(const TensorBase& sorted, const Value& input, bool int32, bool right,
                          const TensorBase& sorter) {
  DType dtype = common_dtype(Value(sorted), input);
  TS_CHECK_IMPLEMENTED(!is_complex(dtype), "\"searchsorted\" not implemented for ", dtype);
  TensorBase values = dense_as(input, dtype, sorted.device());
  TS_CHECK(!int32 || sorted.size(-1) < INT32_MAX,
           "torch.searchsorted(): the size of boundaries' last dimension should be less than ",
           INT32_MAX, ", but we got ", sorted.size(-1));
  TensorBase out =
      new_empty(values.sizes(), int32 ? DType::kInt32 : DType::kInt64, sorted.device());
  if (out.numel() == 0) return out;
  std::vector<TensorBase> in = {dense_as(Value(sorted), dtype, sorted.device()), values};
  if (sorter.defined()) in.push_back(op::contiguous(sorter));
  int64_t side = right;
  launch("searchsorted", {&out, 1}, in, {&side, 1});
  return out;
}

// Within the sequence, so that nothing else is read.
void check_sorter(const TensorBase& sorted, const TensorBase& sorter) {
  TS_CHECK(sorter.device() == sorted.device(),
           "torch.searchsorted(): sorter and boundary tensors should have same device type, but "
           "got sorter tensor device type ",
           sorter.device(), " and input value tensor device type ", sorted.device());
  TS_CHECK(sorter.sizes() == sorted.sizes(),
           "torch.searchsorted(): boundary and sorter must have the same size, but got boundary "
           "tensor ",
           sorted.sizes(), "and got sorter tensor ", sorter.sizes());
  TS_CHECK(sorter.dtype() == DType::kInt64,
           "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype ",
           sorter.dtype());
  if (sorter.numel() == 0 || sorter.device().is_meta()) return;
  TensorBase host = host_data(sorter);
  const int64_t* at = reinterpret_cast<const int64_t*>(host.raw());
  for (int64_t i = 0; i < sorter.numel(); ++i)
    TS_CHECK(at[i] >= 0 && at[i] < sorted.size(-1),
             "torch.searchsorted(): sorter index out of range");
}

}  // namespace

TS_OP({
    .schema = "searchsorted(Tensor sorted_sequence, Tensor|Scalar input, *, bool out_int32=False, "
              "bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
    .doc = "Where each value would have to be inserted to keep the innermost dimension sorted.",
    .example = "torch.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([0, 3, 6]))",
    .kind = Kind::kKernel,
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& sorted = c.tensor(0);
      bool right = c.flag(3);
      if (c.has(4)) {
        std::string_view side = c.text(4);
        TS_CHECK(side == "left" || side == "right",
                 "torch.searchsorted(): side can only be 'left' or 'right' but got ", side);
        TS_CHECK(!(right && side == "left"),
                 "torch.searchsorted(): side and right can't be set to opposites, got side of "
                 "left while right was True");
        right = side == "right";
      }
      check_same_device(c.op, c.args);
      TS_CHECK(sorted.dim() > 0,
               "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 "
               "dimension");
      const Value& input = c.args[1];
      int dims = input.is_tensor() ? input.tensor->dim() : 0;
      TS_CHECK(dims > 0 || sorted.dim() == 1,
               "torch.searchsorted(): input value can be a scalar only when boundaries tensor "
               "dimension is 1, but we got boundaries tensor dim(",
               sorted.dim(), ") and input value's dim(", dims, ") numel(1)");
      if (sorted.dim() > 1) {
        const TensorBase& t = *input.tensor;
        bool match = t.dim() == sorted.dim();
        for (int d = 0; match && d + 1 < t.dim(); ++d) match = t.sizes()[d] == sorted.sizes()[d];
        TS_CHECK(match,
                 "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
                 "dimensions of boundaries tensor and input value tensor must match, but we got "
                 "boundaries tensor ",
                 sorted.sizes(), " and input value tensor ", t.sizes());
      }
      TensorBase sorter = c.maybe(5);
      if (sorter.defined()) check_sorter(sorted, sorter);
      return find_positions(sorted, input, c.flag(2), right, sorter);
    },
    .exact_out = true,
    .not_differentiable = true,
    .samples = {{"torch.tensor([-3.0, -1.0, 0.5, 2.0]), T(3, 4)"},
                {"torch.tensor([[0, 2, 4], [1, 3, 5]]), I([[2, 4], [1, 6]]), right=True"},
                {"torch.tensor([1, 3, 5]), 3"}},
});

TS_OP({
    .schema = "bucketize(Tensor|Scalar input, Tensor boundaries, *, bool out_int32=False, "
              "bool right=False) -> Tensor",
    .doc = "The number of the bucket between boundaries that each value falls into.",
    .example = "torch.bucketize(torch.tensor([0, 3, 6]), torch.tensor([1, 3, 5]))",
    .kind = Kind::kKernel,
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& boundaries = c.tensor(1);
      TS_CHECK(boundaries.dim() == 1, "boundaries tensor must be 1 dimension, but got dim(",
               boundaries.dim(), ")");
      check_same_device(c.op, c.args);
      return find_positions(boundaries, c.args[0], c.flag(2), c.flag(3), TensorBase());
    },
    .exact_out = true,
    .not_differentiable = true,
    .samples = {{"T(3, 4), torch.tensor([-3.0, -1.0, 0.5, 2.0])"},
                {"3, torch.tensor([1, 3, 5]), right=True"}},
});

TS_OP({
    .schema = "isin(Tensor|Scalar elements, Tensor|Scalar test_elements, *, "
              "bool assume_unique=False, bool invert=False) -> Tensor",
    .doc = "Is each element among the test elements?",
    .example = "torch.isin(torch.tensor([1, 2, 3]), torch.tensor([2, 5]))",
    .kind = Kind::kKernel,
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      const Value &elements = c.args[0], &among = c.args[1];
      TS_CHECK_TYPE(elements.is_tensor() || among.is_tensor(),
                    "isin(): one of elements and test_elements must be a Tensor");
      check_same_device(c.op, c.args);
      Device device = (elements.is_tensor() ? elements : among).tensor->device();
      DType dtype = common_dtype(elements, among);
      TS_CHECK(!is_complex(dtype), "Unsupported input type encountered for isin(): ", dtype);
      TensorBase in[] = {dense_as(elements, dtype, device), dense_as(among, dtype, device)};
      TensorBase out = new_empty(in[0].sizes(), DType::kBool, device);
      int64_t invert = c.flag(3);
      if (out.numel() > 0) launch("isin", {&out, 1}, in, {&invert, 1});
      return out;
    },
    .exact_out = true,
    .not_differentiable = true,
    .samples = {{"I([[1, 2], [3, 4]]), I([2, 4, 7])"},
                {"I([1, 2]), 2, invert=True"},
                {"2, I([1, 2])"}},
});

}  // namespace tessera
