// Interpolation: one dimension after another, each by a table of places and weights.
#include <cstring>

#include "tessera/gen/copy.h"
#include "tessera/gen/pool.h"
#include "tessera/gen/resample.h"
#include "tessera/ops/in_dtype.h"
#include "tessera/ops/resample/tables.h"

namespace tessera {

namespace {

using resample::Mode;
using resample::Table;

TensorBase tensor_of(const void* data, size_t bytes, const Dims& size, DType t, Device device) {
  TensorBase host = new_empty(size, t, Device{});
  std::memcpy(host.raw(), data, bytes);
  return device.is_cpu() ? host : op::_to_device(host, device);
}

// [outer, length, inner] of dense memory.
TensorBase lines(const TensorBase& t, int64_t dim) {
  int64_t outer = 1, inner = 1;
  for (int64_t d = 0; d < t.dim(); ++d)
    (d < dim ? outer : inner) *= d == dim ? 1 : t.sizes()[static_cast<size_t>(d)];
  Dims size{outer, t.sizes()[static_cast<size_t>(dim)], inner};
  return alias(t, size, contiguous_strides(size), t.storage_offset());
}

Outputs run(const Call& c, const char* kernel, int64_t length) {
  const TensorBase& self = c.tensor(0);
  Dims size = self.sizes();
  size[static_cast<size_t>(c.integer(1))] = length;
  TensorBase out = new_empty(size, self.dtype(), self.device());
  if (out.numel() == 0) return out;
  TensorBase dense = op::contiguous(self);
  TensorBase inputs[] = {lines(dense, c.integer(1)), c.tensor(2), c.tensor(3)};
  TensorBase to = lines(out, c.integer(1));
  launch(kernel, {&to, 1}, inputs);
  return out;
}

}  // namespace

TS_OP({
    .schema = "_resample(Tensor self, int dim, Tensor starts, Tensor weights) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return run(c, "resample", c.tensor(2).numel()); },
    .saves = "starts weights",
    .backward =
        [](Backward& b) {
          int64_t dim = b.integer(1);
          b.set(0, op::_resample_backward(b.grad, dim, b.tensor(2), b.tensor(3),
                                          b.shape(0)[static_cast<size_t>(dim)]));
        },
});
TS_OP({
    .schema = "_resample_backward(Tensor grad, int dim, Tensor starts, Tensor weights, int length) "
              "-> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return run(c, "resample_backward", c.integer(4)); },
    .saves = "starts weights",
    .backward =
        [](Backward& b) {
          b.set(0, op::_resample(b.grad, b.integer(1), b.tensor(2), b.tensor(3)));
        },
});

// size: of the last dimensions; scales: the factors the program gave, 0 where it gave none.
TS_OP({
    .schema = "_upsample(Tensor self, int[] size, float[] scales, str mode, bool align_corners, "
              "bool antialias) -> Tensor",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      std::string_view name = c.text(3);
      Mode mode = name == "nearest"         ? Mode::kNearest
                  : name == "nearest-exact" ? Mode::kNearestExact
                  : name == "bicubic"       ? Mode::kCubic
                                            : Mode::kLinear;
      TS_CHECK_IMPLEMENTED(is_floating(self.dtype()) || self.dtype() == DType::kUInt8,
                           "interpolate() not implemented for ", self.dtype());
      Dims size = c.ints(1);
      int first = self.dim() - size.ndim();
      for (int d = 1; d < self.dim(); ++d)
        TS_CHECK(self.sizes()[d] > 0,
                 "Input and output sizes should be greater than 0, but got "
                 "input of size ",
                 self.sizes());
      for (int64_t n : size)
        TS_CHECK(n > 0, "Input and output sizes should be greater than 0, but got output of size ",
                 size);
      // In float where the elements are narrower: rounded once, at the end.
      DType t = self.dtype(), wide = t == DType::kFloat64 ? t : DType::kFloat32;
      TensorBase out = in_dtype(self, wide);
      bool fresh = t != wide;
      for (int d = 0; d < size.ndim(); ++d) {
        int64_t in = out.sizes()[first + d];
        if (in == size[d] && c.floats(2)[d] == 0) continue;
        Table table = resample::make_table(mode, in, size[d], c.flag(4), c.floats(2)[d], c.flag(5));
        TensorBase starts = tensor_of(table.starts.data(), table.starts.size() * sizeof(int64_t),
                                      Dims{size[d]}, DType::kInt64, self.device());
        TensorBase weights = tensor_of(table.weights.data(), table.weights.size() * sizeof(double),
                                       Dims{size[d], table.taps}, DType::kFloat64, self.device());
        out = op::_resample(out, first + d, starts, in_dtype(weights, wide));
        fresh = true;
      }
      return fresh ? in_dtype(out, t) : op::clone(self);
    },
    .autocast = Autocast::kFloat32Gpu,
});

}  // namespace tessera
