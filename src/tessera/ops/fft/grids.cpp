// Transforms along several dimensions.
#include "tessera/gen/complex.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/fft.h"
#include "tessera/ops/fft/arguments.h"

namespace tessera {

using namespace fft;

namespace {

Outputs transform(const Call& c, bool forward, Default otherwise) {
  Axes axes = many_axes(c, 1, 2, otherwise);
  TensorBase x = resized(promoted(c.tensor(0)), axes);
  return op::_fft_c2c(x, axes.dims.span(), norm_of(c, 3, forward), forward);
}

void check_some(const Call& c, const Axes& axes) {
  std::string_view name = c.op.name;
  name.remove_prefix(std::min<size_t>(name.find('_') + 1, name.size()));
  TS_CHECK(!axes.dims.empty(), name, " must transform at least one axis");
}

Outputs from_real(const Call& c, bool forward, Default otherwise) {
  check_real(c, c.tensor(0));
  Axes axes = many_axes(c, 1, 2, otherwise);
  check_some(c, axes);
  TensorBase x = resized(promoted(c.tensor(0)), axes);
  const int64_t norm = norm_of(c, 3, forward);
  if (forward) return op::_fft_r2c(x, axes.dims.span(), norm);
  // The last dimension is that of a real signal, the others are transformed backward.
  std::span<const int64_t> dims = axes.dims.span();
  x = op::conj_physical(op::_fft_r2c(x, dims.last(1), norm));
  return dims.size() == 1 ? x : op::_fft_c2c(x, dims.first(dims.size() - 1), norm, false);
}

Outputs to_real(const Call& c, bool forward, Default otherwise) {
  int64_t last = 0;
  Axes axes = axes_to_real(c, 1, 2, otherwise, &last);
  check_some(c, axes);
  TensorBase x = promoted(c.tensor(0));
  if (!is_complex(x.dtype())) x = op::_to_dtype(x, complex_dtype(x.dtype()));
  x = resized(x, axes);
  const int64_t norm = norm_of(c, 3, forward);
  std::span<const int64_t> dims = axes.dims.span();
  if (!forward) return op::_fft_c2r(x, dims, norm, last);
  if (dims.size() > 1) x = op::_fft_c2c(x, dims.first(dims.size() - 1), norm, true);
  return op::_fft_c2r(op::conj_physical(x), dims.last(1), norm, last);
}

}  // namespace

TS_OP({
    .schema = "fft.fft2(Tensor self, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
    .doc = "The discrete Fourier transform along several dimensions, the last two unless told.",
    .example = "torch.fft.fft2(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) { return transform(c, true, kTwo); },
    .autocast = Autocast::kFloat32Cpu,
    .samples = {{"T(3, 4)"}, {"T(2, 3, 4)"}, {"T(3, 4), (3, 5)"}},
});

TS_OP({
    .schema = "fft.fftn(Tensor self, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
    .doc = "The discrete Fourier transform along several dimensions.",
    .example = "torch.fft.fftn(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) { return transform(c, true, kAll); },
    .autocast = Autocast::kFloat32Cpu,
    .samples = {{"T(3, 4)"}, {"T(2, 3, 4)"}, {"T(3, 4), (4, 2), (0, 1), \"ortho\""}},
});

TS_OP({
    .schema = "fft.ifft2(Tensor self, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
    .doc = "The inverse of fft2, the last two unless told.",
    .example = "torch.fft.ifft2(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) { return transform(c, false, kTwo); },
    .autocast = Autocast::kFloat32Cpu,
    .samples = {{"T(3, 4)"}, {"T(3, 4), (3, 5)"}},
});

TS_OP({
    .schema = "fft.ifftn(Tensor self, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
    .doc = "The inverse of fftn.",
    .example = "torch.fft.ifftn(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) { return transform(c, false, kAll); },
    .autocast = Autocast::kFloat32Cpu,
    .samples = {{"T(3, 4)"}, {"T(3, 4), (4, 2), (0, 1), \"ortho\""}},
});

TS_OP({
    .schema = "fft.rfft2(Tensor self, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
    .doc = "The transform of real numbers along several dimensions: half of it along the last one, "
           "the last two unless told.",
    .example = "torch.fft.rfft2(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) { return from_real(c, true, kTwo); },
    .autocast = Autocast::kFloat32Cpu,
    .samples = {{"T(3, 4)"}, {"T(2, 3, 5)"}, {"T(3, 4), (3, 5)"}},
});

TS_OP({
    .schema = "fft.rfftn(Tensor self, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
    .doc = "The transform of real numbers along several dimensions: half of it along the last one.",
    .example = "torch.fft.rfftn(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) { return from_real(c, true, kAll); },
    .autocast = Autocast::kFloat32Cpu,
    .samples = {{"T(3, 4)"}, {"T(2, 3, 5)"}, {"T(3, 4), (4, 2), (0, 1), \"ortho\""}},
});

TS_OP({
    .schema = "fft.irfft2(Tensor self, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
    .doc = "The inverse of rfft2; s are the lengths of the result, the last two unless told.",
    .example = "torch.fft.irfft2(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) { return to_real(c, false, kTwo); },
    .autocast = Autocast::kFloat32Cpu,
    .samples = {{"C(3, 4)"}, {"C(3, 4), (3, 5)"}},
});

TS_OP({
    .schema = "fft.irfftn(Tensor self, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
    .doc = "The inverse of rfftn; s are the lengths of the result.",
    .example = "torch.fft.irfftn(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) { return to_real(c, false, kAll); },
    .autocast = Autocast::kFloat32Cpu,
    .samples = {{"C(3, 4)"}, {"C(3, 4), (4, 2), (0, 1), \"ortho\""}},
});

TS_OP({
    .schema = "fft.hfft2(Tensor self, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
    .doc = "The real transform of a signal given by half of its Hermitian symmetry, along several "
           "dimensions, the last two unless told.",
    .example = "torch.fft.hfft2(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) { return to_real(c, true, kTwo); },
    .autocast = Autocast::kFloat32Cpu,
    .samples = {{"C(3, 4)"}, {"C(3, 4), (3, 5)"}},
});

TS_OP({
    .schema = "fft.hfftn(Tensor self, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
    .doc = "The real transform of a signal given by half of its Hermitian symmetry, along several "
           "dimensions.",
    .example = "torch.fft.hfftn(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) { return to_real(c, true, kAll); },
    .autocast = Autocast::kFloat32Cpu,
    .samples = {{"C(3, 4)"}, {"C(3, 4), (4, 2), (0, 1), \"ortho\""}},
});

TS_OP({
    .schema = "fft.ihfft2(Tensor self, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
    .doc = "The inverse of hfft2, the last two unless told.",
    .example = "torch.fft.ihfft2(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) { return from_real(c, false, kTwo); },
    .autocast = Autocast::kFloat32Cpu,
    .samples = {{"T(3, 4)"}, {"T(3, 4), (3, 5)"}},
});

TS_OP({
    .schema = "fft.ihfftn(Tensor self, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
    .doc = "The inverse of hfftn.",
    .example = "torch.fft.ihfftn(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) { return from_real(c, false, kAll); },
    .autocast = Autocast::kFloat32Cpu,
    .samples = {{"T(3, 4)"}, {"T(3, 4), (4, 2), (0, 1), \"ortho\""}},
});

}  // namespace tessera
