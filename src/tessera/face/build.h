// Tensors from values that stand in the program.
#pragma once
#include <type_traits>
#include <vector>

#include "tessera/face/tensor.h"

namespace tessera {

// A number, or a list of such, nested as deep as the tensor has dimensions.
class Nested {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> Nested(T v) : value_(convert(v)) {}
  Nested(std::initializer_list<Nested> items) : items_(items), is_list_(true) {}

  bool is_list() const { return is_list_; }
  const std::vector<Nested>& items() const { return items_; }
  Scalar value() const { return value_; }

 private:
  template <class T>
  static Scalar convert(T v) {
    if constexpr (std::is_same_v<T, bool>)
      return Scalar(v);
    else if constexpr (std::is_integral_v<T>)
      return Scalar(static_cast<int64_t>(v));
    else
      return Scalar(static_cast<double>(v));
  }

  Scalar value_;
  std::vector<Nested> items_;
  bool is_list_ = false;
};

// tensor(3.5), tensor({1, 2, 3}), tensor({{1.0, 2.0}, {3.0, 4.0}}). The dtype is PyTorch's: bool,
// int64, or the default floating one.
Tensor tensor(const Nested& data, std::optional<DType> dtype = std::nullopt,
              std::optional<Device> device = std::nullopt, bool requires_grad = false);

// One dimension, from a vector; the values are copied.
template <class T>
Tensor tensor(const std::vector<T>& values, std::optional<DType> dtype = std::nullopt,
              std::optional<Device> device = std::nullopt, bool requires_grad = false);
extern template Tensor tensor(const std::vector<float>&, std::optional<DType>,
                              std::optional<Device>, bool);
extern template Tensor tensor(const std::vector<double>&, std::optional<DType>,
                              std::optional<Device>, bool);
extern template Tensor tensor(const std::vector<int>&, std::optional<DType>, std::optional<Device>,
                              bool);
extern template Tensor tensor(const std::vector<int64_t>&, std::optional<DType>,
                              std::optional<Device>, bool);

}  // namespace tessera
