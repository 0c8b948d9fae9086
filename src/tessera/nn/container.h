// Modules that hold modules.
#pragma once
#include "tessera/nn/module.h"

namespace tessera::nn {

// Modules one after another: each is called with what the one before returned.
class Sequential : public Module {
 public:
  Sequential() = default;
  // In braces, so that layers are made, and their first values drawn, in the order of the text:
  //   nn::Sequential{nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 2)}
  //   nn::Sequential{{"conv", nn::Conv2d(1, 8, 3)}, {"relu", nn::ReLU()}}
  Sequential(std::initializer_list<AnyModule> modules);
  Sequential(std::initializer_list<NamedModule> modules);

  Sequential& append(AnyModule module);
  Sequential& append(std::string name, AnyModule module);
  size_t size() const { return children().size(); }
  Module& operator[](int64_t i) const;
  template <class M>
  M& at(int64_t i) const {
    return child(i).as<M>();
  }
  Tensor forward(const Tensor& input) override;

 private:
  const AnyModule& child(int64_t i) const;
};

// Modules in a list: registered, never called by it.
class ModuleList : public Module {
 public:
  ModuleList() = default;
  ModuleList(std::initializer_list<AnyModule> modules);

  ModuleList& append(AnyModule module);
  size_t size() const { return children().size(); }
  Module& operator[](int64_t i) const;
  template <class M>
  M& at(int64_t i) const {
    return child(i).as<M>();
  }
  // Children that print the same, one after another, are printed once with their range.
  std::string repr() const override;

 private:
  const AnyModule& child(int64_t i) const;
};

// Modules by name: registered, never called by it.
class ModuleDict : public Module {
 public:
  ModuleDict() = default;
  ModuleDict(std::initializer_list<NamedModule> modules);

  ModuleDict& insert(std::string name, AnyModule module);
  bool contains(std::string_view name) const;
  size_t size() const { return children().size(); }
  std::vector<std::string> keys() const;
  Module& operator[](std::string_view name) const { return *get_submodule(name); }
  template <class M>
  M& at(std::string_view name) const {
    return get_submodule(name).as<M>();
  }
};

}  // namespace tessera::nn
