// Pickles as PyTorch's files hold them: plain values, and tensors whose storages stand beside it.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tessera/tensor/tensor.h"

namespace tessera::files {

// "FloatStorage": what PyTorch calls a storage of this dtype.
const char* storage_title(DType t);

class PickleWriter {
 public:
  PickleWriter();
  void none();
  void boolean(bool v);
  void integer(int64_t v);
  void real(double v);
  void text(std::string_view v);
  void tensor(const TensorBase& t);
  // Items follow; a dict's are a text and a value each. end_* closes.
  void begin_list();
  void end_list();
  void begin_dict(bool ordered = false);
  void end_dict();

  // Ends the pickle.
  std::string finish();
  // What the tensors lie in; entry data/N of the archive is the Nth.
  const std::vector<TensorBase>& storages() const { return storages_; }

 private:
  void op(uint8_t code) { out_ += static_cast<char>(code); }
  void global(std::string_view module, std::string_view name);
  void dims(const Dims& d);
  void storage(const TensorBase& t);

  std::string out_;
  std::unordered_map<std::string, uint32_t> memo_;  // of globals
  std::unordered_map<const Storage*, size_t> numbers_;
  std::vector<TensorBase> storages_;
};

}  // namespace tessera::files
