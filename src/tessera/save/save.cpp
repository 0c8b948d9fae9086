#include "tessera/save/save.h"

#include <map>
#include <set>

#include "tessera/save/loaded.h"
#include "tessera/save/pickle_writer.h"
#include "tessera/save/write_archive.h"

namespace tessera {

using files::Id;
using files::ValueKind;

SaveItem::SaveItem(const StateDict& tensors) : kind_(Kind::kOrdered) {
  for (const auto& [name, tensor] : tensors) {
    keys_.push_back(name);
    items_.emplace_back(tensor);
  }
}

SaveItem SaveItem::list(std::vector<SaveItem> items) {
  SaveItem out;
  out.kind_ = Kind::kList;
  out.items_ = std::move(items);
  return out;
}

SaveItem SaveItem::dict(std::vector<std::pair<std::string, SaveItem>> items) {
  SaveItem out;
  out.kind_ = Kind::kDict;
  for (auto& [key, item] : items) {
    out.keys_.push_back(std::move(key));
    out.items_.push_back(std::move(item));
  }
  return out;
}

SaveItem SaveItem::numbered(std::vector<std::pair<int64_t, SaveItem>> items) {
  SaveItem out;
  out.kind_ = Kind::kNumbered;
  for (auto& [key, item] : items) {
    out.numbers_.push_back(key);
    out.items_.push_back(std::move(item));
  }
  return out;
}

// As deep as the program nested its items.
struct SaveWalk {
  files::PickleWriter& out;

  void walk(const SaveItem& item) {
    switch (item.kind_) {
      case SaveItem::Kind::kNone:
        return out.none();
      case SaveItem::Kind::kTensor:
        return out.tensor(item.tensor_);
      case SaveItem::Kind::kBool:
        return out.boolean(item.integer_ != 0);
      case SaveItem::Kind::kInt:
        return out.integer(item.integer_);
      case SaveItem::Kind::kFloat:
        return out.real(item.real_);
      case SaveItem::Kind::kText:
        return out.text(item.text_);
      case SaveItem::Kind::kList:
        out.begin_list();
        for (const SaveItem& i : item.items_) walk(i);
        return out.end_list();
      case SaveItem::Kind::kDict:
      case SaveItem::Kind::kOrdered:
        out.begin_dict(item.kind_ == SaveItem::Kind::kOrdered);
        for (size_t i = 0; i < item.items_.size(); ++i) {
          out.text(item.keys_[i]);
          walk(item.items_[i]);
        }
        return out.end_dict();
      case SaveItem::Kind::kNumbered:
        out.begin_dict(false);
        for (size_t i = 0; i < item.items_.size(); ++i) {
          out.integer(item.numbers_[i]);
          walk(item.items_[i]);
        }
        return out.end_dict();
    }
  }
};

void save(const SaveItem& item, const std::string& path) {
  files::PickleWriter out;
  SaveWalk{out}.walk(item);
  std::string pickle = out.finish();
  files::write_archive(path, pickle, out.storages());
}

SavedValue load(const std::string& path, std::optional<Device> device) {
  files::LoadOptions options;
  if (device) {
    options.place = [to = *device](const TensorBase& bytes, const std::string&) -> TensorBase {
      return Tensor(bytes).to(to);
    };
  }
  auto file = files::load_values(files::Source::open(path), options);
  Id root = file->graph.root;
  return SavedValue(std::move(file), root);
}

StateDict load_state_dict(const std::string& path, std::optional<Device> device) {
  return load(path, device).state_dict();
}

void SavedValue::not_a(const char* what) const {
  throw Error(ErrorKind::kType, cat("expected ", what, ", but the file has ",
                                    files::kind_name(file_->graph[id_].kind), " there"));
}

bool SavedValue::is_none() const { return file_->graph[id_].kind == ValueKind::kNone; }
bool SavedValue::is_tensor() const {
  ValueKind k = file_->graph[id_].kind;
  return k == ValueKind::kTensor || k == ValueKind::kParameter;
}
bool SavedValue::is_dict() const { return file_->graph.is_dict(id_); }
bool SavedValue::is_list() const {
  ValueKind k = file_->graph[id_].kind;
  return k == ValueKind::kList || k == ValueKind::kTuple;
}

bool SavedValue::is_number() const {
  ValueKind k = file_->graph[id_].kind;
  return k == ValueKind::kInt || k == ValueKind::kFloat || k == ValueKind::kBool;
}

Tensor SavedValue::tensor() const {
  const files::Graph& g = file_->graph;
  if (g[id_].kind == ValueKind::kTensor) return Tensor(file_->tensors[g[id_].link]);
  if (g[id_].kind != ValueKind::kParameter) not_a("a tensor");
  const TensorBase& data = file_->tensors[g[g.items(id_)[0]].link];
  Tensor out(alias(data, data.sizes(), data.strides(), data.storage_offset()));
  return out.requires_grad_(g[id_].number != 0);
}

int64_t SavedValue::integer() const {
  if (file_->graph[id_].kind != ValueKind::kInt) not_a("an int");
  return file_->graph[id_].number;
}
double SavedValue::real() const {
  const files::Node& node = file_->graph[id_];
  if (node.kind == ValueKind::kInt || node.kind == ValueKind::kBool)
    return static_cast<double>(node.number);
  if (node.kind != ValueKind::kFloat) not_a("a number");
  return node.real;
}
bool SavedValue::boolean() const {
  if (file_->graph[id_].kind != ValueKind::kBool) not_a("a bool");
  return file_->graph[id_].number != 0;
}
std::string SavedValue::text() const {
  if (!file_->graph.is_text(id_)) not_a("a string");
  return std::string(file_->graph.text(id_));
}

size_t SavedValue::size() const {
  if (!is_dict() && !is_list()) not_a("a dict or a list");
  return is_dict() ? keys().size() : file_->graph.items(id_).size();
}

// A key that stands there twice: the later value counts, as in Python.
std::optional<uint32_t> SavedValue::find(std::string_view key) const {
  if (!is_dict()) not_a("a dict");
  const std::vector<Id>& items = file_->graph.items(id_);
  for (size_t i = items.size(); i >= 2; i -= 2)
    if (file_->graph.is_text(items[i - 2]) && file_->graph.text(items[i - 2]) == key)
      return items[i - 1];
  return std::nullopt;
}
std::optional<uint32_t> SavedValue::find(int key) const {
  if (!is_dict()) not_a("a dict");
  const std::vector<Id>& items = file_->graph.items(id_);
  for (size_t i = items.size(); i >= 2; i -= 2) {
    const files::Node& node = file_->graph[items[i - 2]];
    if (node.kind == ValueKind::kInt && node.number == key) return items[i - 1];
  }
  return std::nullopt;
}
bool SavedValue::contains(std::string_view key) const { return find(key).has_value(); }
bool SavedValue::contains(int key) const { return find(key).has_value(); }

SavedValue SavedValue::operator[](std::string_view key) const {
  std::optional<uint32_t> found = find(key);
  TS_CHECK_INDEX(found, "the file's dict has no key '", key, "'");
  return SavedValue(file_, *found);
}

SavedValue SavedValue::operator[](int index) const {
  if (is_dict()) {
    std::optional<uint32_t> found = find(index);
    TS_CHECK_INDEX(found, "the file's dict has no key ", index);
    return SavedValue(file_, *found);
  }
  if (!is_list()) not_a("a list");
  const std::vector<Id>& items = file_->graph.items(id_);
  TS_CHECK_INDEX(index >= 0 && static_cast<size_t>(index) < items.size(), "index ", index,
                 " of a list of ", items.size());
  return SavedValue(file_, items[static_cast<size_t>(index)]);
}

std::vector<std::string> SavedValue::keys() const {
  if (!is_dict()) not_a("a dict");
  std::vector<std::string> out;
  std::set<std::string_view> seen;
  const files::Graph& g = file_->graph;
  const std::vector<Id>& items = g.items(id_);
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (!g.is_text(items[i])) SavedValue(file_, items[i]).not_a("a key that is a string");
    if (seen.insert(g.text(items[i])).second) out.emplace_back(g.text(items[i]));
  }
  return out;
}

StateDict SavedValue::state_dict() const {
  const files::Graph& g = file_->graph;
  StateDict out;
  std::map<std::string_view, size_t> seen;
  if (!is_dict()) not_a("a dict of tensors");
  const std::vector<Id>& items = g.items(id_);
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (!g.is_text(items[i])) SavedValue(file_, items[i]).not_a("a key that is a string");
    SavedValue value(file_, items[i + 1]);
    if (!value.is_tensor())
      throw Error(ErrorKind::kType, cat("'", g.text(items[i]), "' is ",
                                        files::kind_name(g[items[i + 1]].kind), ", not a tensor"));
    auto [found, fresh] = seen.emplace(g.text(items[i]), out.size());
    if (fresh)
      out.emplace_back(std::string(g.text(items[i])), value.tensor());
    else
      out[found->second].second = value.tensor();
  }
  return out;
}

}  // namespace tessera
