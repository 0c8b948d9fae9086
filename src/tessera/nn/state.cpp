// state_dict and load_state_dict.
#include "tessera/nn/body.h"
#include "tessera/save/save.h"

namespace tessera::nn {

namespace {

void add_state(StateDict& state, const ModuleBody& body, const std::string& prefix) {
  for (const ModuleBody::Slot& slot : body.parameters)
    if (slot.value.defined())
      state.emplace_back(prefix + slot.name, Tensor(op::detach(slot.value)));
  for (const ModuleBody::Slot& slot : body.buffers)
    if (slot.value.defined() && slot.persistent)
      state.emplace_back(prefix + slot.name, Tensor(op::detach(slot.value)));
}

std::string size_text(const TensorBase& t) { return cat("torch.Size(", t.sizes(), ")"); }

std::string quoted(const std::vector<std::string>& keys) {
  std::string out;
  for (const std::string& key : keys) out += (out.empty() ? "\"" : ", \"") + key + "\"";
  return out;
}

void load_one(const std::string& key, const Tensor& into, Tensor given,
              std::vector<std::string>& errors) {
  // Checkpoints of long ago hold what is a number now as a tensor of one element.
  if (into.dim() == 0 && given.dim() == 1 && given.size(0) == 1) given = given[0];
  if (given.sizes() != into.sizes()) {
    errors.push_back(cat("size mismatch for ", key, ": copying a param with shape ",
                         size_text(given), " from checkpoint, the shape in current model is ",
                         size_text(into), "."));
    return;
  }
  try {
    op::copy_(into, given);
  } catch (const Error& e) {
    errors.push_back(cat("While copying the parameter named \"", key,
                         "\", whose dimensions in the model are ", size_text(into),
                         " and whose dimensions in the checkpoint are ", size_text(given),
                         ", an exception occurred : ", e.what(), "."));
  }
}

}  // namespace

StateDict Module::state_dict(const std::string& prefix) const {
  StateDict state;
  auto walk = [&](auto& self, const Module& module, const std::string& at) -> void {
    add_state(state, *module.body_, at);
    for (auto& [name, child] : module.body_->children) self(self, *child, at + name + ".");
  };
  walk(walk, *this, prefix);
  return state;
}

void Module::load_own(const StateDict& state, const std::string& prefix, IncompatibleKeys& keys,
                      std::vector<std::string>& errors) {
  auto slots = [&](const std::vector<ModuleBody::Slot>& all) {
    for (const ModuleBody::Slot& slot : all) {
      if (!slot.value.defined() || !slot.persistent) continue;
      std::string key = prefix + slot.name;
      if (const Tensor* given = state.find(key))
        load_one(key, slot.value, *given, errors);
      else if (!may_be_missing(slot.name))
        keys.missing_keys.push_back(key);
    }
  };
  slots(body_->parameters);
  slots(body_->buffers);
  auto owns = [&](std::string_view rest) {
    size_t dot = rest.find('.');
    std::string_view first = rest.substr(0, dot);
    if (dot != std::string_view::npos) {
      for (auto& [name, child] : body_->children)
        if (name == first) return true;
      return false;
    }
    for (auto* all : {&body_->parameters, &body_->buffers})
      for (const ModuleBody::Slot& slot : *all)
        if (slot.name == first) return slot.value.defined() && slot.persistent;
    return false;
  };
  for (auto& [key, value] : state)
    if (key.starts_with(prefix) && !owns(std::string_view(key).substr(prefix.size())))
      keys.unexpected_keys.push_back(key);
}

IncompatibleKeys Module::load_state_dict(const StateDict& state, bool strict) {
  autograd::GradMode off(false);
  IncompatibleKeys keys;
  std::vector<std::string> errors;
  auto walk = [&](auto& self, Module& module, const std::string& at) -> void {
    module.load_own(state, at, keys, errors);
    for (auto& [name, child] : module.body_->children) self(self, *child, at + name + ".");
  };
  walk(walk, *this, "");
  std::string text;
  if (strict && !keys.missing_keys.empty())
    text += "\n\tMissing key(s) in state_dict: " + quoted(keys.missing_keys) + ". ";
  if (strict && !keys.unexpected_keys.empty())
    text += "\n\tUnexpected key(s) in state_dict: " + quoted(keys.unexpected_keys) + ". ";
  for (const std::string& error : errors) text += "\n\t" + error;
  TS_CHECK(text.empty(), "Error(s) in loading state_dict for ", name(), ":", text);
  return keys;
}

void save(const Module& module, const std::string& path) {
  tessera::save(module.state_dict(), path);
}

// Tensors of a device that is not here are no hindrance: they are copied to where the module is.
IncompatibleKeys load(Module& module, const std::string& path, bool strict) {
  return module.load_state_dict(tessera::load_state_dict(path, Device{}), strict);
}

}  // namespace tessera::nn
