// nn::Module: parameters, buffers and children by name.
//
//   struct Net : nn::Module {
//     nn::Linear hidden = register_module("hidden", nn::Linear(784, 128));
//     nn::Linear out = register_module("out", nn::Linear(128, 10, {.bias = false}));
//     Tensor forward(const Tensor& x) override { return out(relu(hidden(x))); }
//   };
//
// A module is a handle, as a tensor is: a copy is the same module by another name, so that a member
// and the entry in the list of children are one. clone() makes another one.
#pragma once
#include <concepts>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/face/tensor.h"
#include "tessera/save/state_dict.h"

namespace tessera::nn {

using tessera::StateDict;

class Module;
struct ModuleBody;

// What load_state_dict did not find on one side or the other.
struct IncompatibleKeys {
  std::vector<std::string> missing_keys;
  std::vector<std::string> unexpected_keys;
};

// A module of any class, and how to copy it.
class AnyModule {
 public:
  template <std::derived_from<Module> M>
  AnyModule(M module)
      : module_(std::make_shared<M>(std::move(module))), copy_([](const Module& m) {
          return std::shared_ptr<Module>(std::make_shared<M>(static_cast<const M&>(m)));
        }) {}

  Module& operator*() const { return *module_; }
  Module* operator->() const { return module_.get(); }
  // The module as what it is; raises TypeError where it is something else.
  template <std::derived_from<Module> M>
  M& as() const {
    M* found = dynamic_cast<M*>(module_.get());
    if (!found) wrong_class();
    return *found;
  }
  AnyModule copied() const { return AnyModule(copy_(*module_), copy_); }

 private:
  using Copy = std::shared_ptr<Module> (*)(const Module&);
  AnyModule(std::shared_ptr<Module> module, Copy copy) : module_(std::move(module)), copy_(copy) {}
  [[noreturn]] void wrong_class() const;

  std::shared_ptr<Module> module_;
  Copy copy_;
};
using NamedModule = std::pair<std::string, AnyModule>;

class Module {
 public:
  Module();
  Module(const Module& other);
  Module(Module&&) noexcept = default;
  Module& operator=(const Module&) = default;
  Module& operator=(Module&&) noexcept = default;
  virtual ~Module() = default;

  // What it computes. Modules that take something else than one tensor have a forward of their own,
  // which hides this one: no mistake, there or in a program, so GCC need not name every such class.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverloaded-virtual"
  virtual Tensor forward(const Tensor& input);
#pragma GCC diagnostic pop
  Tensor operator()(const Tensor& input) { return forward(input); }

  // ---- registering: of a name that is there already, in its place -----------------------------
  Tensor register_parameter(std::string name, Tensor parameter, bool requires_grad = true);
  Tensor register_buffer(std::string name, Tensor buffer, bool persistent = true);
  template <std::derived_from<Module> M>
  M register_module(std::string name, M module) {
    add_module(std::move(name), module);
    return module;
  }
  void add_module(std::string name, AnyModule module);

  // ---- what is in it: a parent before its children, nothing twice -----------------------------
  std::vector<Tensor> parameters(bool recurse = true) const;
  StateDict named_parameters(const std::string& prefix = "", bool recurse = true) const;
  std::vector<Tensor> buffers(bool recurse = true) const;
  StateDict named_buffers(const std::string& prefix = "", bool recurse = true) const;
  const std::vector<NamedModule>& named_children() const;
  // All modules below it, by their paths; not itself.
  std::vector<NamedModule> named_modules(const std::string& prefix = "") const;
  // By path ("encoder.layers.0"); raises where there is none.
  AnyModule get_submodule(std::string_view path) const;
  Tensor get_parameter(std::string_view path) const;
  Tensor get_buffer(std::string_view path) const;

  // ---- state ----------------------------------------------------------------------------------
  StateDict state_dict(const std::string& prefix = "") const;
  IncompatibleKeys load_state_dict(const StateDict& state, bool strict = true);

  // ---- modes, moving --------------------------------------------------------------------------
  bool is_training() const;
  Module& train(bool on = true);
  Module& eval() { return train(false); }
  Module& requires_grad_(bool on = true);
  void zero_grad(bool set_to_none = true);
  // Parameters stay the tensors they are, over other memory. Only floating point changes its dtype.
  Module& to(Device device);
  Module& to(DType dtype);
  Module& to(Device device, DType dtype);
  Module& cuda(int index = -1);
  Module& cpu() { return to(Device{}); }
  // Calls fn with every module below, then with this one.
  Module& apply(const std::function<void(Module&)>& fn);
  // The module as M, or null: for apply().
  template <std::derived_from<Module> M>
  M* as() {
    return dynamic_cast<M*>(this);
  }
  bool is_same(const Module& other) const { return body_ == other.body_; }

  // ---- printing -------------------------------------------------------------------------------
  virtual std::string name() const;  // of the class
  virtual std::string extra_repr() const { return ""; }
  virtual std::string repr() const;

 protected:
  // The slots that register_parameter and register_buffer made, in their order.
  Tensor& parameter_at(size_t i) const;
  Tensor& buffer_at(size_t i) const;
  // May the state lack this buffer or parameter? Checkpoints of long ago do.
  virtual bool may_be_missing(std::string_view) const { return false; }
  std::vector<NamedModule>& children() const;

 private:
  friend class Cloning;
  void load_own(const StateDict& state, const std::string& prefix, IncompatibleKeys& keys,
                std::vector<std::string>& errors);
  void convert(const std::function<Tensor(const Tensor&)>& fn);

  std::shared_ptr<ModuleBody> body_;
};

inline std::ostream& operator<<(std::ostream& out, const Module& module) {
  return out << module.repr();
}

// The state in a file of PyTorch's format: torch.load() reads it, and what torch.save() wrote of a
// state_dict is read here.
void save(const Module& module, const std::string& path);
IncompatibleKeys load(Module& module, const std::string& path, bool strict = true);

// While one lives, copies of modules in this thread are modules of their own.
class Cloning {
 public:
  Cloning();
  ~Cloning();
  Cloning(const Cloning&) = delete;
  Cloning& operator=(const Cloning&) = delete;

 private:
  friend class Module;
  static std::shared_ptr<ModuleBody> copied(const std::shared_ptr<ModuleBody>& body);
  TensorBase copied(const TensorBase& t, bool requires_grad);

  std::vector<std::pair<std::shared_ptr<ModuleBody>, std::shared_ptr<ModuleBody>>> bodies_;
  std::vector<std::pair<TensorBase, TensorBase>> tensors_;
  Cloning* before_;
};

// A module with parameters and buffers of its own, as copy.deepcopy makes it. Tensors among a
// class's members that are not registered are shared.
template <std::derived_from<Module> M>
M clone(const M& module) {
  Cloning scope;
  return M(module);
}

}  // namespace tessera::nn
