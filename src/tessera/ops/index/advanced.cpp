// Indexing with tensors and masks: x[a, b], x[a, b] = v, x[mask] += v.
#include "tessera/ops/index/advanced.h"

#include "tessera/gen/bitwise.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/index.h"
#include "tessera/gen/ternary.h"
#include "tessera/ops/index/mask.h"

namespace tessera {

namespace {

bool any_defined(std::span<const TensorBase> indices) {
  for (const TensorBase& t : indices)
    if (t.defined()) return true;
  return false;
}

TensorBase read_index(const TensorBase& self, std::span<const TensorBase> indices) {
  if (!any_defined(indices)) return op::clone(self);
  IndexPlan plan = plan_index(self, indices);
  TensorBase out = new_empty(plan.shape, self.dtype(), self.device());
  std::vector<TensorBase> in = {plan.view};
  in.insert(in.end(), plan.indices.begin(), plan.indices.end());
  launch("index_read", {&out, 1}, in, plan.ints(IndexError::kIndex, nullptr));
  return out;
}

// The only index, if that is a boolean mask: its place among the indices, else -1.
int lone_mask(std::span<const TensorBase> indices) {
  int at = -1;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i].defined()) continue;
    if (at >= 0 || indices[i].dtype() != DType::kBool) return -1;
    at = static_cast<int>(i);
  }
  return at;
}

// A mask over dimensions [first, first + mask.dim()) laid over the whole tensor.
TensorBase mask_over(const TensorBase& self, const TensorBase& mask, int first) {
  Dims strides(self.sizes().size());
  for (int d = 0; d < mask.dim(); ++d) strides[static_cast<size_t>(first + d)] = mask.strides()[d];
  return alias(mask, self.sizes(), strides, mask.storage_offset());
}

bool mask_fits(const TensorBase& self, const TensorBase& mask, int first) {
  if (first + mask.dim() > self.dim()) return false;
  for (int d = 0; d < mask.dim(); ++d)
    if (mask.sizes()[d] != self.sizes()[first + d]) return false;
  return true;
}

void write_index(const Op& op, const TensorBase& out, std::span<const TensorBase> indices,
                 TensorBase values, bool accumulate) {
  TS_CHECK(values.dtype() == out.dtype(),
           "Index put requires the source and destination dtypes match, got ",
           dtype_name(out.dtype()), " for the destination and ", dtype_name(values.dtype()),
           " for the source.");
  TS_CHECK_INDEX(indices.size() <= static_cast<size_t>(out.dim()),
                 "too many indices for tensor of dimension ", out.dim(), " (got ", indices.size(),
                 ")");
  if (!(values.device() == out.device())) {
    TS_CHECK(values.dim() == 0, "expected device ", out.device(), " but got device ",
             values.device(), " for value tensor");
    values = op::_to_device(values, out.device());
  }
  values = apart_from(out, values);
  // One value at the places of a mask needs no positions: nothing waits for the mask.
  int at = lone_mask(indices);
  if (at >= 0 && !accumulate && values.numel() == 1 && mask_fits(out, indices[at], at) &&
      indices[at].device() == out.device()) {
    TensorBase mask = mask_over(out, apart_from(out, indices[at]), at);
    TensorBase value = alias(values, {}, {}, values.storage_offset());
    return fill_masked(op, out, mask, value);
  }
  std::vector<TensorBase> apart;
  for (const TensorBase& t : indices) apart.push_back(t.defined() ? apart_from(out, t) : t);
  if (!any_defined(indices)) {
    TS_CHECK_IMPLEMENTED(!accumulate, "index_put() without an index does not accumulate");
    return copy_into(out, values, false);
  }
  IndexPlan plan = plan_index(out, apart);
  int lead = plan.shape.ndim() - values.dim();
  bool fits = lead >= 0;
  for (int d = 0; fits && d < values.dim(); ++d)
    fits = values.sizes()[d] == 1 || values.sizes()[d] == plan.shape[static_cast<size_t>(lead + d)];
  TS_CHECK(fits, "shape mismatch: value tensor of shape ", values.sizes(),
           " cannot be broadcast to indexing result of shape ", plan.shape);
  std::vector<TensorBase> in = {
      alias(values, plan.shape, broadcast_strides(values.sizes(), values.strides(), plan.shape),
            values.storage_offset())};
  in.insert(in.end(), plan.indices.begin(), plan.indices.end());
  Combine combine = accumulate ? Combine::kAdd : Combine::kAssign;
  launch("index_write", {&plan.view, 1}, in, plan.ints(IndexError::kIndex, &combine));
}

// Of index_put and its in-place twins: arguments (self, indices, values, accumulate).
void put_backward(Backward& b) {
  if (b.wants(0)) {
    if (b.flag(3))
      b.set(0, b.grad);
    else
      b.set(0, op::index_put(b.grad, b.tensors(1), op::new_zeros(b.grad, {}), false));
  }
  if (b.wants(2)) b.set(2, op::index(b.grad, b.tensors(1)));
}

}  // namespace

TS_OP({
    .schema = "index(Tensor self, Tensor?[] indices) -> Tensor",
    .also = "_unsafe_index",
    .doc = "The elements that index tensors or masks name, one for each dimension or None: "
           "x[a, :, b].",
    .example = "torch.index(torch.tensor([10, 20, 30]), [torch.tensor([2, -1, 0])])",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return read_index(c.tensor(0), c.tensors(1)); },
    .saves = "indices",
    .backward =
        [](Backward& b) {
          TensorBase whole = op::new_zeros(b.grad, b.shape(0).span());
          b.set(0, op::index_put_(whole, b.tensors(1), b.grad, true));
        },
    .samples = {{"T(5, 4), [I([0, 4, 0], 5)]"},
                {"T(5, 4), [I([[0, 1], [-1, 2]], 5), I([0, -4], 4)]"},
                {"T(3, 4, 2), [I([0, 2], 3), None, I([1, 0], 2)]"},
                {"T(2, 3), [torch.tensor([[True, False, True], [False, False, True]])]"}},
});

TS_OP({
    .schema = "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> "
              "Tensor",
    .also = "_unsafe_index_put",
    .doc = "self with values at the elements that index tensors or masks name; with accumulate "
           "they are added, in the order of the index.",
    .example = "torch.zeros(3).index_put((torch.tensor([0, 0]),), torch.ones(2), accumulate=True)",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kInplace,
    .run = [](const Call& c) -> Outputs {
      TensorBase out = target(c);
      write_index(c.op, out, c.tensors(1), c.tensor(2), c.flag(3));
      return out;
    },
    .saves = "indices",
    .backward = put_backward,
    .autocast = Autocast::kPromoteGpu,
    .updates_self = true,
    .samples = {{"T(5, 4), [I([0, 4], 5)], T(2, 4)"},
                {"T(5, 4), [I([0, -1, 0], 5), I([1, 2, 1], 4)], T(3), True"},
                {"T(5, 4), [None, I([3, 0], 4)], T(1)"},
                {"T(3), [torch.tensor([True, False, True])], T(2)"}},
});

TS_OP({
    .schema = "_index_put_impl_(Tensor self, Tensor?[] indices, Tensor values, "
              "bool accumulate=False, bool unsafe=False) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      write_index(c.op, self, c.tensors(1), c.tensor(2), c.flag(3));
      count_write(self);
      return self;
    },
    .saves = "indices",
    .backward = put_backward,
});

namespace {

// Indices brought into the range of the dimension that they name.
std::vector<TensorBase> clamped(const TensorBase& self, std::span<const TensorBase> indices) {
  std::vector<TensorBase> out;
  for (size_t i = 0; i < indices.size(); ++i) {
    TensorBase t = indices[i];
    if (t.defined() && is_integral(t.dtype(), false) && t.dtype() != DType::kUInt8)
      t = op::clamp(t, Scalar(0), Scalar(self.size(static_cast<int64_t>(i)) - 1));
    out.push_back(t);
  }
  return out;
}

void check_mask(const TensorBase& mask) {
  TS_CHECK(mask.dtype() == DType::kBool, "expected a boolean mask, but got ", mask.dtype());
}

}  // namespace

TS_OP({
    .schema = "_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> "
              "Tensor",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &self = c.tensor(0), &mask = c.tensor(1);
      check_mask(mask);
      if (self.numel() == 0)
        return op::full(mask.sizes().span(), c.scalar(3), self.dtype(), self.device());
      TensorBase found = op::index(self, clamped(self, c.tensors(2)));
      return op::masked_fill(found, op::logical_not(mask), Value(c.scalar(3)));
    },
});

TS_OP({
    .schema = "_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, "
              "Tensor values) -> Tensor",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &self = c.tensor(0), &mask = c.tensor(1);
      check_mask(mask);
      if (self.numel() == 0) return op::clone(self);
      // A zero of the values' own kind: an integer would make numbers of booleans.
      const bool truth = c.tensor(3).dtype() == DType::kBool;
      TensorBase values = op::where(mask, c.tensor(3), truth ? Scalar(false) : Scalar(0));
      return op::index_put(self, clamped(self, c.tensors(2)), values, true);
    },
});

}  // namespace tessera
