// The gradient of an in-place write through a view, as seen from the base.
#pragma once
#include "tessera/autograd/node.h"

namespace tessera::autograd {

// Result 0 is the base after the write. `write` is the node of the operator that wrote the view;
// its edge 0 was the view's old value. The piece's gradient goes through `write`, the rest passes.
class CopySlices final : public Node {
 public:
  CopySlices(const TensorBase& base, ViewRecipe view, Ref<Node> write);
  Grads apply(Grads&& grads) override;
  const char* name() const override { return "CopySlices"; }
  ResultSpec result_spec(uint32_t) const override { return {&sizes_, dtype_, device_}; }
  void release_saved() override { write_->release_saved(); }

 private:
  Dims sizes_;
  Dims strides_;
  DType dtype_;
  Device device_;
  ViewRecipe view_;
  Ref<Node> write_;
  int self_edge_ = 0;
};

}  // namespace tessera::autograd
