// Sizes, dimensions, indices as an argument: x.view({2, -1}), x.sum(0), zeros(other.sizes()).
#pragma once
#include <vector>

#include "tessera/base/dims.h"

namespace tessera {

// Dims can be turned into a span in two ways, and so in none; this in one, and a number is a list.
class Ints {
 public:
  Ints(int v) : dims_{v} {}
  Ints(int64_t v) : dims_{v} {}
  Ints(std::initializer_list<int64_t> v) : dims_(v) {}
  Ints(Dims v) : dims_(std::move(v)) {}
  Ints(const std::vector<int64_t>& v) : dims_(std::span(v)) {}
  Ints(std::span<const int64_t> v) : dims_(v) {}
  operator std::span<const int64_t>() const { return dims_.span(); }

 private:
  Dims dims_;
};

}  // namespace tessera
