// A file of torch.save, read: its values, and the tensors among them in memory.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/save/graph.h"
#include "tessera/save/pickle_reader.h"
#include "tessera/save/source.h"
#include "tessera/save/zip.h"
#include "tessera/tensor/tensor.h"

namespace tessera::files {

struct LoadOptions {
  const AllowedNames* allowed = nullptr;
  bool mmap = false;
  bool big_endian = false;  // where the file does not say
  // Where a storage, given as a tensor of bytes, goes; an undefined tensor: where it was saved.
  std::function<TensorBase(const TensorBase& bytes, const std::string& location)> place;
};

struct Loaded {
  Graph graph;
  std::vector<TensorBase> storages;  // as bytes, in the order of graph.storages
  std::vector<TensorBase> tensors;   // in the order of graph.tensors
};

// Zip or the older form. Everything in the pickle is checked before a byte of a tensor is read.
std::shared_ptr<Loaded> load_values(std::shared_ptr<Source> source, const LoadOptions& options);

// Names in a file's pickle that are neither known nor in `allowed`, sorted.
std::vector<std::string> unknown_globals(std::shared_ptr<Source> source,
                                         const AllowedNames& allowed);

// Moves bytes to the device that a location names, "cpu" or "cuda:1".
TensorBase place_as_saved(const TensorBase& bytes, const std::string& location);

// The archive that torch.save writes, record by record.
class Archive {
 public:
  explicit Archive(std::shared_ptr<Source> source, bool mmap = false, bool big_endian = false);
  const std::string& name() const { return zip_.source().name(); }
  const ZipReader& zip() const { return zip_; }
  std::vector<uint8_t> pickle() const;
  // A storage as bytes, in this machine's order; `type` is its DType or kUntyped, `numel` what the
  // pickle says it has.
  TensorBase storage(const std::string& key, int64_t type, int64_t numel) const;
  // All of them, on several threads where they are large.
  std::vector<TensorBase> storages(const std::vector<StorageInfo>& all) const;

  // The entry of a storage, which is there and has its size.
  const ZipEntry& entry_of(const std::string& key, int64_t type, int64_t numel) const;

 private:
  // `read` says whether fill() has to follow.
  TensorBase memory_for(const std::string& key, int64_t type, int64_t numel, bool& read) const;
  void fill(const TensorBase& bytes, const std::string& key, int64_t type) const;

  std::shared_ptr<Source> source_;
  ZipReader zip_;
  bool mmap_;
  bool swap_;
};

// Of a file that is neither: says what it is, where that can be told.
[[noreturn]] void refuse_unknown(const Source& source);
bool looks_like_legacy(const Source& source);
std::shared_ptr<Loaded> load_legacy(const Source& source, const LoadOptions& options);

// What both forms end with: storages are in `out` already.
void make_tensors(Loaded& out, const LoadOptions& options);
// Turns the bytes of every number around.
void swap_bytes(const TensorBase& bytes, int64_t type);

}  // namespace tessera::files
