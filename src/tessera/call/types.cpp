#include "tessera/call/types.h"

#include "tessera/ops/call.h"

namespace tessera {

Promotion::Slot Promotion::merge(const Slot& higher, const Slot& lower) {
  if (!higher.set) return lower;
  if (!lower.set || is_complex(higher.dtype)) return higher;
  if (is_complex(lower.dtype)) {
    // A complex number beside real tensors takes their precision.
    if (is_floating(higher.dtype)) return {true, complex_dtype(higher.dtype)};
    return lower;
  }
  if (is_floating(higher.dtype)) return higher;
  if (higher.dtype == DType::kBool || is_floating(lower.dtype))
    return {true, promote(higher.dtype, lower.dtype)};
  return higher;
}

DType result_type(Args args) {
  Promotion promotion;
  for (const Value& v : args) {
    if (v.is_tensor()) promotion.add(*v.tensor);
    if (v.is_scalar()) promotion.add(v.scalar);
  }
  return promotion.result();
}

DType common_dtype(std::span<const TensorBase> tensors) {
  Promotion promotion;
  for (const TensorBase& t : tensors) promotion.add(t);
  return promotion.result();
}

DType Promotion::result() const { return merge(dims_, merge(zero_dim_, numbers_)).dtype; }

}  // namespace tessera
