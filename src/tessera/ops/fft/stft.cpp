// Short-time transforms: of windows that slide along a signal, and back.
#include "tessera/gen/binary.h"
#include "tessera/gen/complex.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/fft.h"
#include "tessera/gen/index.h"
#include "tessera/gen/join.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/fft/arguments.h"

namespace tessera {

using namespace fft;

namespace {

// The element that stands at place i of a line of n that goes on by itself on both sides.
int64_t source_of(int64_t i, int64_t n, std::string_view mode) {
  if (mode == "replicate") return std::clamp<int64_t>(i, 0, n - 1);
  if (mode == "circular") return (i % n + n) % n;
  if (i < 0) return -i;
  return i < n ? i : 2 * (n - 1) - i;
}

TensorBase padded(const TensorBase& x, int64_t left, int64_t right, std::string_view mode) {
  const int64_t n = x.size(-1);
  if (mode == "constant") {
    Dims shape = x.sizes();
    auto zeros = [&](int64_t count) {
      shape[shape.size() - 1] = count;
      return op::zeros(shape.span(), x.dtype(), x.device());
    };
    TensorBase parts[] = {zeros(left), x, zeros(right)};
    return op::cat(parts, -1);
  }
  TS_CHECK_IMPLEMENTED(mode == "reflect" || mode == "replicate" || mode == "circular",
                       "stft(): unrecognised padding mode ", mode);
  if (mode == "reflect")
    TS_CHECK(left < n && right < n,
             "Argument #4: Padding size should be less than the corresponding input dimension, but "
             "got: padding (",
             left, ", ", right, ") at dimension 2 of input ", x.sizes());
  if (mode == "circular")
    TS_CHECK(left <= n && right <= n, "Padding value causes wrapping around more than once.");
  TensorBase index = new_empty({left + n + right}, DType::kInt64, Device{});
  int64_t* at = reinterpret_cast<int64_t*>(index.raw());
  for (int64_t i = 0; i < index.numel(); ++i) at[i] = source_of(i - left, n, mode);
  return op::index_select(x, -1, op::_to_device(index, x.device()));
}

// The window in the middle of n_fft elements; ones where there is none.
TensorBase whole_window(const TensorBase& window, int64_t win_length, int64_t n_fft, DType dtype,
                        Device device) {
  TensorBase w = window.defined() ? window : op::ones(Dims{win_length}.span(), dtype, device);
  if (win_length == n_fft) return w;
  const int64_t left = (n_fft - win_length) / 2;
  return padded(w, left, n_fft - win_length - left, "constant");
}

struct Lengths {
  int64_t n_fft, hop, window;
};

// Arguments n_fft, hop_length, win_length from position 1.
Lengths lengths_of(const Call& c) {
  Lengths out{c.integer(1), 0, 0};
  out.window = c.has(3) ? c.integer(3) : out.n_fft;
  out.hop = c.has(2) ? c.integer(2) : out.n_fft / 4;
  return out;
}

}  // namespace

TS_OP({
    .schema =
        "stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? "
        "window=None, bool center=True, str pad_mode=\"reflect\", bool normalized=False, bool? "
        "onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor",
    .doc = "The Fourier transforms of windows of n_fft elements, hop_length apart: [batch, "
           "frequency, frame].",
    .example = "torch.stft(torch.ones(16), 4, window=torch.ones(4), return_complex=True).shape",
    .run = [](const Call& c) -> Outputs {
      TensorBase x = c.tensor(0), window = c.maybe(4);
      const Lengths n = lengths_of(c);
      check_same_device(c.op, c.args);
      const bool center = c.flag(5);
      TS_CHECK(!center || !c.has(10),
               "stft align_to_window should only be set when center = false");
      TS_CHECK(is_differentiable(x.dtype()),
               "stft(): expected a tensor of floating point or complex values");
      TS_CHECK(x.dim() == 1 || x.dim() == 2, "stft(): expected a 1D or 2D tensor, got ", x.dim(),
               "D");
      TS_CHECK(n.n_fft > 0, "stft(): expected n_fft > 0, but got n_fft=", n.n_fft);
      TS_CHECK(n.hop > 0, "stft(): expected hop_length > 0, but got hop_length=", n.hop);
      TS_CHECK(n.window > 0 && n.window <= n.n_fft,
               "stft(): expected 0 < win_length <= n_fft, but got win_length=", n.window);
      if (window.defined())
        TS_CHECK(window.dim() == 1 && window.size(0) == n.window,
                 "stft(): expected a 1D window tensor of size equal to win_length=", n.window,
                 ", but got window with size ", window.sizes());
      const bool single = x.dim() == 1;
      if (single) x = op::unsqueeze(x, 0);
      if (center) x = padded(x, n.n_fft / 2, n.n_fft / 2, c.text(6));
      if (c.has(10) && c.flag(10)) {
        const int64_t left = (n.n_fft - n.window) / 2;
        x = padded(x, left, n.n_fft - n.window - left, "constant");
      }
      const int64_t length = x.size(1);
      TS_CHECK(n.n_fft <= length, "stft(): expected 0 < n_fft < ", length,
               ", but got n_fft=", n.n_fft);
      const bool is_complex_fft =
          is_complex(x.dtype()) || (window.defined() && is_complex(window.dtype()));
      const bool onesided = c.has(8) ? c.flag(8) : !is_complex_fft;
      TS_CHECK(!is_complex_fft || !onesided,
               "Cannot have onesided output if window or input is complex");
      TS_CHECK(c.has(9) || is_complex_fft,
               "stft requires the return_complex parameter be given for real inputs, and will "
               "further require that return_complex=True in a future PyTorch release.");
      TensorBase frames = op::unfold(x, -1, n.n_fft, n.hop);  // [batch, frame, n_fft]
      if (window.defined() || n.window != n.n_fft)
        frames = op::mul(frames, whole_window(window, n.window, n.n_fft, x.dtype(), x.device()));
      const int64_t dim = 2, norm = c.flag(7) ? kRoot : kNone;
      frames = promoted(frames);
      TensorBase out = onesided ? op::_fft_r2c(frames, over(dim), norm)
                                : op::_fft_c2c(frames, over(dim), norm, true);
      out = op::transpose(out, 1, 2);
      if (single) out = op::squeeze(out, 0);
      return !c.has(9) || c.flag(9) ? out : op::view_as_real(out);
    },
    .autocast = Autocast::kFloat32Cpu,
});

TS_OP({
    .schema = "istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? "
              "window=None, bool center=True, bool normalized=False, bool? onesided=None, int? "
              "length=None, bool return_complex=False) -> Tensor",
    .doc = "The signal whose stft this is: its windows put together, divided by the squares of the "
           "window that overlap.",
    .example = "torch.istft(torch.stft(torch.ones(16), 4, window=torch.ones(4), "
               "return_complex=True), 4, window=torch.ones(4)).shape",
    .run = [](const Call& c) -> Outputs {
      TensorBase x = c.tensor(0), window = c.maybe(4);
      const Lengths n = lengths_of(c);
      check_same_device(c.op, c.args);
      TS_CHECK(is_complex(x.dtype()),
               "istft requires a complex-valued input tensor matching the output from stft with "
               "return_complex=True.");
      TS_CHECK(x.numel() > 0, "istft(): input tensor cannot be empty");
      TS_CHECK(x.dim() == 2 || x.dim() == 3,
               "istft(): expected a tensor with 2 or 3 dimensions, but got ", x.dim());
      const bool single = x.dim() == 2;
      if (single) x = op::unsqueeze(x, 0);
      const int64_t batch = x.size(0), bins = x.size(1), frames = x.size(2);
      const bool to_complex = c.flag(9);
      const bool onesided = c.has(7) ? c.flag(7) : bins != n.n_fft;
      TS_CHECK(bins == (onesided ? n.n_fft / 2 + 1 : n.n_fft),
               "istft(): expected the frequency dimension (3rd to the last) of the input tensor to "
               "match n_fft",
               onesided ? " / 2 + 1 when onesided=True" : " when onesided=False", ", but got ",
               bins);
      TS_CHECK(n.hop > 0 && n.hop <= n.window, "istft(): expected 0 < hop_length <= win_length");
      TS_CHECK(n.window > 0 && n.window <= n.n_fft, "istft(): expected 0 < win_length <= n_fft");
      if (window.defined())
        TS_CHECK(window.dim() == 1 && window.size(0) == n.window,
                 "istft(): Invalid window shape. window has to be 1D and length of `win_length`");
      TS_CHECK(!to_complex || !onesided,
               "istft(): cannot have onesided output if window or input is complex");
      TS_CHECK(to_complex || !window.defined() || !is_complex(window.dtype()),
               "Complex windows are incompatible with return_complex=False");
      const int64_t dim = 2, norm = c.flag(6) ? kRoot : kFull;
      x = op::transpose(x, 1, 2);  // [batch, frame, frequency]
      if (to_complex) {
        x = op::_fft_c2c(x, over(dim), norm, false);
      } else {
        if (!onesided) x = op::slice(x, -1, 0, n.n_fft / 2 + 1, 1);
        x = op::_fft_c2r(x, over(dim), norm, n.n_fft);
      }
      TensorBase w = whole_window(window, n.window, n.n_fft, real_dtype(x.dtype()), x.device());
      // Frames added where they came from.
      const int64_t whole = n.n_fft + n.hop * (frames - 1);
      TensorBase index = new_empty({frames * n.n_fft}, DType::kInt64, Device{});
      int64_t* at = reinterpret_cast<int64_t*>(index.raw());
      for (int64_t f = 0; f < frames; ++f)
        for (int64_t i = 0; i < n.n_fft; ++i) at[f * n.n_fft + i] = f * n.hop + i;
      index = op::_to_device(index, x.device());
      auto joined = [&](const TensorBase& t) {
        Dims flat{t.size(0), frames * n.n_fft}, line{t.size(0), whole};
        TensorBase zeros = op::zeros(line.span(), t.dtype(), t.device());
        return op::index_add(zeros, 1, index, op::reshape(t, flat.span()));
      };
      TensorBase y = joined(op::mul(x, w));
      TensorBase overlap = joined(op::expand(op::mul(w, w), Dims{1, frames, n.n_fft}.span()));
      const int64_t start = c.flag(5) ? n.n_fft / 2 : 0;
      const int64_t end = c.has(8) ? start + c.integer(8) : c.flag(5) ? whole - n.n_fft / 2 : whole;
      y = op::slice(y, 1, start, std::min(end, whole), 1);
      overlap = op::slice(overlap, 1, start, std::min(end, whole), 1);
      if (!overlap.device().is_meta() && overlap.numel() > 0) {
        TensorBase least = host_data(op::_to_dtype(op::amin(op::abs(overlap)), DType::kFloat64));
        const double min = *reinterpret_cast<const double*>(least.raw());
        TS_CHECK(min > 1e-11, "istft(): window overlap add min: ", min);
      }
      y = op::div(y, overlap);
      if (end > whole) y = op::_fft_resize(y, Dims{batch, end - start}.span());
      return single ? op::squeeze(y, 0) : y;
    },
    .raises_on_data = true,
});

}  // namespace tessera
