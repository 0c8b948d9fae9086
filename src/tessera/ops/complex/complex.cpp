// Complex numbers: made of parts, taken apart, and seen as pairs of reals.
#include "tessera/gen/complex.h"
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/gradient.h"
#include "tessera/ops/loops.h"

namespace tessera {

namespace {

void check_parts(const Call& c) {
  auto fits = [](DType t) { return t == DType::kFloat32 || t == DType::kFloat64; };
  DType a = c.dtype_of(0), b = c.dtype_of(1);
  TS_CHECK_IMPLEMENTED(a != DType::kFloat16 || a != b, c.op.name,
                       "(): complex numbers of float16 are not implemented in Tessera");
  TS_CHECK(fits(a) && fits(b), "Expected both inputs to be Half, Float or Double tensors but got ",
           dtype_title(a), " and ", dtype_title(b));
  TS_CHECK(a == b, "Expected object of scalar type ", dtype_title(a), " but got scalar type ",
           dtype_title(b), " for second argument");
}

}  // namespace

TS_BODY(complex, "tt", 'c', 0, (TS_FLOATS), return {a, b};)
TS_OP({
    .schema = "complex(Tensor real, Tensor imag) -> Tensor",
    .doc = "Complex numbers of these parts.",
    .example = "torch.complex(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kOut,
    .check = check_parts,
    .body = &complex_body,
    .backward =
        [](Backward& b) {
          if (b.wants(0)) b.set(0, op::real(b.grad));
          if (b.wants(1)) b.set(1, op::imag(b.grad));
        },
    .exact_out = true,
    .samples = {{"T(3, 4), T(3, 4)"}},
});

TS_BODY(polar, "tt", 'c', 0, (TS_FLOATS), return {a * cos(b), a* sin(b)};)
TS_OP({
    .schema = "polar(Tensor abs, Tensor angle) -> Tensor",
    .doc = "Complex numbers of these sizes and angles.",
    .example = "torch.polar(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 1.5]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kOut,
    .check = check_parts,
    .body = &polar_body,
    .saves = "abs:angle angle",
    .backward =
        [](Backward& b) {
          const TensorBase& angle = b.tensor(1);
          TensorBase c = op::cos(angle), s = op::sin(angle);
          TensorBase re = op::real(b.grad), im = op::imag(b.grad);
          if (b.wants(0)) b.set(0, op::add(op::mul(re, c), op::mul(im, s)));
          if (b.wants(1)) b.set(1, op::mul(b.tensor(0), op::sub(op::mul(im, c), op::mul(re, s))));
        },
    .autocast = Autocast::kFloat32Cpu,
    .exact_out = true,
    .samples = {{"T(3, 4), T(3, 4)"}},
});

TS_BODY(
    angle, "t", 'r', 0, (TS_FLOATS, TS_COMPLEX),
    if constexpr (is_complex_v<T>) { return arg(a); } else {
      return select(a != a, a, select(a < T(0), T(3.14159265358979323846), T(0)));
    })
TS_OP({
    .schema = "angle(Tensor self) -> Tensor",
    .doc = "The angle of each element in the plane: of a real number 0 or pi.",
    .example = "torch.angle(torch.tensor([1 + 1j, -1 + 0j]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kOut,
    .body = &angle_body,
    .saves = "self",
    .backward =
        [](Backward& b) {
          const TensorBase& x = b.tensor(0);
          if (!is_complex(x.dtype())) return grad::zero(b);
          TensorBase g = op::div(op::mul(b.grad, x), grad::square(op::abs(x)));
          b.set(0, op::where(op::eq(x, 0), 0, op::mul(g, Scalar(c128(0, 1)))));
        },
    .samples = {{"T(3, 4)"}, {"T()"}, {"C(3, 4)"}},
});

TS_OP({
    .schema = "view_as_real(Tensor self) -> Tensor",
    .doc = "A view of complex numbers as pairs of reals, in a last dimension of two.",
    .example = "torch.view_as_real(torch.tensor([1 + 2j]))",
    .kind = Kind::kView,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      TS_CHECK(is_complex(self.dtype()), "view_as_real is only supported for complex tensors");
      Dims sizes = self.sizes(), strides = self.strides();
      for (int64_t& s : strides) s *= 2;
      sizes.push_back(2);
      strides.push_back(1);
      return alias_as(self, real_dtype(self.dtype()), sizes, strides, 2 * self.storage_offset());
    },
    .backward = [](Backward& b) { b.set(0, op::view_as_complex(op::contiguous(b.grad))); },
    .samples = {{"C(3, 4)"}},
});

TS_OP({
    .schema = "view_as_complex(Tensor self) -> Tensor",
    .doc = "A view of pairs of reals, in a last dimension of two, as complex numbers.",
    .example = "torch.view_as_complex(torch.tensor([[1.0, 2.0]]))",
    .kind = Kind::kView,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      DType t = self.dtype();
      TS_CHECK(t == DType::kFloat16 || t == DType::kFloat32 || t == DType::kFloat64,
               "view_as_complex is only supported for half, float and double tensors, but got a "
               "tensor of scalar type: ",
               dtype_title(t));
      TS_CHECK_IMPLEMENTED(t != DType::kFloat16,
                           "complex numbers of float16 are not implemented in Tessera");
      TS_CHECK(self.dim() > 0, "Input tensor must have one or more dimensions");
      TS_CHECK(self.sizes().back() == 2, "Tensor must have a last dimension of size 2");
      TS_CHECK(self.strides().back() == 1, "Tensor must have a last dimension with stride 1");
      Dims sizes = self.sizes(), strides = self.strides();
      sizes.resize(sizes.size() - 1);
      strides.resize(strides.size() - 1);
      for (int64_t& s : strides) {
        TS_CHECK(s % 2 == 0, "Tensor must have a stride divisible by 2 for all but last dimension");
        s /= 2;
      }
      TS_CHECK(self.storage_offset() % 2 == 0, "Tensor must have a storage_offset divisible by 2");
      return alias_as(self, complex_dtype(t), sizes, strides, self.storage_offset() / 2);
    },
    .backward = [](Backward& b) { b.set(0, op::view_as_real(b.grad)); },
    .autocast = Autocast::kFloat32Cpu,
    .samples = {{"T(3, 2)"}},
});

TS_OP({
    .schema = "real(Tensor self) -> Tensor",
    .doc = "A view of the real parts; a real tensor itself.",
    .example = "torch.real(torch.tensor([1 + 2j]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      return is_complex(self.dtype()) ? op::select(op::view_as_real(self), -1, 0) : self;
    },
    .samples = {{"T(3, 4)"}, {"C(3, 4)"}},
});

TS_OP({
    .schema = "imag(Tensor self) -> Tensor",
    .doc = "A view of the imaginary parts.",
    .example = "torch.imag(torch.tensor([1 + 2j]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      TS_CHECK(is_complex(self.dtype()),
               "imag is not implemented for tensors with non-complex dtypes.");
      return op::select(op::view_as_real(self), -1, 1);
    },
    .samples = {{"C(3, 4)"}},
});

TS_BODY(conj, "t", 't', 0, (TS_COMPLEX), return conj(a);)
TS_OP({
    .schema = "_conj(Tensor self) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &conj_body,
    .backward = [](Backward& b) { b.set(0, op::_conj(b.grad)); },
});

TS_OP({
    .schema = "conj(Tensor self) -> Tensor",
    .doc = "Each element with its imaginary part negated; a real tensor itself.",
    .example = "torch.conj(torch.tensor([1 + 2j]))",
    .run = [](const Call& c) -> Outputs {
      return is_complex(c.dtype_of(0)) ? op::_conj(c.tensor(0)) : c.tensor(0);
    },
    .samples = {{"T(3, 4)"}, {"C(3, 4)"}},
});

TS_OP({
    .schema = "conj_physical(Tensor self) -> Tensor",
    .doc = "Each element with its imaginary part negated.",
    .example = "torch.conj_physical(torch.tensor([1 + 2j]))",
    .forms = kFunction | kMethod | kInplace | kOut,
    .run = [](const Call& c) -> Outputs { return op::conj(c.tensor(0)); },
    .exact_out = true,
    .samples = {{"C(3, 4)"}},
});

// Conjugates and negatives are computed when asked for: there is nothing to resolve.
TS_OP({
    .schema = "resolve_conj(Tensor self) -> Tensor",
    .doc = "The tensor itself: conjugates are not kept for later.",
    .example = "torch.resolve_conj(torch.tensor([1 + 2j]).conj())",
    .run = [](const Call& c) -> Outputs { return c.tensor(0); },
    .samples = {{"T(3, 4)"}},
});

TS_OP({
    .schema = "resolve_neg(Tensor self) -> Tensor",
    .doc = "The tensor itself: negatives are not kept for later.",
    .example = "torch.resolve_neg(torch.tensor([1.0]))",
    .run = [](const Call& c) -> Outputs { return c.tensor(0); },
    .samples = {{"T(3, 4)"}},
});

}  // namespace tessera
