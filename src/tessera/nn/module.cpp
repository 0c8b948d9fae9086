#include "tessera/nn/module.h"

#include <cxxabi.h>

#include <cstdlib>
#include <typeinfo>

#include "tessera/face/set_data.h"
#include "tessera/nn/body.h"

namespace tessera::nn {

namespace {

thread_local Cloning* cloning = nullptr;

using Slots = std::vector<ModuleBody::Slot>;

Slots::iterator find(Slots& slots, std::string_view name) {
  auto at = slots.begin();
  while (at != slots.end() && at->name != name) ++at;
  return at;
}

std::vector<NamedModule>::iterator find(std::vector<NamedModule>& children, std::string_view name) {
  auto at = children.begin();
  while (at != children.end() && at->first != name) ++at;
  return at;
}

void check_name(const char* kind, const std::string& name, bool taken) {
  TS_CHECK_VALUE(!taken, "attribute '", name, "' already exists");
  TS_CHECK_VALUE(name.find('.') == std::string::npos, kind,
                 " name can't contain \".\", got: ", name);
  TS_CHECK_VALUE(!name.empty(), kind, " name can't be empty string \"\"");
}

std::string joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

bool holds(const StateDict& found, const Tensor& t) {
  for (auto& [name, known] : found)
    if (known.is_same(t)) return true;
  return false;
}

void put(Slots& slots, std::string name, Tensor value, bool persistent) {
  auto at = find(slots, name);
  if (at == slots.end())
    slots.push_back({std::move(name), std::move(value), persistent});
  else
    *at = {std::move(name), std::move(value), persistent};
}

}  // namespace

void AnyModule::wrong_class() const {
  raise(ErrorKind::kType, cat("this module is a ", module_->name()));
}

Module::Module() : body_(std::make_shared<ModuleBody>()) {}
Module::Module(const Module& other) : body_(Cloning::copied(other.body_)) {}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverloaded-virtual"  // module.h says why
Tensor Module::forward(const Tensor&) {
  raise(ErrorKind::kNotImplemented,
        cat("Module [", name(), "] has no \"forward\" function that takes one tensor"));
}
#pragma GCC diagnostic pop

// ---- registering ------------------------------------------------------------------------------

Tensor Module::register_parameter(std::string name, Tensor parameter, bool requires_grad) {
  check_name("parameter", name,
             find(body_->buffers, name) != body_->buffers.end() ||
                 find(body_->children, name) != body_->children.end());
  if (parameter.defined()) {
    TS_CHECK_VALUE(autograd::is_leaf(parameter), "Cannot assign non-leaf Tensor to parameter '",
                   name, "'. Model parameters must be created explicitly. To express '", name,
                   "' as a function of another Tensor, compute the value in the forward() method.");
    if (parameter.requires_grad() != requires_grad) parameter.requires_grad_(requires_grad);
  }
  put(body_->parameters, std::move(name), parameter, true);
  return parameter;
}

Tensor Module::register_buffer(std::string name, Tensor buffer, bool persistent) {
  check_name("buffer", name,
             find(body_->parameters, name) != body_->parameters.end() ||
                 find(body_->children, name) != body_->children.end());
  put(body_->buffers, std::move(name), buffer, persistent);
  return buffer;
}

void Module::add_module(std::string name, AnyModule module) {
  check_name("module", name,
             find(body_->parameters, name) != body_->parameters.end() ||
                 find(body_->buffers, name) != body_->buffers.end());
  auto at = find(body_->children, name);
  if (at == body_->children.end())
    body_->children.emplace_back(std::move(name), std::move(module));
  else
    at->second = std::move(module);
}

Tensor& Module::parameter_at(size_t i) const { return body_->parameters[i].value; }
Tensor& Module::buffer_at(size_t i) const { return body_->buffers[i].value; }
std::vector<NamedModule>& Module::children() const { return body_->children; }

// ---- walking ----------------------------------------------------------------------------------

std::vector<NamedModule> Module::named_modules(const std::string& prefix) const {
  std::vector<NamedModule> found;
  auto walk = [&](auto& self, const Module& module, const std::string& at) -> void {
    for (auto& [name, child] : module.body_->children) {
      bool known = is_same(*child);
      for (auto& other : found) known = known || child->is_same(*other.second);
      if (known) continue;
      std::string path = joined(at, name);
      found.emplace_back(path, child);
      self(self, *child, path);
    }
  };
  walk(walk, *this, prefix);
  return found;
}

namespace {
void add_slots(StateDict& found, const Slots& slots, const std::string& prefix) {
  for (const ModuleBody::Slot& slot : slots)
    if (slot.value.defined() && !holds(found, slot.value))
      found.emplace_back(joined(prefix, slot.name), slot.value);
}
std::vector<Tensor> values_of(StateDict named) {
  std::vector<Tensor> values;
  values.reserve(named.size());
  for (auto& [name, value] : named) values.push_back(std::move(value));
  return values;
}
}  // namespace

StateDict Module::named_parameters(const std::string& prefix, bool recurse) const {
  StateDict found;
  add_slots(found, body_->parameters, prefix);
  if (recurse)
    for (auto& [path, module] : named_modules(prefix))
      add_slots(found, module->body_->parameters, path);
  return found;
}

StateDict Module::named_buffers(const std::string& prefix, bool recurse) const {
  StateDict found;
  add_slots(found, body_->buffers, prefix);
  if (recurse)
    for (auto& [path, module] : named_modules(prefix))
      add_slots(found, module->body_->buffers, path);
  return found;
}

std::vector<Tensor> Module::parameters(bool recurse) const {
  return values_of(named_parameters("", recurse));
}
std::vector<Tensor> Module::buffers(bool recurse) const {
  return values_of(named_buffers("", recurse));
}
const std::vector<NamedModule>& Module::named_children() const { return body_->children; }

AnyModule Module::get_submodule(std::string_view path) const {
  TS_CHECK_VALUE(!path.empty(), "get_submodule: the path of a module is empty");
  size_t dot = path.find('.');
  auto at = find(body_->children, path.substr(0, dot));
  TS_CHECK_KIND(kValue, at != body_->children.end(), name(), " has no attribute `",
                path.substr(0, dot), "`");
  if (dot == std::string_view::npos) return at->second;
  return at->second->get_submodule(path.substr(dot + 1));
}

namespace {
Tensor slot_of(const Module& module, Slots& slots, std::string_view name) {
  auto at = find(slots, name);
  TS_CHECK_VALUE(at != slots.end(), module.name(), " has no attribute `", name, "`");
  return at->value;
}
}  // namespace

Tensor Module::get_parameter(std::string_view path) const {
  size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return slot_of(*this, body_->parameters, path);
  return get_submodule(path.substr(0, dot))->get_parameter(path.substr(dot + 1));
}

Tensor Module::get_buffer(std::string_view path) const {
  size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return slot_of(*this, body_->buffers, path);
  return get_submodule(path.substr(0, dot))->get_buffer(path.substr(dot + 1));
}

// ---- modes ------------------------------------------------------------------------------------

bool Module::is_training() const { return body_->training; }

Module& Module::train(bool on) {
  body_->training = on;
  for (auto& [name, child] : body_->children) child->train(on);
  return *this;
}

Module& Module::requires_grad_(bool on) {
  for (Tensor& p : parameters()) p.requires_grad_(on);
  return *this;
}

void Module::zero_grad(bool set_to_none) {
  autograd::GradMode off(false);
  for (Tensor& p : parameters()) {
    Tensor grad = p.grad();
    if (!grad.defined()) continue;
    if (set_to_none)
      p.zero_grad();
    else
      op::zero_(grad);
  }
}

Module& Module::apply(const std::function<void(Module&)>& fn) {
  for (auto& [name, child] : body_->children) child->apply(fn);
  fn(*this);
  return *this;
}

// ---- moving -----------------------------------------------------------------------------------

void Module::convert(const std::function<Tensor(const Tensor&)>& fn) {
  autograd::GradMode off(false);
  auto all = [&](const Module& module) {
    for (ModuleBody::Slot& slot : module.body_->parameters) {
      if (!slot.value.defined()) continue;
      Tensor grad = slot.value.grad();
      Tensor made = fn(slot.value);
      if (made.is_same(slot.value)) continue;
      set_data(slot.value, made);
      if (grad.defined()) autograd::meta_of(slot.value).grad_slot() = fn(grad);
    }
    for (ModuleBody::Slot& slot : module.body_->buffers)
      if (slot.value.defined()) slot.value = fn(slot.value);
  };
  for (auto& [name, module] : named_modules()) all(*module);
  all(*this);
}

namespace {
void check_float(DType dtype) {
  TS_CHECK_TYPE(is_floating(dtype) || is_complex(dtype),
                "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                "dtype=torch.",
                dtype_name(dtype));
}
Tensor converted(const Tensor& t, DType dtype) {
  return is_floating(t.dtype()) || is_complex(t.dtype()) ? t.to(dtype) : t;
}
}  // namespace

Module& Module::to(Device device) {
  convert([&](const Tensor& t) { return t.to(device); });
  return *this;
}
Module& Module::to(DType dtype) {
  check_float(dtype);
  convert([&](const Tensor& t) { return converted(t, dtype); });
  return *this;
}
Module& Module::to(Device device, DType dtype) {
  check_float(dtype);
  convert([&](const Tensor& t) { return converted(t.to(device), dtype); });
  return *this;
}
Module& Module::cuda(int index) {
  return to(Device{DeviceType::kCUDA, static_cast<int16_t>(index)});
}

// ---- printing ---------------------------------------------------------------------------------

std::string Module::name() const {
  int status = 0;
  char* text = abi::__cxa_demangle(typeid(*this).name(), nullptr, nullptr, &status);
  std::string full = status == 0 ? text : typeid(*this).name();
  std::free(text);
  size_t colon = full.rfind(':');
  return colon == std::string::npos ? full : full.substr(colon + 1);
}

std::string Module::repr() const {
  std::string extra = extra_repr();
  if (body_->children.empty() && extra.find('\n') == std::string::npos)
    return name() + "(" + extra + ")";
  std::string lines = extra;
  for (auto& [key, child] : body_->children)
    lines += (lines.empty() ? "(" : "\n(") + key + "): " + child->repr();
  for (size_t at = 0; (at = lines.find('\n', at)) != std::string::npos; at += 3)
    lines.replace(at, 1, "\n  ");
  return name() + "(\n  " + lines + "\n)";
}

// ---- cloning ----------------------------------------------------------------------------------

Cloning::Cloning() : before_(cloning) { cloning = this; }
Cloning::~Cloning() { cloning = before_; }

TensorBase Cloning::copied(const TensorBase& t, bool requires_grad) {
  for (auto& [from, to] : tensors_)
    if (from.is_same(t)) return to;
  autograd::GradMode off(false);
  Tensor made(op::clone(t));
  if (requires_grad) made.requires_grad_();
  tensors_.emplace_back(t, made);
  return made;
}

std::shared_ptr<ModuleBody> Cloning::copied(const std::shared_ptr<ModuleBody>& body) {
  if (!cloning || !body) return body;
  for (auto& [from, to] : cloning->bodies_)
    if (from == body || to == body) return to;
  auto made = std::make_shared<ModuleBody>();
  cloning->bodies_.emplace_back(body, made);
  made->training = body->training;
  made->parameters = body->parameters;
  made->buffers = body->buffers;
  for (Slots* slots : {&made->parameters, &made->buffers})
    for (ModuleBody::Slot& slot : *slots)
      if (slot.value.defined())
        slot.value = Tensor(cloning->copied(slot.value, slot.value.requires_grad()));
  for (auto& [name, child] : body->children) made->children.emplace_back(name, child.copied());
  return made;
}

}  // namespace tessera::nn
