// Descriptors of the stand-in for libcudnn's graph API.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "cudnn_shared.h"

namespace emulator {

struct Descriptor {
  cudnnBackendDescriptorType_t type;
  bool ready = false;
  int64_t engine = 0;                 // of a configuration, an engine
  const Descriptor* graph = nullptr;  // of a configuration
  std::map<int, std::vector<char>> attributes;

  template <class T>
  std::vector<T> all(int name) const {
    auto it = attributes.find(name);
    if (it == attributes.end()) return {};
    std::vector<T> out(it->second.size() / sizeof(T));
    std::memcpy(out.data(), it->second.data(), it->second.size());
    return out;
  }
  template <class T>
  T one(int name) const {
    std::vector<T> v = all<T>(name);
    return v.empty() ? T() : v[0];
  }
  const Descriptor* part(int name) const { return one<const Descriptor*>(name); }
  bool has(std::initializer_list<int> names) const {
    for (int n : names)
      if (!attributes.count(n)) return false;
    return true;
  }
};
inline Descriptor* of(cudnnBackendDescriptor_t d) { return static_cast<Descriptor*>(d); }

// A graph of matrix products, reductions, reshapes and pointwise operations (cudnn_steps.cpp).
struct Steps;
// Null where an operation is not one of these, or sizes do not go together.
std::shared_ptr<const Steps> read_steps(const Descriptor& graph);
// Is all that the graph needs among these, aligned?
bool has_all(const Steps& steps, const std::map<int64_t, void*>& data);
// Numbers given by value are read at once: the rest is what remains to be done.
std::function<void()> prepare(std::shared_ptr<const Steps> steps, std::map<int64_t, void*> data);

}  // namespace emulator
