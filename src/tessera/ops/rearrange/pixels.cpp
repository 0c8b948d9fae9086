// Channels of images, taken apart and put together.
#include "tessera/gen/copy.h"
#include "tessera/gen/rearrange.h"
#include "tessera/gen/view.h"

namespace tessera {

namespace {

constexpr int64_t kLargestSide = INT32_MAX;  // of a square whose area is still a number

void check_image(const Call& c) {
  TS_CHECK(c.tensor(0).dim() >= 3, c.op.name,
           " expects input to have at least 3 dimensions, but got input with ", c.tensor(0).dim(),
           " dimension(s)");
}

// A copy of what is seen, in a shape, and in the memory format of `like`.
TensorBase put_together(const TensorBase& t, const TensorBase& like, const Dims& shape) {
  TensorBase out = op::view(op::clone(t, MemoryFormat::kContiguous), shape.span());
  return op::contiguous(out, suggested_format(like));
}

// All leading dimensions as one, then the last three; and back.
TensorBase batched(const TensorBase& t, const Dims& last) {
  Dims shape;
  int64_t batch = 1;
  for (int d = 0; d < t.dim() - 3; ++d) batch *= t.sizes()[d];
  shape.push_back(batch);
  for (int64_t n : last) shape.push_back(n);
  return op::reshape(t, shape.span());
}
TensorBase unbatched(const TensorBase& t, const TensorBase& like, const Dims& last) {
  Dims shape(like.sizes().span().first(static_cast<size_t>(like.dim() - 3)));
  for (int64_t n : last) shape.push_back(n);
  return put_together(t, like, shape);
}

}  // namespace

TS_OP({
    .schema = "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
    .also = "nn.functional.pixel_shuffle",
    .doc = "Groups of channels spread out as blocks of pixels.",
    .example = "torch.pixel_shuffle(torch.arange(4.0).view(1, 4, 1, 1), 2)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      check_image(c);
      const TensorBase& t = c.tensor(0);
      int64_t r = c.integer(1), channels = t.size(-3), h = t.size(-2), w = t.size(-1);
      TS_CHECK(r > 0, "pixel_shuffle expects a positive upscale_factor, but got ", r);
      TS_CHECK_VALUE(
          r <= INT32_MAX,
          "upscale factor is too large, (upscale_factor)^2 overflowed: upscale_factor=", r);
      TS_CHECK(r <= kLargestSide && channels % (r * r) == 0,
               "pixel_shuffle expects its input's 'channel' dimension to be divisible by the "
               "square of upscale_factor, but input.size(-3)=",
               channels, " is not divisible by ", r * r);
      int64_t kept = channels / (r * r);
      TensorBase parts = batched(t, {kept, r, r, h, w});
      return unbatched(op::permute(parts, Dims{0, 1, 4, 2, 5, 3}.span()), t, {kept, h * r, w * r});
    },
    .samples = {{"T(1, 8, 2, 3), 2"}, {"T(9, 1, 2), 3"}},
});

TS_OP({
    .schema = "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
    .also = "nn.functional.pixel_unshuffle",
    .doc = "Blocks of pixels put into channels.",
    .example = "torch.pixel_unshuffle(torch.arange(4.0).view(1, 1, 2, 2), 2)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      check_image(c);
      const TensorBase& t = c.tensor(0);
      int64_t r = c.integer(1), channels = t.size(-3), h = t.size(-2), w = t.size(-1);
      TS_CHECK(r > 0, "pixel_unshuffle expects a positive downscale_factor, but got ", r);
      TS_CHECK(h % r == 0,
               "pixel_unshuffle expects height to be divisible by downscale_factor, but "
               "input.size(-2)=",
               h, " is not divisible by ", r);
      TS_CHECK(w % r == 0,
               "pixel_unshuffle expects width to be divisible by downscale_factor, but "
               "input.size(-1)=",
               w, " is not divisible by ", r);
      TensorBase parts = batched(t, {channels, h / r, r, w / r, r});
      return unbatched(op::permute(parts, Dims{0, 1, 3, 5, 2, 4}.span()), t,
                       {channels * r * r, h / r, w / r});
    },
    .samples = {{"T(1, 2, 4, 2), 2"}},
});

TS_OP({
    .schema = "channel_shuffle(Tensor self, int groups) -> Tensor",
    .also = "nn.functional.channel_shuffle native_channel_shuffle",
    .doc = "Channels of several groups put in turn: the first of each, then the second.",
    .example = "torch.channel_shuffle(torch.arange(4.0).view(1, 4, 1, 1), 2)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      int64_t groups = c.integer(1);
      TS_CHECK(t.dim() > 2,
               "channel_shuffle expects input with > 2 dims, but got input with "
               "sizes ",
               t.sizes());
      int64_t channels = t.sizes()[1];
      TS_CHECK(groups > 0,
               "Number of groups to divide channels in must be positive. Value of groups:", groups);
      TS_CHECK(channels % groups == 0, "Number of channels must be divisible by groups. Got ",
               channels, " channels and ", groups, " groups.");
      TensorBase parts = op::unflatten(t, 1, Dims{groups, channels / groups}.span());
      return put_together(op::transpose(parts, 1, 2), t, t.sizes());
    },
    .samples = {{"T(1, 4, 2, 3), 2"}, {"T(2, 6, 2), 3"}},
});

}  // namespace tessera
