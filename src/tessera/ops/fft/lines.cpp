// Transforms along one dimension.
#include "tessera/gen/complex.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/fft.h"
#include "tessera/ops/fft/arguments.h"

namespace tessera {

using namespace fft;

namespace {

Outputs transform(const Call& c, bool forward) {
  Axes axes = one_axis(c, 1, 2);
  TensorBase x = resized(promoted(c.tensor(0)), axes);
  return op::_fft_c2c(x, axes.dims.span(), norm_of(c, 3, forward), forward);
}

Outputs from_real(const Call& c, bool forward) {
  Axes axes = one_axis(c, 1, 2);
  check_real(c, c.tensor(0));
  TensorBase x = resized(promoted(c.tensor(0)), axes);
  TensorBase y = op::_fft_r2c(x, axes.dims.span(), norm_of(c, 3, forward));
  return forward ? y : op::conj_physical(y);
}

Outputs to_real(const Call& c, bool forward) {
  const TensorBase& self = c.tensor(0);
  TS_CHECK_INDEX(self.dim() > 0, "Dimension specified as ", c.integer(2),
                 " but tensor has no dimensions");
  int64_t dim = wrap_dim(c.integer(2), self.dim());
  int64_t n = c.has(1) ? c.integer(1) : 2 * (self.size(dim) - 1);
  TS_CHECK(n >= 1, "Invalid number of data points (", n, ") specified");
  Axes axes{{dim}, {n / 2 + 1}};
  TensorBase x = promoted(self);
  if (!is_complex(x.dtype())) x = op::_to_dtype(x, complex_dtype(x.dtype()));
  x = resized(x, axes);
  if (forward) x = op::conj_physical(x);
  return op::_fft_c2r(x, axes.dims.span(), norm_of(c, 3, forward), n);
}

}  // namespace

TS_OP({
    .schema = "fft.fft(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor",
    .doc = "The discrete Fourier transform along a dimension, cut or padded with zeros to n.",
    .example = "torch.fft.fft(torch.tensor([1.0, 2.0, 3.0, 4.0]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) { return transform(c, true); },
    .autocast = Autocast::kFloat32Cpu,
    .samples = {{"T(3, 4)"}, {"T(5, 3), 6, 0, \"ortho\""}, {"T(7)"}},
});

TS_OP({
    .schema = "fft.ifft(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor",
    .doc = "The inverse of fft.",
    .example = "torch.fft.ifft(torch.tensor([10.0, 0.0, -2.0, 0.0]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) { return transform(c, false); },
    .autocast = Autocast::kFloat32Cpu,
    .samples = {{"T(3, 4)"}, {"T(5, 3), 4, 0, \"forward\""}},
});

TS_OP({
    .schema = "fft.rfft(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor",
    .doc = "The transform of real numbers: the first n / 2 + 1 elements, of which the others are "
           "conjugates.",
    .example = "torch.fft.rfft(torch.tensor([1.0, 2.0, 3.0, 4.0]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) { return from_real(c, true); },
    .autocast = Autocast::kFloat32Cpu,
    .samples = {{"T(3, 4)"}, {"T(5, 3), None, 0"}, {"T(6), 8, 0, \"ortho\""}},
});

TS_OP({
    .schema = "fft.irfft(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor",
    .doc = "The inverse of rfft; n is the length of the result.",
    .example = "torch.fft.irfft(torch.tensor([10.0, -2.0, -2.0]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) { return to_real(c, false); },
    .autocast = Autocast::kFloat32Cpu,
    .samples = {{"C(3, 4)"}, {"C(3, 4), 5"}, {"C(4, 3), 6, 0, \"ortho\""}},
});

TS_OP({
    .schema = "fft.hfft(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor",
    .doc = "The real transform of a signal that is given by half of its Hermitian symmetry.",
    .example = "torch.fft.hfft(torch.tensor([10.0, -2.0, -2.0]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) { return to_real(c, true); },
    .autocast = Autocast::kFloat32Cpu,
    .samples = {{"C(3, 4)"}, {"C(3, 4), 5"}},
});

TS_OP({
    .schema = "fft.ihfft(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor",
    .doc = "The inverse of hfft.",
    .example = "torch.fft.ihfft(torch.tensor([1.0, 2.0, 3.0, 4.0]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) { return from_real(c, false); },
    .autocast = Autocast::kFloat32Cpu,
    .samples = {{"T(3, 4)"}, {"T(5, 3), 4, 0, \"ortho\""}},
});

}  // namespace tessera
