// Memory of a tensor that another library has the address of.
#pragma once
#include "tessera/tensor/tensor.h"

namespace tessera::python {

// Keeps the storage of a tensor alive and in place (Note [Memory that stays in place] in
// tensor/storage.h), whatever becomes of the tensor: resize_(), set_() and `x.data = y` change the
// tensor, not the view.
class ExportedView {
 public:
  explicit ExportedView(const TensorBase& t)
      : view_(alias(t, t.sizes(), t.strides(), t.storage_offset())) {
    view_.storage().buffers.fetch_add(1, std::memory_order_acq_rel);
  }
  ExportedView(const ExportedView&) = delete;
  ExportedView& operator=(const ExportedView&) = delete;
  ~ExportedView() { view_.storage().buffers.fetch_sub(1, std::memory_order_acq_rel); }

  const TensorBase& tensor() const { return view_; }

 private:
  TensorBase view_;
};

}  // namespace tessera::python
