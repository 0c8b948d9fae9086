// Maximum pooling, regular and adaptive, with the places of the largest elements.
#include "tessera/gen/copy.h"
#include "tessera/gen/pool.h"
#include "tessera/ops/pool/geometry.h"
#include "tessera/ops/valid.h"

namespace tessera {

namespace {

using pool::Windows;

Outputs largest(const Op& op, const TensorBase& input, const Windows& w) {
  TS_CHECK_IMPLEMENTED(!is_complex(input.dtype()) && input.dtype() != DType::kBool, "\"", op.name,
                       "\" not implemented for ", input.dtype());
  const int n = w.spatial();
  const MemoryFormat f = pool::format_of(input, n);
  TensorBase dense = op::contiguous(input, f);
  Dims size = pool::output_shape(input, w), strides = strides_in(size, f);
  TensorBase values = new_empty_strided(size, strides, input.dtype(), input.device());
  TensorBase indices = new_empty_strided(size, strides, DType::kInt64, input.device());
  if (values.numel() > 0) {
    TensorBase outputs[] = {pool::planes(values, n, f), pool::planes(indices, n, f)};
    TensorBase in = pool::planes(dense, n, f);
    launch("pool_max", outputs, {&in, 1}, pool::kernel_ints(w).span());
  }
  return Outputs(values, indices);
}

Outputs max_pool(const Call& c, int n) {
  return largest(
      c.op, c.tensor(0),
      pool::regular(c.op, c.tensor(0), n, c.ints(1), c.ints(2), c.ints(3), c.ints(4), c.flag(5)));
}

// Each gradient goes to where its element came from.
void scatter_back(Backward& b, const Windows& w) {
  b.set(0, op::_pool_scatter(b.grad, b.results[1], b.shape(0).span(), w.spatial(),
                             pool::kernel_ints(w).span()));
}
void scatter_back(Backward& b, int n) {
  scatter_back(b, pool::done(b.shape(0), b.result_geometry[0].sizes, n, b.ints(1), b.ints(2),
                             b.ints(3), b.ints(4)));
}
void scatter_back_adaptive(Backward& b, int n) {
  scatter_back(b, pool::done(b.shape(0), b.result_geometry[0].sizes, n));
}

// What `moved` relies on. Scattered are elements in the shape of the indices, into a result of
// `size`; a gather reads a tensor and has a result in the shape of the indices.
void check_moved(const Call& c, bool reads_places, std::span<const int64_t> windows) {
  const TensorBase &self = c.tensor(0), &indices = c.tensor(1);
  check_dtype(c, 1, DType::kInt64);
  check_integer(c, 3, 1, 3);
  const Dims size = c.ints(2);
  checked_numel(c, size);
  const size_t n = static_cast<size_t>(c.integer(3)), lead = indices.sizes().size() - n;
  bool fits = indices.sizes().size() > n && self.dim() == indices.dim() &&
              size.size() == self.sizes().size();
  for (size_t d = 0; fits && d < lead; ++d)
    fits = self.sizes()[d] == indices.sizes()[d] && size[d] == indices.sizes()[d];
  fits = fits && (reads_places ? size : self.sizes()) == indices.sizes();
  TS_CHECK(fits, c.op.name, "(): elements of shape ", self.sizes(), " at indices of shape ",
           indices.sizes(), " are not those of a result of shape ", size);
  if (windows.empty()) return;
  // Mode, then six lists of three numbers, of which the first two are the sizes of the planes.
  bool known = windows.size() == 19 && (windows[0] == 0 || windows[0] == 1);
  for (size_t i = 1; known && i < 19; ++i) known = windows[i] >= ((i - 1) / 3 == 4 ? 0 : 1);
  for (size_t d = 0; known && d < n; ++d)
    known = windows[4 - n + d] == (reads_places ? self.sizes() : size)[lead + d] &&
            windows[7 - n + d] == indices.sizes()[lead + d];
  TS_CHECK(known, c.op.name, "(): windows ", Dims(windows),
           " are not those of a pool with indices "
           "of shape ",
           indices.sizes());
}

// Between the elements of planes and the places that indices name; the layout is the indices'.
// The kernel writes all of the result.
TensorBase moved(const Call& c, const char* kernel, bool reads_places,
                 std::span<const int64_t> windows = {}) {
  const TensorBase &self = c.tensor(0), &indices = c.tensor(1);
  check_moved(c, reads_places, windows);
  const int n = static_cast<int>(c.integer(3));
  const MemoryFormat f = pool::format_of(indices, n);
  TensorBase out =
      new_empty_strided(c.ints(2), strides_in(c.ints(2), f), self.dtype(), self.device());
  if (indices.numel() == 0) {
    fill(out, Scalar(0));
  } else {
    TensorBase from = op::contiguous(self, f), at = op::contiguous(indices, f);
    TensorBase inputs[] = {pool::planes(from, n, f), pool::planes(at, n, f)};
    TensorBase to = pool::planes(out, n, f);
    launch(kernel, {&to, 1}, inputs, windows);
  }
  return out;
}

Outputs unpool(const Call& c, int n) {
  const TensorBase &self = c.tensor(0), &indices = c.tensor(1);
  TS_CHECK(indices.dtype() == DType::kInt64,
           "elements in indices should be type int64 but got: ", indices.dtype());
  TS_CHECK(self.dim() == n + 1 || self.dim() == n + 2, "Input to max_unpooling", n,
           "d should be a ", n + 1, "d or ", n + 2,
           "d Tensor, but got tensor with dimension: ", self.dim());
  TS_CHECK(self.sizes() == indices.sizes(), "Expected shape of indices to be: ", self.sizes(),
           " but got: ", indices.sizes());
  Dims wanted = c.ints(2), size = self.sizes();
  TS_CHECK(wanted.ndim() == n, "There should be exactly ", n, " elements in output_size, but got ",
           wanted.ndim(), " elements in output_size.");
  for (int d = 0; d < n; ++d) size[size.size() - wanted.size() + d] = wanted[d];
  return op::_pool_scatter_assign(self, indices, size.span(), n);
}

}  // namespace

// As _pool_scatter, but an element that several go to gets the last one.
TS_OP({
    .schema = "_pool_scatter_assign(Tensor self, Tensor indices, int[] size, int spatial) -> "
              "Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return moved(c, "pool_assign", false); },
    .saves = "indices",
    .backward =
        [](Backward& b) {
          b.set(0, op::_pool_gather(b.grad, b.tensor(1), b.shape(0).span(), b.integer(3)));
        },
});

// `windows`: those that the indices were found in, as kernels take them; empty if there are none.
TS_OP({
    .schema = "_pool_scatter(Tensor grad, Tensor indices, int[] size, int spatial, "
              "int[] windows=()) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return moved(c, "pool_scatter", false, c.args[4].ints); },
    .saves = "indices",
    .backward =
        [](Backward& b) {
          b.set(0, op::_pool_gather(b.grad, b.tensor(1), b.shape(0).span(), b.integer(3),
                                    b.args[4].ints));
        },
});
TS_OP({
    .schema = "_pool_gather(Tensor self, Tensor indices, int[] size, int spatial, "
              "int[] windows=()) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return moved(c, "pool_gather", true); },
    .saves = "indices",
    .backward =
        [](Backward& b) {
          b.set(0, op::_pool_scatter(b.grad, b.tensor(1), b.shape(0).span(), b.integer(3),
                                     b.args[4].ints));
        },
});

TS_OP({
    .schema = "_max_pool1d(Tensor self, int[1] kernel_size, int[1] stride, int[1] padding, "
              "int[1] dilation, bool ceil_mode) -> (Tensor values, Tensor indices)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return max_pool(c, 1); },
    .saves = "indices",
    .backward = [](Backward& b) { scatter_back(b, 1); },
});
TS_OP({
    .schema = "max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=(), int[1] padding=0, "
              "int[1] dilation=1, bool ceil_mode=False) -> Tensor",
    .doc = "The largest element of each window, in one dimension.",
    .example = "torch.max_pool1d(torch.ones(1, 1, 6), 2).shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return op::_max_pool1d(c.tensor(0), c.args[1].ints, c.args[2].ints, c.args[3].ints,
                             c.args[4].ints, c.flag(5))[0];
    },
    .samples = {{"T(2, 2, 6), 3, 2, 1"}, {"T(2, 6), 2, 2, 0, 2"}},
});
TS_OP({
    .schema = "nn.functional.max_pool1d_with_indices(Tensor input, int[1] kernel_size, "
              "int[1]? stride=None, int[1] padding=0, int[1] dilation=1, bool ceil_mode=False, "
              "bool return_indices=True) -> (Tensor, Tensor)",
    .also = "max_pool1d_with_indices",
    .doc = "The largest element of each window, and its place in its plane.",
    .example = "torch.nn.functional.max_pool1d_with_indices(torch.ones(1, 1, 6), 2)[1].shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return op::_max_pool1d(c.tensor(0), c.args[1].ints, c.ints(2).span(), c.args[3].ints,
                             c.args[4].ints, c.flag(5));
    },
    .samples = {{"T(2, 2, 6), 3, 2, 1"}},
});
TS_OP({
    .schema = "_adaptive_max_pool1d(Tensor self, int[1] output_size) -> "
              "(Tensor values, Tensor indices)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return largest(c.op, c.tensor(0), pool::adaptive(c.op, c.tensor(0), 1, c.ints(1)));
    },
    .saves = "indices",
    .backward = [](Backward& b) { scatter_back_adaptive(b, 1); },
});
TS_OP({
    .schema =
        "nn.functional._max_unpool1d(Tensor self, Tensor indices, int[] output_size) -> Tensor",
    .doc = "Elements put back to where maximum pooling found them, zeros elsewhere.",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return unpool(c, 1); },
});

TS_OP({
    .schema = "_max_pool2d(Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, "
              "int[2] dilation, bool ceil_mode) -> (Tensor values, Tensor indices)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return max_pool(c, 2); },
    .saves = "indices",
    .backward = [](Backward& b) { scatter_back(b, 2); },
});
TS_OP({
    .schema = "max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=(), int[2] padding=0, "
              "int[2] dilation=1, bool ceil_mode=False) -> Tensor",
    .doc = "The largest element of each window, in two dimensions.",
    .example = "torch.max_pool2d(torch.ones(1, 1, 6, 6), 2).shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return op::_max_pool2d(c.tensor(0), c.args[1].ints, c.args[2].ints, c.args[3].ints,
                             c.args[4].ints, c.flag(5))[0];
    },
    .samples = {{"T(1, 2, 4, 4), 3, 2, 1"}, {"T(2, 4, 4), 2, 2, 0, 2"}},
});
TS_OP({
    .schema = "nn.functional.max_pool2d_with_indices(Tensor input, int[2] kernel_size, "
              "int[2]? stride=None, int[2] padding=0, int[2] dilation=1, bool ceil_mode=False, "
              "bool return_indices=True) -> (Tensor, Tensor)",
    .also = "max_pool2d_with_indices",
    .doc = "The largest element of each window, and its place in its plane.",
    .example = "torch.nn.functional.max_pool2d_with_indices(torch.ones(1, 1, 6, 6), 2)[1].shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return op::_max_pool2d(c.tensor(0), c.args[1].ints, c.ints(2).span(), c.args[3].ints,
                             c.args[4].ints, c.flag(5));
    },
    .samples = {{"T(1, 2, 4, 4), 3, 2, 1"}},
});
TS_OP({
    .schema = "_adaptive_max_pool2d(Tensor self, int[2] output_size) -> "
              "(Tensor values, Tensor indices)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return largest(c.op, c.tensor(0), pool::adaptive(c.op, c.tensor(0), 2, c.ints(1)));
    },
    .saves = "indices",
    .backward = [](Backward& b) { scatter_back_adaptive(b, 2); },
});
TS_OP({
    .schema =
        "nn.functional._max_unpool2d(Tensor self, Tensor indices, int[] output_size) -> Tensor",
    .doc = "Elements put back to where maximum pooling found them, zeros elsewhere.",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return unpool(c, 2); },
    .autocast = Autocast::kFloat32Cpu,
});

TS_OP({
    .schema = "_max_pool3d(Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, "
              "int[3] dilation, bool ceil_mode) -> (Tensor values, Tensor indices)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return max_pool(c, 3); },
    .saves = "indices",
    .backward = [](Backward& b) { scatter_back(b, 3); },
});
TS_OP({
    .schema = "max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=(), int[3] padding=0, "
              "int[3] dilation=1, bool ceil_mode=False) -> Tensor",
    .doc = "The largest element of each window, in three dimensions.",
    .example = "torch.max_pool3d(torch.ones(1, 1, 6, 6, 6), 2).shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return op::_max_pool3d(c.tensor(0), c.args[1].ints, c.args[2].ints, c.args[3].ints,
                             c.args[4].ints, c.flag(5))[0];
    },
    .autocast = Autocast::kFloat32Cpu,
    .samples = {{"T(1, 1, 3, 3, 3), 2, 1, 1"}, {"T(1, 3, 3, 3), 2, 1, 0, 2"}},
});
TS_OP({
    .schema = "nn.functional.max_pool3d_with_indices(Tensor input, int[3] kernel_size, "
              "int[3]? stride=None, int[3] padding=0, int[3] dilation=1, bool ceil_mode=False, "
              "bool return_indices=True) -> (Tensor, Tensor)",
    .also = "max_pool3d_with_indices",
    .doc = "The largest element of each window, and its place in its plane.",
    .example = "torch.nn.functional.max_pool3d_with_indices(torch.ones(1, 1, 6, 6, 6), 2)[1].shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return op::_max_pool3d(c.tensor(0), c.args[1].ints, c.ints(2).span(), c.args[3].ints,
                             c.args[4].ints, c.flag(5));
    },
    .samples = {{"T(1, 1, 3, 3, 3), 2, 1, 1"}},
});
TS_OP({
    .schema = "_adaptive_max_pool3d(Tensor self, int[3] output_size) -> "
              "(Tensor values, Tensor indices)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return largest(c.op, c.tensor(0), pool::adaptive(c.op, c.tensor(0), 3, c.ints(1)));
    },
    .saves = "indices",
    .backward = [](Backward& b) { scatter_back_adaptive(b, 3); },
    .autocast = Autocast::kFloat32Cpu,
});
TS_OP({
    .schema =
        "nn.functional._max_unpool3d(Tensor self, Tensor indices, int[] output_size) -> Tensor",
    .doc = "Elements put back to where maximum pooling found them, zeros elsewhere.",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return unpool(c, 3); },
    .autocast = Autocast::kFloat32Cpu,
});

TS_OP({
    .schema = "adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)",
    .doc =
        "The largest element of each of the windows that divide the input evenly, and its place.",
    .example = "torch.adaptive_max_pool1d(torch.ones(1, 1, 6), 2)[0].shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return op::_adaptive_max_pool1d(c.tensor(0), c.args[1].ints);
    },
    .samples = {{"T(2, 2, 6), 3"}},
});

}  // namespace tessera
