// The three transforms that all others are made of, each the other's gradient.
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/fft.h"
#include "tessera/gen/view.h"
#include "tessera/ops/fft/arguments.h"
#include "tessera/ops/valid.h"

namespace tessera {

using namespace fft;

namespace {

// Dimensions that exist, none of them twice.
Dims checked_dims(const Call& c, const TensorBase& self) {
  const Dims dims = c.ints(1);
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool fits = dims[i] >= 0 && dims[i] < self.dim();
    TS_CHECK(fits && std::find(dims.begin(), dims.begin() + i, dims[i]) == dims.begin() + i,
             c.op.name, "(): cannot transform the dimensions ", dims, " of a tensor of shape ",
             self.sizes());
  }
  return dims;
}
void check_transformed(const Call& c, bool is_real) {
  const DType t = c.tensor(0).dtype();
  const bool wide = t == DType::kFloat32 || t == DType::kFloat64;
  TS_CHECK_IMPLEMENTED(is_real ? wide : is_complex(t) || wide, c.op.name,
                       "(): not implemented for ", t);
}

Dims half_sizes(const Dims& sizes, int64_t dim) {
  Dims out = sizes;
  out[static_cast<size_t>(dim)] = out[static_cast<size_t>(dim)] / 2 + 1;
  return out;
}

// Transforms `out` in place along all but the last dimension, or `in` into it.
void launch_complex(const TensorBase& out, const TensorBase& in, std::span<const int64_t> dims,
                    bool forward, double scale) {
  if (dims.empty()) return;
  Dims ints{forward ? 1 : 0};
  for (size_t i = dims.size(); i > 0; --i) ints.push_back(dims[i - 1]);
  launch("fft_c2c", {&out, 1}, {&in, 1}, ints.span(), {&scale, 1});
}

// Of the n / 2 + 1 elements that stand for n, all but the first (and the middle one of an even
// length) stand for two.
TensorBase weighted(const TensorBase& t, int64_t dim, int64_t n, double inner) {
  TensorBase host = new_empty({n / 2 + 1}, real_dtype(t.dtype()), Device{});
  auto fill = [&](auto* w) {
    for (int64_t k = 0; k <= n / 2; ++k)
      w[k] = static_cast<std::remove_reference_t<decltype(*w)>>(k == 0 || 2 * k == n ? 1 : inner);
  };
  if (host.dtype() == DType::kFloat64)
    fill(reinterpret_cast<double*>(host.raw()));
  else
    fill(reinterpret_cast<float*>(host.raw()));
  Dims shape(t.sizes().size(), 1);
  shape[static_cast<size_t>(dim)] = n / 2 + 1;
  return op::mul(t, op::view(op::_to_device(host, t.device()), shape.span()));
}

}  // namespace

TS_OP({
    .schema = "_fft_resize(Tensor self, int[] size) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      Dims sizes = c.ints(1), common = sizes;
      check_length(c, 1, self.sizes().size());
      checked_numel(c, sizes);
      bool padded = false;
      for (size_t d = 0; d < sizes.size(); ++d) {
        common[d] = std::min(sizes[d], self.sizes()[d]);
        padded |= sizes[d] > common[d];
      }
      TensorBase out = new_empty(sizes, self.dtype(), self.device());
      if (padded) tessera::fill(out, Scalar(0));
      copy_into(alias(out, common, out.strides(), out.storage_offset()),
                alias(self, common, self.strides(), self.storage_offset()), false);
      return out;
    },
    .backward = [](Backward& b) { b.set(0, op::_fft_resize(b.grad, b.shape(0).span())); },
});

// Of complex or real numbers to complex ones.
TS_OP({
    .schema = "_fft_c2c(Tensor self, int[] dim, int normalization, bool forward) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      check_transformed(c, false);
      Dims dims = checked_dims(c, self);
      if (dims.empty()) return op::_to_dtype(self, complex_dtype(self.dtype()));
      TensorBase out = new_empty(self.sizes(), complex_dtype(self.dtype()), self.device());
      if (out.numel() == 0) return out;
      launch_complex(out, self, dims, c.flag(3), scale_of(c.integer(2), self.sizes(), dims));
      return out;
    },
    .backward =
        [](Backward& b) {  // of a real argument the engine keeps the real part
          b.set(0, op::_fft_c2c(b.grad, b.ints(1).span(), b.integer(2), !b.flag(3)));
        },
});

// Forward, of real numbers; half of the result along the last dimension, the rest follows from it.
TS_OP({
    .schema = "_fft_r2c(Tensor self, int[] dim, int normalization) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      check_transformed(c, true);
      Dims dims = checked_dims(c, self);
      TS_CHECK(!dims.empty(), c.op.name, "(): expected at least one dimension");
      int64_t last = dims.back();
      TS_CHECK(self.size(static_cast<int>(last)) >= 1, "Invalid number of data points (",
               self.size(static_cast<int>(last)), ") specified");
      TensorBase out =
          new_empty(half_sizes(self.sizes(), last), complex_dtype(self.dtype()), self.device());
      if (out.numel() == 0) return out;
      double scale = scale_of(c.integer(2), self.sizes(), dims);
      launch("fft_r2c", {&out, 1}, {&self, 1}, over(last), {&scale, 1});
      launch_complex(out, out, dims.span().first(dims.size() - 1), true, 1);
      return out;
    },
    .backward =
        [](Backward& b) {
          Dims dims = b.ints(1);
          int64_t n = b.shape(0)[static_cast<size_t>(dims.back())];
          b.set(0,
                op::_fft_c2r(weighted(b.grad, dims.back(), n, 0.5), dims.span(), b.integer(2), n));
        },
});

// Backward, to real numbers, from half of what stands for them.
TS_OP({
    .schema = "_fft_c2r(Tensor self, int[] dim, int normalization, int last_dim_size) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      TensorBase self = c.tensor(0);
      check_transformed(c, false);
      if (!is_complex(self.dtype())) self = op::_to_dtype(self, complex_dtype(self.dtype()));
      Dims dims = checked_dims(c, self), sizes = self.sizes();
      TS_CHECK(!dims.empty(), c.op.name, "(): expected at least one dimension");
      int64_t last = dims.back();
      TS_CHECK(c.integer(3) >= 1 && self.size(static_cast<int>(last)) == c.integer(3) / 2 + 1,
               c.op.name, "(): expected ", c.integer(3) / 2 + 1, " elements in dimension ", last,
               " for a result of ", c.integer(3), ", but got shape ", sizes);
      sizes[static_cast<size_t>(last)] = c.integer(3);
      TensorBase out = new_empty(sizes, real_dtype(self.dtype()), self.device());
      if (out.numel() == 0) return out;
      double scale = scale_of(c.integer(2), sizes, dims);
      if (dims.size() > 1) {
        TensorBase between = new_empty(self.sizes(), self.dtype(), self.device());
        launch_complex(between, self, dims.span().first(dims.size() - 1), false, 1);
        self = between;
      }
      launch("fft_c2r", {&out, 1}, {&self, 1}, over(last), {&scale, 1});
      return out;
    },
    .backward =
        [](Backward& b) {
          Dims dims = b.ints(1);
          TensorBase g = op::_fft_r2c(b.grad, dims.span(), b.integer(2));
          b.set(0, weighted(g, dims.back(), b.integer(3), 2));
        },
});

}  // namespace tessera
