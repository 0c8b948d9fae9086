#include "tessera/nn/container.h"

namespace tessera::nn {

namespace {
const AnyModule& nth(const std::vector<NamedModule>& children, int64_t i) {
  auto size = static_cast<int64_t>(children.size());
  TS_CHECK_INDEX(i >= -size && i < size, "index ", i, " is out of range");
  return children[static_cast<size_t>(i < 0 ? i + size : i)].second;
}

std::string indented(std::string text) {
  for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 3)
    text.replace(at, 1, "\n  ");
  return text;
}
}  // namespace

Sequential::Sequential(std::initializer_list<AnyModule> modules) {
  for (const AnyModule& one : modules) append(one);
}
Sequential::Sequential(std::initializer_list<NamedModule> modules) {
  for (const NamedModule& one : modules) add_module(one.first, one.second);
}
Sequential& Sequential::append(AnyModule module) {
  return append(std::to_string(size()), std::move(module));
}
Sequential& Sequential::append(std::string name, AnyModule module) {
  add_module(std::move(name), std::move(module));
  return *this;
}
const AnyModule& Sequential::child(int64_t i) const { return nth(children(), i); }
Module& Sequential::operator[](int64_t i) const { return *child(i); }

Tensor Sequential::forward(const Tensor& input) {
  Tensor x = input;
  for (auto& [name, module] : children()) x = module->forward(x);
  return x;
}

ModuleList::ModuleList(std::initializer_list<AnyModule> modules) {
  for (const AnyModule& one : modules) append(one);
}
ModuleList& ModuleList::append(AnyModule module) {
  add_module(std::to_string(size()), std::move(module));
  return *this;
}
const AnyModule& ModuleList::child(int64_t i) const { return nth(children(), i); }
Module& ModuleList::operator[](int64_t i) const { return *child(i); }

std::string ModuleList::repr() const {
  if (children().empty()) return name() + "()";
  std::string lines;
  for (size_t first = 0; first < size();) {
    std::string text = children()[first].second->repr();
    size_t last = first;
    while (last + 1 < size() && children()[last + 1].second->repr() == text) ++last;
    std::string range = first == last
                            ? cat("(", first, "): ", text)
                            : cat("(", first, "-", last, "): ", last - first + 1, " x ", text);
    lines += "\n  " + indented(range);
    first = last + 1;
  }
  return name() + "(" + lines + "\n)";
}

ModuleDict::ModuleDict(std::initializer_list<NamedModule> modules) {
  for (const NamedModule& one : modules) add_module(one.first, one.second);
}
ModuleDict& ModuleDict::insert(std::string name, AnyModule module) {
  add_module(std::move(name), std::move(module));
  return *this;
}
bool ModuleDict::contains(std::string_view name) const {
  for (auto& [key, module] : children())
    if (key == name) return true;
  return false;
}
std::vector<std::string> ModuleDict::keys() const {
  std::vector<std::string> names;
  for (auto& [key, module] : children()) names.push_back(key);
  return names;
}

}  // namespace tessera::nn
