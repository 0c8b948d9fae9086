// Views with the dimensions in another order.
#include "tessera/gen/complex.h"
#include "tessera/gen/view.h"

namespace tessera {

namespace {

TensorBase exchanged(const TensorBase& t, int64_t dim0, int64_t dim1) {
  size_t a = static_cast<size_t>(wrap_dim(dim0, t.dim()));
  size_t b = static_cast<size_t>(wrap_dim(dim1, t.dim()));
  Dims sizes = t.sizes(), strides = t.strides();
  if (t.dim() > 0) {
    std::swap(sizes[a], sizes[b]);
    std::swap(strides[a], strides[b]);
  }
  return alias(t, sizes, strides, t.storage_offset());
}

}  // namespace

TS_OP({
    .schema = "transpose(Tensor self, int dim0, int dim1) -> Tensor",
    .also = "swapdims",
    .doc = "A view with two dimensions exchanged.",
    .example = "torch.transpose(torch.ones(2, 3), 0, 1).shape",
    .kind = Kind::kView,
    .forms = kFunction | kMethod | kInplace,
    .run = [](const Call& c) -> Outputs {
      return exchanged(c.tensor(0), c.integer(1), c.integer(2));
    },
    .backward = [](Backward& b) { b.set(0, op::transpose(b.grad, b.integer(1), b.integer(2))); },
    .samples = {{"T(3, 4), 0, 1"}, {"T(2, 3, 4), 0, -1"}, {"T(), 0, 0"}},
});

TS_OP({
    .schema = "swapaxes(Tensor self, int axis0, int axis1) -> Tensor",
    .doc = "A view with two dimensions exchanged; NumPy's name of transpose.",
    .example = "torch.swapaxes(torch.ones(2, 3), 0, 1).shape",
    .kind = Kind::kView,
    .forms = kFunction | kMethod | kInplace,
    .run = [](const Call& c) -> Outputs {
      return exchanged(c.tensor(0), c.integer(1), c.integer(2));
    },
    .backward = [](Backward& b) { b.set(0, op::transpose(b.grad, b.integer(1), b.integer(2))); },
    .samples = {{"T(2, 3, 4), 0, -1"}},
});

TS_OP({
    .schema = "t(Tensor self) -> Tensor",
    .doc = "A matrix's transpose, as a view; a vector or number stays as it is.",
    .example = "torch.ones(2, 3).t().shape",
    .kind = Kind::kView,
    .forms = kFunction | kMethod | kInplace,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      TS_CHECK(t.dim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is ", t.dim(),
               "D");
      return exchanged(t, 0, t.dim() == 2 ? 1 : 0);
    },
    .backward = [](Backward& b) { b.set(0, op::t(b.grad)); },
    .samples = {{"T(3, 4)"}, {"T(3)"}},
});

TS_OP({
    .schema = "permute(Tensor self, int... dims) -> Tensor",
    .doc = "A view with the dimensions in another order.",
    .example = "torch.permute(torch.ones(2, 3, 4), (2, 0, 1)).shape",
    .kind = Kind::kView,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      Dims order = c.ints(1);
      TS_CHECK(order.ndim() == t.dim(),
               "permute(sparse_coo): number of dimensions in the tensor input does not match the "
               "length of the desired ordering of dimensions i.e. input.dim() = ",
               t.dim(), " is not equal to len(dims) = ", order.ndim());
      Dims sizes, strides;
      uint64_t seen = 0;
      for (int64_t d : order) {
        size_t at = static_cast<size_t>(wrap_dim(d, t.dim()));
        TS_CHECK(!(seen >> at & 1), "permute(): duplicate dims are not allowed.");
        seen |= uint64_t{1} << at;
        sizes.push_back(t.sizes()[at]);
        strides.push_back(t.strides()[at]);
      }
      return alias(t, sizes, strides, t.storage_offset());
    },
    .backward =
        [](Backward& b) {
          Dims order = b.ints(1);
          Dims inverse(order.size());
          for (size_t i = 0; i < order.size(); ++i)
            inverse[static_cast<size_t>(wrap_dim(order[i], order.ndim()))] =
                static_cast<int64_t>(i);
          b.set(0, op::permute(b.grad, inverse.span()));
        },
    .samples = {{"T(2, 3, 4), (2, 0, 1)"}, {"T(2, 3), (-1, 0)"}},
});

TS_OP({
    .schema = "movedim(Tensor self, int[1] source, int[1] destination) -> Tensor",
    .also = "moveaxis",
    .doc = "A view with some dimensions moved to other places; the rest keep their order.",
    .example = "torch.movedim(torch.ones(2, 3, 4), 0, -1).shape",
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      Dims from = c.ints(1), to = c.ints(2);
      TS_CHECK(from.size() == to.size(), "movedim: Invalid source or destination dims: source (",
               from, " dims) should contain the same number of dims as destination (", to,
               " dims)");
      auto wrapped = [&](const Dims& dims, const char* name) {
        Dims out;
        uint64_t seen = 0;
        for (int64_t d : dims) {
          int at = wrap_dim(d, t.dim());
          TS_CHECK(!(seen >> at & 1), "movedim: repeated dim in `", name, "` (", dims, ")");
          seen |= uint64_t{1} << at;
          out.push_back(at);
        }
        return out;
      };
      // All are wrapped before any is refused for being there twice.
      for (const Dims* dims : {&from, &to})
        for (int64_t d : *dims) wrap_dim(d, t.dim());
      Dims source = wrapped(from, "source"), target = wrapped(to, "destination");
      if (t.dim() == 0) return op::permute(t, std::span<const int64_t>());
      Dims order(static_cast<size_t>(t.dim()), -1);
      uint64_t moved = 0;
      for (size_t i = 0; i < source.size(); ++i) {
        order[static_cast<size_t>(target[i])] = source[i];
        moved |= uint64_t{1} << source[i];
      }
      int next = 0;
      for (int64_t& d : order) {
        if (d >= 0) continue;
        while (moved >> next & 1) ++next;
        d = next++;
      }
      return op::permute(t, order.span());
    },
    .samples = {{"T(2, 3, 4), 0, 2"}, {"T(2, 3, 4), (0, 1), (-1, 0)"}},
});

TS_OP({
    .schema = "adjoint(Tensor self) -> Tensor",
    .doc = "The last two dimensions exchanged, and complex numbers conjugated.",
    .example = "torch.adjoint(torch.tensor([[1, 2j], [0, 3 + 1j]]))",
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      TS_CHECK(t.dim() != 1,
               "tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D "
               "tensor.");
      TensorBase out =
          t.dim() == 0 ? op::permute(t, std::span<const int64_t>()) : op::transpose(t, -2, -1);
      return is_complex(t.dtype()) ? op::conj(out) : out;
    },
    .samples = {{"T(2, 3)"}, {"T(2, 3, 4)"}},
});

}  // namespace tessera
