// Tensors with a border around them.
#include "tessera/gen/pad.h"
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/join.h"
#include "tessera/gen/rearrange.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/view.h"

namespace tessera {

namespace {

// What negative padding takes away at both ends of a dimension.
struct Cut {
  int64_t left, right;
  Cut(int64_t pad_left, int64_t pad_right)
      : left(std::max<int64_t>(-pad_left, 0)), right(std::max<int64_t>(-pad_right, 0)) {}

  TensorBase from(const TensorBase& t, int64_t dim) const {
    if (!left && !right) return t;
    return op::narrow(t, dim, left, t.size(dim) - left - right);
  }
  // Zeros in the place of what was cut.
  TensorBase back(const TensorBase& grad, int64_t dim) const {
    if (!left && !right) return grad;
    Dims pad(2 * static_cast<size_t>(grad.dim() - dim), 0);
    pad[pad.size() - 2] = left;
    pad[pad.size() - 1] = right;
    return op::constant_pad_nd(grad, pad.span());
  }
};

// Where a border takes its values: `width` places from `from` on, or one place again and again.
struct Strip {
  int64_t from, width;
  bool flipped, repeated;
};

Strip left_strip(std::string_view mode, int64_t n, int64_t width) {
  if (mode == "reflect") return {1, width, true, false};
  if (mode == "replicate") return {0, width, false, true};
  return {n - width, width, false, false};
}
Strip right_strip(std::string_view mode, int64_t n, int64_t width) {
  if (mode == "reflect") return {n - 1 - width, width, true, false};
  if (mode == "replicate") return {n - 1, width, false, true};
  return {0, width, false, false};
}

TensorBase strip_of(const TensorBase& t, int64_t dim, const Strip& s) {
  TensorBase piece = op::narrow(t, dim, s.from, s.repeated ? 1 : s.width);
  if (s.flipped) return op::flip(piece, Dims{dim}.span());
  if (!s.repeated) return piece;
  Dims shape = piece.sizes();
  shape[static_cast<size_t>(dim)] = s.width;
  return op::expand(piece, shape.span());
}

void add_strip(const TensorBase& to, int64_t dim, const Strip& s, TensorBase grad) {
  if (s.flipped) grad = op::flip(grad, Dims{dim}.span());
  if (s.repeated) grad = op::sum(grad, Dims{dim}.span(), true, std::nullopt);
  op::add_(op::narrow(to, dim, s.from, s.repeated ? 1 : s.width), grad);
}

void check_nonconstant(const TensorBase& t, const Dims& pad, std::string_view mode) {
  int spatial = pad.ndim() / 2;
  bool fits = pad.size() <= 6 && (t.dim() == spatial + 1 || t.dim() == spatial + 2);
  TS_CHECK_IMPLEMENTED(
      fits, "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now");
  bool whole = true;
  for (int d = t.dim() - spatial - 1; d < t.dim(); ++d) whole &= t.sizes()[d] != 0;
  TS_CHECK(whole || mode == "circular", "Expected ", spatial + 1, "D or ", spatial + 2,
           "D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
           "input, but got: ",
           t.sizes());
  bool whole_out = true;
  for (int i = 0; i < spatial; ++i) {
    int d = t.dim() - 1 - i;
    int64_t n = t.sizes()[d], left = pad[2 * i], right = pad[2 * i + 1];
    if (mode == "reflect")
      TS_CHECK(left < n && right < n,
               "Padding size should be less than the corresponding input dimension, but got: "
               "padding (",
               left, ", ", right, ") at dimension ", d, " of input ", t.sizes());
    if (mode == "circular") {
      int64_t kept = n + std::min<int64_t>(left, 0) + std::min<int64_t>(right, 0);
      TS_CHECK(left <= kept && right <= kept,
               "Padding value causes wrapping around more than once.");
      TS_CHECK(left + right + n >= 0, "Negative padding value is resulting in an empty dimension");
    } else {
      const char name = "WHD"[i];
      int64_t out = n + left + right;
      TS_CHECK(out >= 0 && n + std::min(left, right) >= 0, "input (", name, ": ", n,
               ") is too small. Calculated output ", name, ": ", out);
      whole_out &= out >= 1;
    }
  }
  TS_CHECK(whole_out, "Calculated output of padding ", t.sizes(), " by ", pad,
           " must be >= 1 in every dimension");
}

}  // namespace

TS_OP({
    .schema = "constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor",
    .doc = "A border of one value, given from the last dimension on as (before, after); negative "
           "numbers cut off.",
    .example = "torch.constant_pad_nd(torch.ones(2), (1, 2), 7)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      Dims pad = c.ints(1);
      TS_CHECK(pad.size() % 2 == 0, "Length of pad must be even but instead it equals ",
               pad.size());
      TS_CHECK(pad.ndim() <= 2 * t.dim(),
               "Length of pad should be no more than twice the number of dimensions of the input. "
               "Pad length is ",
               pad.size(), " while the input has ", t.dim(), " dimensions.");
      Dims shape = t.sizes(), inner = t.sizes(), strides;
      int64_t from = t.storage_offset();
      Dims start(shape.size());
      for (int i = 0; i < pad.ndim() / 2; ++i) {
        size_t d = static_cast<size_t>(t.dim() - 1 - i);
        int64_t left = pad[2 * i], right = pad[2 * i + 1];
        shape[d] += left + right;
        TS_CHECK(shape[d] >= 0, "The input size ", t.sizes()[d], ", plus negative padding ", left,
                 " and ", right,
                 " resulted in a negative output size, which is invalid. Check dimension ", d,
                 " of your input.");
        // What of the input is seen.
        int64_t cut = std::max<int64_t>(-left, 0);
        inner[d] = t.sizes()[d] - cut - std::max<int64_t>(-right, 0);
        TS_CHECK(inner[d] >= 0, "narrow(): length must be non-negative.");
        if (inner[d] > 0) from += cut * t.strides()[d];
        start[d] = std::max<int64_t>(left, 0);
      }
      TensorBase seen = alias(t, inner, t.strides(), from);
      if (std::all_of(pad.begin(), pad.end(), [](int64_t n) { return n <= 0; }))
        return op::clone(seen);
      strides = strides_in(shape, suggested_format(t));
      TensorBase out = new_empty_strided(shape, strides, t.dtype(), t.device());
      fill(out, c.scalar(2));
      int64_t to = 0, count = 1;
      for (size_t d = 0; d < shape.size(); ++d) {
        to += start[d] * strides[d];
        count *= inner[d];
      }
      if (count > 0) copy_into(alias(out, inner, strides, to), seen, false);
      out.storage().version.store(0, std::memory_order_relaxed);
      return out;
    },
    .backward =
        [](Backward& b) {
          Dims back = b.ints(1);
          for (int64_t& n : back) n = -n;
          b.set(0, op::constant_pad_nd(b.grad, back.span()));
        },
    .samples = {{"T(2, 3), (1, 2), 0.5"}, {"T(2, 3), (-1, 1, 2, 0)"}, {"T(0, 3), (1, 1)"}},
});

TS_OP({
    .schema = "nn.functional.pad(Tensor input, int[] pad, str mode=\"constant\", float? "
              "value=None) -> Tensor",
    .doc = "A border around a tensor, given from the last dimension on as (before, after): of one "
           "value (constant), of the tensor mirrored (reflect), of its edge (replicate) or of its "
           "other end (circular).",
    .example = "torch.nn.functional.pad(torch.arange(3.0).view(1, 3), (1, 1), 'reflect')",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      Dims pad = c.ints(1);
      std::string_view mode = c.text(2);
      TS_CHECK(pad.size() % 2 == 0, "Padding length must be divisible by 2");
      TS_CHECK(pad.ndim() <= 2 * t.dim(),
               "Padding length should be less than or equal to two times the input dimension but "
               "got padding length ",
               pad.size(), " and input of dimension ", t.dim());
      if (mode == "constant") {
        Scalar value = c.has(3) ? c.scalar(3) : Scalar(0);
        return op::constant_pad_nd(t, pad.span(), value);
      }
      TS_CHECK(!c.has(3) || c.number(3) == 0, "Padding mode \"", mode,
               "\" doesn't take in value argument");
      TS_CHECK_IMPLEMENTED(mode == "reflect" || mode == "replicate" || mode == "circular",
                           "Unrecognised padding mode ", mode);
      check_nonconstant(t, pad, mode);
      TensorBase out = t;
      for (int i = 0; i < pad.ndim() / 2; ++i)
        if (pad[2 * i] || pad[2 * i + 1])
          out = op::_pad_dim(out, t.dim() - 1 - i, pad[2 * i], pad[2 * i + 1], mode);
      return out.is_same(t) ? op::clone(t) : out;
    },
    .samples = {{"T(2, 3), (1, 2)"},
                {"T(1, 2, 4), (1, 3), 'reflect'"},
                {"T(1, 2, 3), (2, -1), 'replicate'"},
                {"T(1, 1, 2, 3), (1, 2, 2, 0), 'circular'"}},
});

// Along one dimension. A mirror stands at the edge of the whole tensor, and what negative padding
// cuts is cut from the result; a circle closes over what is left.
TS_OP({
    .schema = "_pad_dim(Tensor self, int dim, int left, int right, str mode) -> Tensor",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      int64_t dim = c.integer(1), left = c.integer(2), right = c.integer(3);
      std::string_view mode = c.text(4);
      Cut cut(left, right);
      TensorBase t = mode == "circular" ? cut.from(c.tensor(0), dim) : c.tensor(0);
      int64_t n = t.size(dim);
      std::vector<TensorBase> parts;
      if (left > 0) parts.push_back(strip_of(t, dim, left_strip(mode, n, left)));
      parts.push_back(t);
      if (right > 0) parts.push_back(strip_of(t, dim, right_strip(mode, n, right)));
      TensorBase out = parts.size() == 1 ? t : op::cat(parts, dim);
      if (mode != "circular") out = cut.from(out, dim);
      // As PyTorch: mirrored and repeated edges keep channels last, circles do not.
      MemoryFormat format =
          mode == "circular" ? MemoryFormat::kContiguous : suggested_format(c.tensor(0));
      if (&out.storage() == &c.tensor(0).storage()) return op::clone(out, format);
      return op::contiguous(out, format);
    },
    .backward =
        [](Backward& b) {
          int64_t dim = b.integer(1);
          b.set(0, op::_pad_dim_backward(b.grad, dim, b.integer(2), b.integer(3), b.text(4),
                                         b.shape(0)[static_cast<size_t>(dim)]));
        },
});
TS_OP({
    .schema = "_pad_dim_backward(Tensor grad, int dim, int left, int right, str mode, int size) -> "
              "Tensor",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      int64_t dim = c.integer(1), n = c.integer(5);
      std::string_view mode = c.text(4);
      Cut cut(c.integer(2), c.integer(3));
      bool circular = mode == "circular";
      TensorBase grad = circular ? c.tensor(0) : cut.back(c.tensor(0), dim);
      if (circular) n -= cut.left + cut.right;
      int64_t left = std::max<int64_t>(c.integer(2), 0);
      int64_t right = std::max<int64_t>(c.integer(3), 0);
      TensorBase out = op::clone(op::narrow(grad, dim, left, n));
      if (left > 0) add_strip(out, dim, left_strip(mode, n, left), op::narrow(grad, dim, 0, left));
      if (right > 0)
        add_strip(out, dim, right_strip(mode, n, right), op::narrow(grad, dim, left + n, right));
      return circular ? cut.back(out, dim) : out;
    },
    .backward =
        [](Backward& b) {
          b.set(0, op::_pad_dim(b.grad, b.integer(1), b.integer(2), b.integer(3), b.text(4)));
        },
});

}  // namespace tessera
