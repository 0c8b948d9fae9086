// Dropout: of elements, of whole channels, and the kind that keeps mean and variance.
#include <cmath>

#include "tessera/gen/binary.h"
#include "tessera/gen/random.h"
#include "tessera/ops/random/draw.h"

namespace tessera {

namespace {

using random::draw;

void check_probability(double p) {
  TS_CHECK_VALUE(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
}

// Ones and zeros that `input` is multiplied by: an element each, or one for each channel.
TensorBase mask_of(const TensorBase& input, double keep, bool channels) {
  Dims size = input.sizes();
  if (channels) {
    TS_CHECK(input.dim() >= 2, "Feature dropout requires at least 2 dimensions in the input");
    for (size_t d = 2; d < size.size(); ++d) size[d] = 1;
  }
  TensorBase mask = channels ? new_empty(size, input.dtype(), input.device())
                             : unallocated_like(input, input.dtype());
  allocate(mask.storage());
  op::bernoulli_(mask, keep);
  return mask;
}

Outputs dropped(const TensorBase& input, double p, bool train, bool channels, bool alpha) {
  check_probability(p);
  if (p == 0 || !train || input.numel() == 0) return input;
  if (p == 1) return op::mul(input, Scalar(0));
  TensorBase mask = mask_of(input, 1 - p, channels);
  if (!alpha) {
    op::div_(mask, Scalar(1 - p));
    return op::mul(input, mask);
  }
  // What is dropped becomes SELU's lowest value; then mean and variance are set right.
  constexpr double kAlpha = 1.7580993408473766;
  double a = 1 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p));
  TensorBase offset =
      op::add(op::mul(op::sub(mask, Scalar(1)), Scalar(kAlpha * a)), Scalar(kAlpha * a * p));
  op::mul_(mask, Scalar(a));
  return op::add(op::mul(input, mask), offset);
}

}  // namespace

TS_OP({
    .schema = "dropout(Tensor input, float p, bool train) -> Tensor",
    .doc = "Zeroes elements with probability p and scales the others by 1 / (1 - p), in training.",
    .example = "torch.dropout(torch.ones(4), 0.0, True)",
    .forms = kFunction | kInplace,
    .run = [](const Call& c) -> Outputs {
      return dropped(c.tensor(0), c.number(1), c.flag(2), false, false);
    },
    .random = true,
    .samples = {{"T(3, 4), 0.5, True"}, {"T(3, 4), 0.5, False"}, {"T(3, 4), 0.0, True"}},
});

TS_OP({
    .schema = "feature_dropout(Tensor input, float p, bool train) -> Tensor",
    .doc = "Zeroes whole channels with probability p, in training.",
    .example = "torch.feature_dropout(torch.ones(2, 3, 4), 0.5, True).shape",
    .forms = kFunction | kInplace,
    .run = [](const Call& c) -> Outputs {
      return dropped(c.tensor(0), c.number(1), c.flag(2), true, false);
    },
    .random = true,
    .samples = {{"T(2, 3, 4), 0.5, True"}},
});

TS_OP({
    .schema = "alpha_dropout(Tensor input, float p, bool train) -> Tensor",
    .doc = "Dropout for SELU networks: mean and variance stay as they are.",
    .example = "torch.alpha_dropout(torch.ones(4), 0.5, True).shape",
    .forms = kFunction | kInplace,
    .run = [](const Call& c) -> Outputs {
      return dropped(c.tensor(0), c.number(1), c.flag(2), false, true);
    },
    .random = true,
    .samples = {{"T(3, 4), 0.5, True"}},
});

TS_OP({
    .schema = "feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor",
    .doc = "alpha_dropout of whole channels.",
    .example = "torch.feature_alpha_dropout(torch.ones(2, 3, 4), 0.5, True).shape",
    .forms = kFunction | kInplace,
    .run = [](const Call& c) -> Outputs {
      return dropped(c.tensor(0), c.number(1), c.flag(2), true, true);
    },
    .random = true,
    .samples = {{"T(2, 3, 4), 0.5, True"}},
});

}  // namespace tessera
