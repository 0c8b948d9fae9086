// Positions along one dimension, named by a vector: index_select, index_add, index_copy,
// index_fill.
#include "tessera/base/deterministic.h"
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/index.h"
#include "tessera/gen/ternary.h"
#include "tessera/ops/in_dtype.h"
#include "tessera/ops/index/layout.h"

namespace tessera {

TS_OP({
    .schema = "index_select(Tensor self, int dim, Tensor index) -> Tensor",
    .doc = "The positions named by index along a dimension.",
    .example = "torch.index_select(torch.tensor([10, 20, 30]), 0, torch.tensor([2, 0]))",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      const TensorBase& index = c.tensor(2);
      check_same_device(c.op, c.args);
      TS_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
      TS_CHECK(index.dtype() == DType::kInt64 || index.dtype() == DType::kInt32,
               "index_select(): Expected dtype int32 or int64 for index");
      int64_t dim = wrap_dim(c.integer(1), self.dim());
      Dims shape = self.sizes();
      if (self.dim() > 0)
        shape[static_cast<size_t>(dim)] = index.numel();
      else
        TS_CHECK(index.numel() == 1, "index_select(): Index to scalar can have only 1 value, got ",
                 index.numel(), " value(s)");
      TensorBase out = new_empty(shape, self.dtype(), self.device());
      if (index.numel() == 0) return out;
      TensorBase in[] = {at_least_1d(self), index};
      TensorBase to = at_least_1d(out);
      launch("index_select", {&to, 1}, in, {&dim, 1});
      return out;
    },
    .saves = "index",
    .backward =
        [](Backward& b) {
          TensorBase whole = op::new_zeros(b.grad, b.shape(0).span());
          b.set(0, op::index_add_(whole, b.integer(1), b.tensor(2), b.grad));
        },
    .exact_out = true,
    .samples = {{"T(5, 4), 0, I([0, 4, 2], 5)"},
                {"T(5, 4), 1, I([3, 3], 4)"},
                {"T(5, 4), 0, I([], 5)"},
                {"T(), 0, I([0], 1)"}},
});

TS_OP({
    .schema = "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> "
              "Tensor",
    .doc = "self with alpha * source added at the positions named by index along a dimension.",
    .example = "torch.zeros(3).index_add(0, torch.tensor([0, 0]), torch.ones(2))",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kInplace | kOut,
    .run = [](const Call& c) -> Outputs {
      int64_t dim = check_index_source(c, "index_add");
      const TensorBase& index = c.tensor(2);
      TensorBase source = c.tensor(3);
      Scalar alpha = c.scalar(4);
      TS_CHECK(is_differentiable(source.dtype()) || !alpha.is_double(),
               "For integral input tensors, argument alpha must not be a floating point number.");
      TensorBase out = target(c);
      if (index.numel() == 0) return out;
      source = apart_from(out, source);
      if (!(alpha.to_double() == 1 && alpha.im == 0)) source = op::mul(source, alpha);
      // A bool times an integer is an integer; what is added has the dtype of self.
      source = in_dtype(source, out.dtype());
      TensorBase in[] = {apart_from(out, index), at_least_1d(source)};
      TensorBase to = at_least_1d(out);
      const int64_t ints[] = {dim, deterministic()};
      launch("index_add", {&to, 1}, in, ints);
      return out;
    },
    .saves = "index",
    .backward =
        [](Backward& b) {
          b.set(0, b.grad);
          if (!b.wants(3)) return;
          TensorBase g = op::index_select(b.grad, b.integer(1), b.tensor(2));
          c128 alpha = b.scalar(4).to_complex();
          if (alpha == c128(1, 0)) return b.set(3, g);
          bool is_real = !b.scalar(4).is_complex();
          b.set(3, op::mul(g, is_real ? b.scalar(4) : Scalar(c128(alpha.re, -alpha.im))));
        },
    .exact_out = true,
    .updates_self = true,
    .samples = {{"T(5, 4), 0, I([0, 4, 0], 5), T(3, 4)"}, {"T(5), 0, I([1], 5), T(1), alpha=2"}},
});

TS_OP({
    .schema = "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    .doc = "self with source written at the positions named by index along a dimension.",
    .example = "torch.zeros(3).index_copy(0, torch.tensor([2, 0]), torch.tensor([1.0, 2.0]))",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kInplace | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &self = c.tensor(0), &index = c.tensor(2), &source = c.tensor(3);
      int dim = wrap_dim(c.integer(1), self.dim());
      check_same_device(c.op, c.args);
      int64_t n = index.numel();
      TS_CHECK_INDEX(index.dim() < 2, "index_copy_(): Index should have dimension 1 or 0 (got ",
                     index.dim(), ")");
      TS_CHECK_INDEX(source.dim() > 0 || n == 1,
                     "index_copy_(): When source is scalar, index should have one element (got ", n,
                     ")");
      TS_CHECK_INDEX(source.dim() == self.dim() || source.dim() == 0 || self.dim() == 0,
                     "index_copy_(): When source and destination are not scalars, their "
                     "dimensionality must match. Source dimensionality (",
                     source.dim(), "), destination dimensionality (", self.dim(), ")");
      TS_CHECK(index.dtype() == DType::kInt64 || index.dtype() == DType::kInt32,
               "index_copy_(): Expected a long tensor for index, but got ", index.dtype());
      TS_CHECK(self.dtype() == source.dtype(),
               "index_copy_(): self and source expected to have the same dtype, but got (self) ",
               self.dtype(), " and (source) ", source.dtype());
      Dims around = self.sizes(), given = source.sizes();
      if (!around.empty()) around.erase(static_cast<size_t>(dim));
      if (!given.empty()) given.erase(static_cast<size_t>(dim));
      TS_CHECK(around == given,
               "index_copy_(): Source/destination tensor must have same slice shapes. Destination "
               "slice shape: ",
               around, " at dimension ", dim, " and source slice shape: ", given,
               " at dimension 0.");
      TS_CHECK_INDEX(
          source.dim() == 0 || n == source.sizes()[dim], "index_copy_(): Number of indices (", n,
          ") should be equal to source.size(dim) (", source.dim() ? source.sizes()[dim] : 1, ")");
      TensorBase out = target(c);
      if (n > 0)
        write_along(out, dim, apart_from(out, index), apart_from(out, source), Combine::kAssign,
                    IndexError::kIndexCopy);
      return out;
    },
    .saves = "index",
    .backward =
        [](Backward& b) {
          if (b.wants(0))
            b.set(0, op::index_fill(b.grad, b.integer(1), b.tensor(2), Value(Scalar(0))));
          if (b.wants(3)) b.set(3, op::index_select(b.grad, b.integer(1), b.tensor(2)));
        },
    .autocast = Autocast::kPromoteCpu,
    .exact_out = true,
    .updates_self = true,
    .samples = {{"T(5, 4), 0, I([0, 4, 2], 5), T(3, 4)"}, {"T(5, 4), -1, I([1], 4), T(5, 1)"}},
});

TS_OP({
    .schema = "index_fill(Tensor self, int dim, Tensor index, Tensor|Scalar value) -> Tensor",
    .doc = "self with value at the positions named by index along a dimension.",
    .example = "torch.zeros(3).index_fill(0, torch.tensor([2, 0]), 5)",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kInplace,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &self = c.tensor(0), &index = c.tensor(2);
      TS_CHECK_INDEX(index.dtype() == DType::kInt64,
                     "index_fill_(): Expected dtype int64 for index.");
      TS_CHECK(index.dim() <= 1, "Index has to be a vector/scalar");
      int dim = wrap_dim(c.integer(1), self.dim());
      TensorBase value;
      if (c.args[3].is_tensor()) {
        value = c.tensor(3);
        TS_CHECK(value.dim() == 0,
                 "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
                 value.dim(), " dimension(s).");
        TS_CHECK(is_complex(self.dtype()) || !is_complex(value.dtype()),
                 "index_fill_(): Converting complex Scalar to non-complex type is not supported");
        value = in_dtype(value, self.dtype());
        if (!(value.device() == self.device())) value = op::_to_device(value, self.device());
      } else {
        TS_CHECK(is_complex(self.dtype()) || !c.scalar(3).is_complex(),
                 "index_fill_(): Converting complex Scalar to non-complex type is not supported");
        check_fits(c.scalar(3), self.dtype());
        value = number_like(c.scalar(3), self);
      }
      TensorBase out = target(c);
      if (index.numel() > 0)
        write_along(out, dim, apart_from(out, index), apart_from(out, value), Combine::kAssign,
                    IndexError::kIndex);
      return out;
    },
    .saves = "index",
    .backward =
        [](Backward& b) {
          if (b.wants(0))
            b.set(0, op::index_fill(b.grad, b.integer(1), b.tensor(2), Value(Scalar(0))));
          if (!b.wants(3)) return;
          // Places, not indices: what is filled twice counts once.
          TensorBase none = op::full(b.shape(0).span(), false, DType::kBool, b.grad.device());
          TensorBase filled = op::index_fill(none, b.integer(1), b.tensor(2), Value(Scalar(true)));
          b.set(3, op::where(filled, b.grad, Scalar(0)));
        },
    .updates_self = true,
    .samples = {{"T(5, 4), 0, I([0, 4], 5), 2.5"},
                {"T(5, 4), 1, I([3], 4), T()"},
                {"T(), 0, I([0], 1), 3"}},
});

}  // namespace tessera
