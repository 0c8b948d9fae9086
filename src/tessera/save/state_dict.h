// Named tensors in their order: what a network is saved as.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/face/tensor.h"

namespace tessera {

// A list, because the order counts and files keep it: StateDict s{{"weight", w}, {"bias", b}}.
class StateDict : public std::vector<std::pair<std::string, Tensor>> {
 public:
  using std::vector<std::pair<std::string, Tensor>>::vector;

  const Tensor* find(std::string_view name) const {
    auto found =
        std::find_if(begin(), end(), [&](const auto& entry) { return entry.first == name; });
    return found == end() ? nullptr : &found->second;
  }
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  // Raises IndexError where there is none of that name.
  const Tensor& at(std::string_view name) const {
    const Tensor* found = find(name);
    TS_CHECK_INDEX(found, "no tensor is named '", name, "'");
    return *found;
  }
};

}  // namespace tessera
