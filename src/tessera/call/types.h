// Type promotion, and what a pointwise record's rule makes of it.
#pragma once
#include "tessera/ops/record.h"

namespace tessera {

// PyTorch's result_type over tensors with dimensions, 0-d tensors and numbers, each category
// counting only where a higher one leaves its kind open.
class Promotion {
 public:
  void add(const TensorBase& t) { combine(t.dim() > 0 ? dims_ : zero_dim_, t.dtype()); }
  void add(const Scalar& s) { combine(numbers_, s.dtype()); }
  DType result() const;

 private:
  struct Slot {
    bool set = false;
    DType dtype = DType::kBool;
  };
  static void combine(Slot& slot, DType t) {
    slot.dtype = slot.set ? promote(slot.dtype, t) : t;
    slot.set = true;
  }
  static Slot merge(const Slot& higher, const Slot& lower);
  Slot dims_, zero_dim_, numbers_;
};

}  // namespace tessera
