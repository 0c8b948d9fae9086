// Sliding windows: as a view along one dimension, and over images as columns of a matrix.
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/pad.h"
#include "tessera/gen/view.h"
#include "tessera/ops/valid.h"

namespace tessera {

namespace {

// One argument of fold and unfold, for height and width.
struct Pair {
  int64_t h, w;
};
Pair pair_of(const Call& c, int arg, const char* name) {
  Dims v = c.ints(arg);
  TS_CHECK(v.size() == 1 || v.size() == 2, "It is expected ", name, " equals to 2, but got size ",
           v.size());
  return {v[0], v[v.size() - 1]};
}

struct Windows {
  Pair kernel, dilation, padding, stride;

  // kernel, dilation, padding and stride are arguments from `at` on.
  Windows(const Call& c, int at)
      : kernel(pair_of(c, at, "kernel_size")),
        dilation(pair_of(c, at + 1, "dilation")),
        padding(pair_of(c, at + 2, "padding")),
        stride(pair_of(c, at + 3, "stride")) {
    TS_CHECK(kernel.h > 0 && kernel.w > 0,
             "kernel size should be greater than zero, but got kernel_height: ", kernel.h,
             " kernel_width: ", kernel.w);
    TS_CHECK(dilation.h > 0 && dilation.w > 0,
             "dilation should be greater than zero, but got dilation_height: ", dilation.h,
             " dilation_width: ", dilation.w);
    TS_CHECK(padding.h >= 0 && padding.w >= 0,
             "padding should be non-negative, but got pad_height: ", padding.h,
             " pad_width: ", padding.w);
    TS_CHECK(stride.h > 0 && stride.w > 0,
             "stride should be greater than zero, but got stride_height: ", stride.h,
             " stride_width: ", stride.w);
    for (Pair p : {kernel, dilation, padding, stride})  // their products are numbers, too
      TS_CHECK(p.h <= INT32_MAX && p.w <= INT32_MAX,
               "windows of this size do not fit any image: ", text(), ", stride=(", stride.h, ", ",
               stride.w, ")");
  }
  // How many windows an image of this size has; none, or fewer, where one does not fit.
  Pair count(Pair image) const {
    auto along = [](int64_t n, int64_t pad, int64_t step, int64_t size, int64_t by) {
      int64_t room = n + 2 * pad - step * (size - 1) - 1;
      return (room >= 0 ? room / by : -((-room + by - 1) / by)) + 1;
    };
    return {along(image.h, padding.h, dilation.h, kernel.h, stride.h),
            along(image.w, padding.w, dilation.w, kernel.w, stride.w)};
  }
  std::string text() const {
    return cat("kernel_size=(", kernel.h, ", ", kernel.w, "), dilation=(", dilation.h, ", ",
               dilation.w, "), padding=(", padding.h, ", ", padding.w, ")");
  }
};

void check_count(Pair image, const Windows& win, Pair n) {
  TS_CHECK(n.h > 0 && n.w > 0, "Given input with spatial size (", image.h, ", ", image.w, "), ",
           win.text(), ", calculated shape of the array of sliding blocks as (", n.h, ", ", n.w,
           "), but its components must be at least one.");
}

TensorBase unfold_images(const TensorBase& in, const Windows& win) {
  const Dims& s = in.sizes();
  Pair image{s[2], s[3]}, n = win.count(image);
  check_count(image, win, n);
  TensorBase x = in;
  if (win.padding.h || win.padding.w) {
    int64_t pad[] = {win.padding.w, win.padding.w, win.padding.h, win.padding.h};
    x = op::constant_pad_nd(in, pad);
  }
  const Dims& st = x.strides();
  TensorBase windows = alias(x, {s[0], s[1], win.kernel.h, win.kernel.w, n.h, n.w},
                             {st[0], st[1], st[2] * win.dilation.h, st[3] * win.dilation.w,
                              st[2] * win.stride.h, st[3] * win.stride.w},
                             x.storage_offset());
  return op::view(op::clone(windows, MemoryFormat::kContiguous),
                  Dims{s[0], s[1] * win.kernel.h * win.kernel.w, n.h * n.w}.span());
}

TensorBase fold_images(const TensorBase& in, Pair image, const Windows& win) {
  const Dims& s = in.sizes();
  int64_t area = win.kernel.h * win.kernel.w;
  TS_CHECK(s[1] % area == 0,
           "Expected size of input's dimension 1 to be divisible by the product of kernel_size, "
           "but got input.size(1)=",
           s[1], " and kernel_size=(", win.kernel.h, ", ", win.kernel.w, ").");
  Pair n = win.count(image);
  TS_CHECK(s[2] == n.h * n.w, "Given output_size=(", image.h, ", ", image.w, "), ", win.text(),
           ", stride=(", win.stride.h, ", ", win.stride.w,
           "), expected size of input's dimension 2 to match the calculated number of sliding "
           "blocks ",
           n.h, " * ", n.w, " = ", n.h * n.w, ", but got input.size(2)=", s[2], ".");
  check_count(image, win, n);
  int64_t channels = s[1] / area;
  TensorBase whole = op::new_zeros(
      in, Dims{s[0], channels, image.h + 2 * win.padding.h, image.w + 2 * win.padding.w}.span());
  TensorBase columns =
      op::reshape(in, Dims{s[0], channels, win.kernel.h, win.kernel.w, n.h, n.w}.span());
  for (int64_t i = 0; i < win.kernel.h; ++i)
    for (int64_t j = 0; j < win.kernel.w; ++j) {
      int64_t top = i * win.dilation.h, left = j * win.dilation.w;
      TensorBase rows = op::slice(whole, 2, top, top + (n.h - 1) * win.stride.h + 1, win.stride.h);
      TensorBase at = op::slice(rows, 3, left, left + (n.w - 1) * win.stride.w + 1, win.stride.w);
      op::add_(at, op::select(op::select(columns, 2, i), 2, j));
    }
  if (!win.padding.h && !win.padding.w) return whole;
  TensorBase rows = op::narrow(whole, 2, win.padding.h, image.h);
  return op::contiguous(op::narrow(rows, 3, win.padding.w, image.w));
}

}  // namespace

TS_OP({
    .schema = "unfold(Tensor self, int dimension, int size, int step) -> Tensor",
    .doc = "A view of all windows of a size along a dimension; the window is the last dimension.",
    .example = "torch.arange(6).unfold(0, 3, 1)",
    .kind = Kind::kView,
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      size_t d = static_cast<size_t>(wrap_dim(c.integer(1), t.dim()));
      int64_t size = c.integer(2), step = c.integer(3);
      int64_t whole = t.dim() == 0 ? 1 : t.sizes()[d];
      TS_CHECK(size >= 0, "size is ", size, " but must be >= 0");
      TS_CHECK(size <= whole, "maximum size for tensor at dimension ", d, " is ", whole,
               " but size is ", size);
      TS_CHECK(step > 0, "step is ", step, " but must be > 0");
      Dims sizes = t.sizes(), strides = t.strides();
      sizes.push_back(size);
      strides.push_back(t.dim() == 0 ? 1 : t.strides()[d]);
      if (t.dim() > 0) {
        sizes[d] = (whole - size) / step + 1;
        strides[d] *= step;
      }
      return alias(t, sizes, strides, t.storage_offset());
    },
    .backward =
        [](Backward& b) {
          b.set(0, op::_unfold_backward(b.grad, b.shape(0).span(), b.integer(1), b.integer(2),
                                        b.integer(3)));
        },
    .samples = {{"T(7), 0, 3, 2"}, {"T(4, 5), 1, 2, 1"}, {"T(), 0, 1, 1"}},
});

TS_OP({
    .schema = "nn.functional.unfold(Tensor input, int[2] kernel_size, int[2] dilation=1, int[2] "
              "padding=0, int[2] stride=1) -> Tensor",
    .doc = "The windows of images, each as a column.",
    .example = "torch.nn.functional.unfold(torch.arange(9.0).view(1, 1, 3, 3), 2)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& in = c.tensor(0);
      Windows win(c, 1);
      bool batched = in.dim() == 4;
      bool whole = batched || in.dim() == 3;
      for (int d = batched ? 1 : 0; whole && d < in.dim(); ++d) whole = in.sizes()[d] != 0;
      TS_CHECK(whole,
               "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other "
               "non-zero dimensions for input, but got: ",
               in.sizes());
      if (batched) return unfold_images(in, win);
      return op::squeeze(unfold_images(op::unsqueeze(in, 0), win), 0);
    },
    .backward =
        [](Backward& b) {
          const Dims& shape = b.shape(0);
          b.set(0, op::fold(b.grad, shape.span().last(2), b.ints(1).span(), b.ints(2).span(),
                            b.ints(3).span(), b.ints(4).span()));
        },
    .samples = {{"T(2, 2, 4, 3), 2"}, {"T(1, 4, 5), (2, 3), 1, 1, 2"}},
});

TS_OP({
    .schema = "nn.functional.fold(Tensor input, int[2] output_size, int[2] kernel_size, int[2] "
              "dilation=1, int[2] padding=0, int[2] stride=1) -> Tensor",
    .doc = "Images from the columns of their windows; where windows lie over each other, the sum.",
    .example = "torch.nn.functional.fold(torch.ones(1, 4, 4), (3, 3), 2)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& in = c.tensor(0);
      Pair image = pair_of(c, 1, "output_size");
      Windows win(c, 2);
      bool batched = in.dim() == 3;
      bool whole = batched || in.dim() == 2;
      for (int d = batched ? 1 : 0; whole && d < in.dim(); ++d) whole = in.sizes()[d] != 0;
      TS_CHECK(whole,
               "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
               "non-zero dimensions for input, but got: ",
               in.sizes());
      if (batched) return fold_images(in, image, win);
      return op::squeeze(fold_images(op::unsqueeze(in, 0), image, win), 0);
    },
    .backward =
        [](Backward& b) {
          b.set(0, op::unfold(b.grad, b.ints(2).span(), b.ints(3).span(), b.ints(4).span(),
                              b.ints(5).span()));
        },
    .samples = {{"T(2, 8, 6), (4, 3), 2"}, {"T(4, 9), (5, 4), 2, 1, 1, 2"}},
});

TS_OP({
    .schema = "_unfold_backward(Tensor grad, int[] sizes, int dim, int size, int step) -> Tensor",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& grad = c.tensor(0);
      TensorBase out = op::new_zeros(grad, c.ints(1).span());
      if (out.dim() == 0) {
        TS_CHECK(grad.dim() == 1, c.op.name,
                 "(): expected grad to have 1 dimension, but got shape ", grad.sizes());
        if (grad.numel() > 0) op::copy_(out, op::select(grad, 0, 0));
        return out;
      }
      int64_t dim = wrap_dim(c.integer(2), out.dim()), size = c.integer(3), step = c.integer(4);
      TS_CHECK(step > 0, "step is ", step, " but must be > 0");
      TS_CHECK(size >= 0 && size <= out.size(static_cast<int>(dim)), c.op.name, "(): size is ",
               size, " for a dimension of ", out.size(static_cast<int>(dim)));
      Dims expected = out.sizes();
      expected[static_cast<size_t>(dim)] = (out.size(static_cast<int>(dim)) - size) / step + 1;
      expected.push_back(size);
      check_shape(c, 0, expected.span());
      int64_t windows = grad.sizes()[static_cast<size_t>(dim)];
      if (size == 0 || windows == 0) return out;
      // Whatever is fewer: windows, or places within one.
      if (size <= windows) {
        for (int64_t k = 0; k < size; ++k)
          op::add_(op::slice(out, dim, k, k + (windows - 1) * step + 1, step),
                   op::select(grad, -1, k));
      } else {
        for (int64_t w = 0; w < windows; ++w)
          op::add_(op::slice(out, dim, w * step, w * step + size),
                   op::movedim(op::select(grad, dim, w), Dims{-1}.span(), Dims{dim}.span()));
      }
      return out;
    },
    .backward =
        [](Backward& b) { b.set(0, op::unfold(b.grad, b.integer(2), b.integer(3), b.integer(4))); },
});

}  // namespace tessera
