// The C++ face: #include <tessera/tessera.h>.
#pragma once
#include "tessera/autograd/node.h"
#include "tessera/driver/current.h"
#include "tessera/fuse/stream.h"
#include "tessera/gen/ops.h"
#include "tessera/tensor/generators.h"

namespace tessera {

class Tensor : public TensorBase {
 public:
  Tensor() = default;
  explicit Tensor(TensorBase t) : TensorBase(std::move(t)) {}

#include "tessera/gen/face_methods.inc"

  Tensor to(Device d) const { return d == device() ? *this : Tensor(op::_to_device(*this, d)); }
  Tensor to(DType t) const { return t == dtype() ? *this : Tensor(op::_to_dtype(*this, t)); }
  Tensor cpu() const { return to(Device{}); }
  Tensor cuda() const { return to(resolve_device(Device{DeviceType::kCUDA, -1})); }

  Tensor& requires_grad_(bool on = true) {
    autograd::set_requires_grad(*this, on);
    return *this;
  }
  Tensor grad() const {
    autograd::Meta* m = autograd::try_meta(*this);
    return m ? Tensor(m->grad) : Tensor();
  }
  Tensor detach() const { return Tensor(alias(*this, sizes(), strides(), storage_offset())); }
  void backward(const TensorBase& gradient = TensorBase(), bool retain_graph = false,
                bool create_graph = false) const {
    const TensorBase& root = *this;
    autograd::run_backward({&root, 1}, {&gradient, 1}, retain_graph || create_graph, create_graph,
                           {}, false);
  }
  // The value of a tensor with one element, from any device.
  double item() const;
  // Address of the first element; pending work that touches it runs, and it counts as exposed.
  template <class T>
  T* data_ptr() const {
    return static_cast<T*>(fuse::expose(*this));
  }
};

#include "tessera/gen/face_functions.inc"

inline Tensor operator+(const TensorBase& a, const Value& b) { return Tensor(op::add(a, b)); }
inline Tensor operator-(const TensorBase& a, const Value& b) { return Tensor(op::sub(a, b)); }
inline Tensor operator*(const TensorBase& a, const Value& b) { return Tensor(op::mul(a, b)); }
inline Tensor operator/(const TensorBase& a, const Value& b) { return Tensor(op::div(a, b)); }
inline Tensor operator*(double a, const TensorBase& b) { return Tensor(op::mul(b, Value(a))); }
inline Tensor operator+(double a, const TensorBase& b) { return Tensor(op::add(b, Value(a))); }
inline Tensor operator-(const TensorBase& a) { return Tensor(op::neg(a)); }

using autograd::GradMode;
struct NoGrad : GradMode {
  NoGrad() : GradMode(false) {}
};

}  // namespace tessera
