// Interpolation: one dimension after another, each by a table of places and weights.
#include <cstring>

#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/pool.h"
#include "tessera/gen/resample.h"
#include "tessera/gen/ternary.h"
#include "tessera/gen/unary.h"
#include "tessera/ops/in_dtype.h"
#include "tessera/ops/resample/tables.h"
#include "tessera/ops/valid.h"

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

Outputs run(const Call& c, const char* kernel, int64_t length, bool is_backward) {
  const TensorBase& self = c.tensor(0);
  check_integer(c, 1, 0, self.dim() - 1);
  TS_CHECK(length >= 0, c.op.name, "(): expected a length of at least 0, but got ", length);
  check_dim(c, 2, 1);
  check_shape(c, 3, {c.tensor(2).numel(), -1});
  check_dtype(c, 2, DType::kInt64);
  check_dtype(c, 3, self.dtype());
  TS_CHECK_IMPLEMENTED(self.dtype() == DType::kFloat32 || self.dtype() == DType::kFloat64,
                       c.op.name, "(): not implemented for ", self.dtype());
  Dims size = self.sizes();
  // The forward kernel reads a row for each tap, the backward kernel a table entry for each row.
  const int64_t rows = size[static_cast<size_t>(c.integer(1))];
  TS_CHECK(is_backward ? rows == c.tensor(2).numel() : rows > 0 && c.tensor(3).size(1) > 0,
           c.op.name, "(): a table of ", c.tensor(2).numel(), " x ", c.tensor(3).size(1),
           " weights does not fit a tensor of shape ", size);
  size[static_cast<size_t>(c.integer(1))] = length;
  TensorBase out = new_empty(size, self.dtype(), self.device());
  if (out.numel() == 0) return out;
  TensorBase dense = op::contiguous(self);
  TensorBase inputs[] = {lines(dense, c.integer(1)), op::contiguous(c.tensor(2)),
                         op::contiguous(c.tensor(3))};
  TensorBase to = lines(out, c.integer(1));
  launch(kernel, {&to, 1}, inputs);
  return out;
}

}  // namespace

TS_OP({
    .schema = "_resample(Tensor self, int dim, Tensor starts, Tensor weights) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return run(c, "resample", c.tensor(2).numel(), false); },
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
    .run = [](const Call& c) -> Outputs { return run(c, "resample_backward", c.integer(4), true); },
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
      TS_CHECK(first >= 2 || (size.empty() && first >= 0), c.op.name, "(): ", size.ndim(),
               " output sizes do not fit an input of shape ", self.sizes());
      check_length(c, 2, size.size());
      TS_CHECK(name == "nearest" || name == "nearest-exact" || name == "bicubic" ||
                   name == "linear" || name == "bilinear" || name == "trilinear",
               c.op.name, "(): unknown mode '", name, "'");
      for (int d = 1; d < self.dim(); ++d)
        TS_CHECK(self.sizes()[d] > 0,
                 "Input and output sizes should be greater than 0, but got "
                 "input of size ",
                 self.sizes());
      Dims whole = self.sizes();
      for (int d = 0; d < size.ndim(); ++d) {
        TS_CHECK(size[d] > 0,
                 "Input and output sizes should be greater than 0, but got output of size ", size);
        whole[first + d] = size[d];
      }
      // A table has an entry of 8 bytes or more for each element along one dimension: a result that
      // no memory can hold is refused before it is made.
      check_fits_memory(whole, self.dtype(), self.device());
      // In float where the elements are narrower: rounded once, at the end. Averages of uint8 are
      // rounded in each dimension, the last one first, with integer weights.
      DType t = self.dtype();
      const bool bytes = t == DType::kUInt8 && (mode == Mode::kLinear || mode == Mode::kCubic);
      DType wide = t == DType::kFloat64 || bytes ? DType::kFloat64 : DType::kFloat32;
      TensorBase out = in_dtype(self, wide);
      bool fresh = t != wide;
      for (int k = 0; k < size.ndim(); ++k) {
        const int d = bytes ? size.ndim() - 1 - k : k;
        int64_t in = out.sizes()[first + d];
        if (in == size[d] && c.floats(2)[d] == 0) continue;
        Table table = resample::make_table(mode, in, size[d], c.flag(4), c.floats(2)[d], c.flag(5));
        const double one = bytes ? resample::quantize(table, in) : 1;
        TensorBase starts = tensor_of(table.starts.data(), table.starts.size() * sizeof(int64_t),
                                      Dims{size[d]}, DType::kInt64, self.device());
        TensorBase weights = tensor_of(table.weights.data(), table.weights.size() * sizeof(double),
                                       Dims{size[d], table.taps}, DType::kFloat64, self.device());
        out = op::_resample(out, first + d, starts, in_dtype(weights, wide));
        if (bytes)
          out = op::clamp(op::floor(op::div(op::add(out, Scalar(one / 2)), Scalar(one))), Scalar(0),
                          Scalar(255));
        fresh = true;
      }
      return fresh ? in_dtype(out, t) : op::clone(self);
    },
    .autocast = Autocast::kFloat32Gpu,
});

}  // namespace tessera
