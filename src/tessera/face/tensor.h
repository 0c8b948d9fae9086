// The tensor of C++ programs: TensorBase with the operators as methods.
#pragma once
#include <concepts>
#include <tuple>
#include "tessera/autograd/node.h"
#include "tessera/call/pin.h"
#include "tessera/driver/current.h"
#include "tessera/face/indexing.h"
#include "tessera/face/ints.h"
#include "tessera/face/streams.h"
#include "tessera/face/tensors.h"
#include "tessera/fuse/stream.h"
#include "tessera/gen/ops.h"
#include "tessera/memory/pinned.h"

namespace tessera {

namespace detail {

template <class T>
concept ComplexNumber = requires(const T& v) {
  { v.real() } -> std::convertible_to<double>;
  { v.imag() } -> std::convertible_to<double>;
};
// Types whose values can be assigned to elements: arithmetic types, Scalar, complex numbers, and
// types that convert to float, such as half-precision numbers.
template <class T>
concept Number = !std::derived_from<T, TensorBase> &&
                 (std::same_as<T, Scalar> || std::same_as<T, c64> || std::same_as<T, c128> ||
                  std::is_convertible_v<T, float> || ComplexNumber<T>);

template <Number T>
Scalar scalar_of(const T& v) {
  if constexpr (std::floating_point<T>)
    return Scalar(static_cast<double>(v));
  else if constexpr (std::is_constructible_v<Scalar, T>)
    return Scalar(v);
  else if constexpr (ComplexNumber<T>)
    return Scalar(c128(static_cast<double>(v.real()), static_cast<double>(v.imag())));
  else
    return Scalar(static_cast<float>(v));
}

}  // namespace detail

class Tensor : public TensorBase {
 public:
  Tensor() = default;
  explicit Tensor(TensorBase t) : TensorBase(std::move(t)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;

  // `x = y` makes x another name of y. `x[0] = y`, an assignment to a temporary, writes values into
  // the memory that the temporary views, with broadcasting and conversion, as copy_() does.
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  Tensor operator=(const Tensor& values) && { return written(values); }
  Tensor operator=(const TensorBase& values) && { return written(values); }
  template <detail::Number T>
  Tensor operator=(const T& value) && {
    return written(detail::scalar_of(value));
  }

#include "tessera/gen/face_methods.inc"

  // With non_blocking, a copy from pinned memory to a device returns before it is done.
  Tensor to(Device d, bool non_blocking = false) const {
    d = resolve_device(d);
    return d == device() ? *this : Tensor(op::_to_device(*this, d, non_blocking));
  }
  Tensor to(DType t) const { return t == dtype() ? *this : Tensor(op::_to_dtype(*this, t)); }
  Tensor to(Device d, DType t) const { return to(d).to(t); }
  Tensor cpu() const { return to(Device{}); }
  Tensor cuda(int index = -1, bool non_blocking = false) const {
    return to(Device{DeviceType::kCUDA, static_cast<int16_t>(index)}, non_blocking);
  }
  bool is_cuda() const { return device().is_cuda(); }
  int get_device() const { return device().is_cuda() ? device().index : -1; }
  // In memory that devices read directly; the tensor itself where it is there already.
  Tensor pin_memory() const { return Tensor(pinned(*this)); }
  bool is_pinned() const { return device().is_cpu() && memory::is_pinned(storage()); }
  // The stream uses it too: its memory is not given to others before what is queued there is done.
  void record_stream(const cuda::Stream& stream) const;

  // Views: x[i], and rows start to end of a dimension.
  Tensor operator[](int64_t index) const { return Tensor(op::select(*this, 0, index)); }
  Tensor slice(int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end = std::nullopt,
               int64_t step = 1) const {
    return Tensor(op::slice(*this, dim, start, end, step));
  }

  // x.index({Slice(0, 3), None, ids}) is x[0:3, None, ids]; a view where no tensor is in it.
  Tensor index(std::initializer_list<TensorIndex> at) const {
    return Tensor(get_index(*this, {at.begin(), at.size()}));
  }
  // ... and x[0:3, None, ids] = values.
  const Tensor& index_put_(std::initializer_list<TensorIndex> at, const TensorBase& values) const {
    set_index(*this, {at.begin(), at.size()}, values);
    return *this;
  }
  const Tensor& index_put_(std::initializer_list<TensorIndex> at, Scalar value) const;

  Tensor& requires_grad_(bool on = true) {
    autograd::set_requires_grad(*this, on);
    return *this;
  }
  // Undefined as long as there is none.
  Tensor grad() const {
    autograd::Meta* m = autograd::try_meta(*this);
    return m ? Tensor(m->grad_slot()) : Tensor();
  }
  void zero_grad() const {
    if (autograd::Meta* m = autograd::try_meta(*this)) m->grad_slot() = TensorBase();
  }
  bool is_leaf() const { return autograd::is_leaf(*this); }
  void backward(const TensorBase& gradient = TensorBase(), bool retain_graph = false,
                bool create_graph = false) const {
    const TensorBase& root = *this;
    autograd::run_backward({&root, 1}, {&gradient, 1}, retain_graph || create_graph, create_graph,
                           {}, false);
  }

  // The value of a tensor with one element, from any device.
  Scalar scalar() const;
  template <class T = double>
  T item() const {
    Scalar s = scalar();
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(s.to_int());
    else
      return static_cast<T>(s.to_double());
  }
  // One element: x.at({1, -1}), or x.at<int64_t>({3}).
  template <class T = double>
  T at(Ints index) const {
    return element(index).item<T>();
  }
  // Address of the first element; pending work that touches it runs, and it counts as exposed.
  template <class T>
  T* data_ptr() const {
    return static_cast<T*>(fuse::expose(*this));
  }

 private:
  Tensor element(std::span<const int64_t> index) const;
  void write(const Value& values) const;
  Tensor written(const Value& values) const {
    write(values);
    return *this;
  }
};

#include "tessera/gen/face_functions.inc"
// A list that is a variable would be joined as text, which has the same name.
template <std::derived_from<TensorBase> T, std::integral Dim = int>
Tensor cat(const std::vector<T>& tensors, Dim dim = 0) {
  return Tensor(op::cat(Tensors(tensors), dim));
}

namespace detail {
std::vector<Tensor> as_list(std::vector<TensorBase> all);
template <int N>
auto as_tuple(Outputs out) {
  return [&]<size_t... I>(std::index_sequence<I...>) {
    return std::make_tuple(Tensor(std::move(out[static_cast<int>(I)]))...);
  }
  (std::make_index_sequence<N>());
}
}  // namespace detail

// Operators: a tensor with a tensor or a number, and a number with a tensor. % is Python's.
#define TS_FACE_BINARY(symbol, name)                                                              \
  inline Tensor operator symbol(const TensorBase& a, const Value& b) {                            \
    return Tensor(op::name(a, b));                                                                \
  }                                                                                               \
  inline Tensor operator symbol(Scalar a, const TensorBase& b) { return Tensor(op::name(a, b)); } \
  inline Tensor& operator symbol##=(Tensor& a, const Value& b) {                                  \
    op::name##_(a, b);                                                                            \
    return a;                                                                                     \
  }                                                                                               \
  inline Tensor operator symbol##=(Tensor&& a, const Value& b) { return a symbol## = b; }
TS_FACE_BINARY(+, add)
TS_FACE_BINARY(-, sub)
TS_FACE_BINARY(*, mul)
TS_FACE_BINARY(/, div)
TS_FACE_BINARY(%, remainder)
TS_FACE_BINARY(&, bitwise_and)
TS_FACE_BINARY(|, bitwise_or)
TS_FACE_BINARY(^, bitwise_xor)
TS_FACE_BINARY(<<, bitwise_left_shift)
TS_FACE_BINARY(>>, bitwise_right_shift)
#undef TS_FACE_BINARY
inline Tensor operator-(const TensorBase& a) { return Tensor(op::neg(a)); }
inline Tensor operator~(const TensorBase& a) { return Tensor(op::bitwise_not(a)); }

// Comparisons are element by element; is_same() asks for the tensor itself.
#define TS_FACE_COMPARE(symbol, name, turned)                          \
  inline Tensor operator symbol(const TensorBase& a, const Value& b) { \
    return Tensor(op::name(a, b));                                     \
  }                                                                    \
  inline Tensor operator symbol(Scalar a, const TensorBase& b) { return Tensor(op::turned(b, a)); }
TS_FACE_COMPARE(==, eq, eq)
TS_FACE_COMPARE(!=, ne, ne)
TS_FACE_COMPARE(<, lt, gt)
TS_FACE_COMPARE(<=, le, ge)
TS_FACE_COMPARE(>, gt, lt)
TS_FACE_COMPARE(>=, ge, le)
#undef TS_FACE_COMPARE

}  // namespace tessera
