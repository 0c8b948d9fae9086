// Saving and loading in PyTorch's format, for C++ programs:
//
//   save(model.state_dict(), "model.pt");            StateDict s = load_state_dict("model.pt");
//   save(SaveItem::dict({{"model", s}, {"epoch", 3}}), "checkpoint.pt");
//   SavedValue v = load("checkpoint.pt");            v["epoch"].integer(), v["model"].state_dict()
//
// PyTorch reads what is written here, and what it writes is read here: tensors and plain data,
// never a program. A file appears whole or not at all.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/save/state_dict.h"

namespace tessera {

namespace files {
struct Loaded;
class PickleWriter;
}  // namespace files

// What can be saved: tensors, numbers, text, and lists and dicts of such.
class SaveItem {
 public:
  SaveItem() = default;  // None
  SaveItem(TensorBase t) : kind_(Kind::kTensor), tensor_(std::move(t)) {}
  SaveItem(bool v) : kind_(Kind::kBool), integer_(v) {}
  SaveItem(int v) : kind_(Kind::kInt), integer_(v) {}
  SaveItem(int64_t v) : kind_(Kind::kInt), integer_(v) {}
  SaveItem(double v) : kind_(Kind::kFloat), real_(v) {}
  SaveItem(const char* v) : kind_(Kind::kText), text_(v) {}
  SaveItem(std::string v) : kind_(Kind::kText), text_(std::move(v)) {}
  SaveItem(const StateDict& tensors);
  static SaveItem list(std::vector<SaveItem> items);
  static SaveItem dict(std::vector<std::pair<std::string, SaveItem>> items);
  // A dict whose keys are ints.
  static SaveItem numbered(std::vector<std::pair<int64_t, SaveItem>> items);

 private:
  friend struct SaveWalk;
  enum class Kind : uint8_t {
    kNone,
    kTensor,
    kBool,
    kInt,
    kFloat,
    kText,
    kList,
    kDict,
    kOrdered,
    kNumbered
  };
  Kind kind_ = Kind::kNone;
  TensorBase tensor_;
  int64_t integer_ = 0;
  double real_ = 0;
  std::string text_;
  std::vector<SaveItem> items_;
  std::vector<std::string> keys_;
  std::vector<int64_t> numbers_;  // the keys, where they are ints
};

void save(const SaveItem& item, const std::string& path);
inline void save(const StateDict& tensors, const std::string& path) {
  save(SaveItem(tensors), path);
}
inline void save(const TensorBase& tensor, const std::string& path) {
  save(SaveItem(tensor), path);
}

// A value of a file. Asking for what it is not raises TypeError, for what is not there IndexError.
class SavedValue {
 public:
  bool is_none() const;
  bool is_tensor() const;
  bool is_dict() const;
  bool is_list() const;    // or a tuple
  bool is_number() const;  // an int, a float or a bool
  Tensor tensor() const;
  int64_t integer() const;
  double real() const;  // of an int or a bool, too
  bool boolean() const;
  std::string text() const;

  // Of a dict or a list.
  size_t size() const;
  bool contains(std::string_view key) const;
  bool contains(int key) const;  // of a dict with such keys
  SavedValue operator[](std::string_view key) const;
  SavedValue operator[](const char* key) const { return (*this)[std::string_view(key)]; }
  SavedValue operator[](int index) const;  // of a dict: its key
  std::vector<std::string> keys() const;
  // A dict whose values are all tensors.
  StateDict state_dict() const;

 private:
  friend SavedValue load(const std::string&, std::optional<Device>);
  SavedValue(std::shared_ptr<files::Loaded> file, uint32_t id) : file_(std::move(file)), id_(id) {}
  std::optional<uint32_t> find(std::string_view key) const;
  std::optional<uint32_t> find(int key) const;
  [[noreturn]] void not_a(const char* what) const;

  std::shared_ptr<files::Loaded> file_;
  uint32_t id_;
};

// Tensors go to `device`, or to where they were saved.
SavedValue load(const std::string& path, std::optional<Device> device = std::nullopt);
StateDict load_state_dict(const std::string& path, std::optional<Device> device = std::nullopt);

}  // namespace tessera
