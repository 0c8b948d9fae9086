// Tensors as an argument: stack({a, b}), stack(list).
#pragma once
#include <concepts>
#include <span>
#include <vector>

#include "tessera/tensor/tensor.h"

namespace tessera {

class Tensors {
 public:
  Tensors(std::initializer_list<TensorBase> list) : list_(list) {}
  Tensors(std::span<const TensorBase> list) : list_(list.begin(), list.end()) {}
  template <std::derived_from<TensorBase> T>
  Tensors(const std::vector<T>& list) : list_(list.begin(), list.end()) {}
  operator std::span<const TensorBase>() const { return list_; }

 private:
  std::vector<TensorBase> list_;
};

}  // namespace tessera
