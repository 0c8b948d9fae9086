// Sample frequencies, and the order of a transform's elements.
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/rearrange.h"
#include "tessera/ops/fft/arguments.h"

namespace tessera {

namespace {

// k = 0 .. n - 1 by `at`, each times 1 / (n d), in the dtype asked for.
template <class F>
TensorBase frequencies(const Call& c, int64_t count, F at) {
  DType dtype = c.dtype(2, default_dtype());
  Device device = c.has(3) ? c.args[3].device : Device{};
  TensorBase host = new_empty({count}, DType::kFloat64, Device{});
  double* values = reinterpret_cast<double*>(host.raw());
  for (int64_t k = 0; k < count; ++k) values[k] = static_cast<double>(at(k));
  TensorBase out = op::_to_device(op::_to_dtype(host, dtype), device);
  return op::mul(out, Scalar(1.0 / (static_cast<double>(c.integer(0)) * c.number(1))));
}

// Each dimension turned by half of its length, rounded down or up.
Outputs shifted(const Call& c, bool up) {
  const TensorBase& self = c.tensor(0);
  Dims dims = reduced_dims(c, 1, self.dim()), shifts;
  if (self.dim() == 0) return op::clone(self);
  for (int64_t d : dims) shifts.push_back((self.size(d) + (up ? 1 : 0)) / 2);
  return op::roll(self, shifts.span(), dims.span());
}

}  // namespace

TS_OP({
    .schema = "fft.fftfreq(int n, float d=1.0, *, dtype? dtype=None, device? device=None, "
              "bool? requires_grad=False, layout? layout=None, bool? pin_memory=False) -> Tensor",
    .doc = "The frequencies of a transform's n elements, with samples d apart.",
    .example = "torch.fft.fftfreq(5)",
    .run = [](const Call& c) -> Outputs {
      const int64_t n = c.integer(0);
      return frequencies(c, n, [n](int64_t k) { return k < (n + 1) / 2 ? k : k - n; });
    },
    .samples = {{"5"}, {"4, 0.5"}},
});

TS_OP({
    .schema = "fft.rfftfreq(int n, float d=1.0, *, dtype? dtype=None, device? device=None, "
              "bool? requires_grad=False, layout? layout=None, bool? pin_memory=False) -> Tensor",
    .doc = "The frequencies of rfft's n / 2 + 1 elements, with samples d apart.",
    .example = "torch.fft.rfftfreq(5)",
    .run = [](const Call& c) -> Outputs {
      return frequencies(c, c.integer(0) / 2 + 1, [](int64_t k) { return k; });
    },
    .samples = {{"5"}, {"4, 0.5"}},
});

TS_OP({
    .schema = "fft.fftshift(Tensor self, int[1]? dim=None) -> Tensor",
    .doc = "The elements of a transform in order of frequency: zero in the middle.",
    .example = "torch.fft.fftshift(torch.fft.fftfreq(4))",
    .run = [](const Call& c) { return shifted(c, false); },
    .samples = {{"T(3, 4)"}, {"T(5), 0"}, {"T(2, 3), (1,)"}},
});

TS_OP({
    .schema = "fft.ifftshift(Tensor self, int[1]? dim=None) -> Tensor",
    .doc = "The inverse of fftshift.",
    .example = "torch.fft.ifftshift(torch.fft.fftshift(torch.fft.fftfreq(5)))",
    .run = [](const Call& c) { return shifted(c, true); },
    .samples = {{"T(3, 4)"}, {"T(5), 0"}},
});

}  // namespace tessera
