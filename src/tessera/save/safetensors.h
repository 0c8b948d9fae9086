// safetensors files: a length, a header in JSON, the tensors' bytes. No program can be in one.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "tessera/save/safetensors_names.h"
#include "tessera/save/sink.h"
#include "tessera/save/source.h"
#include "tessera/save/state_dict.h"

namespace tessera {

using Metadata = std::map<std::string, std::string>;

struct SafeTensors {
  StateDict tensors;  // in the order of their bytes
  Metadata metadata;
};

// Tensors are packed; two that share memory are refused, because the file would not say so.
void save_safetensors(const StateDict& tensors, const std::string& path,
                      const Metadata& metadata = {});
// With `mmap`, host tensors lie over the file and are read when they are used.
SafeTensors load_safetensors(const std::string& path, std::optional<Device> device = std::nullopt,
                             bool mmap = false);

namespace files {

// One tensor as the header has it.
struct SafeEntry {
  std::string name;
  const SafeName* dtype = nullptr;  // "F32"
  Dims shape;
  uint64_t begin = 0, end = 0;  // in the file
};
struct SafeHeader {
  std::vector<SafeEntry> entries;  // in the order of their bytes
  Metadata metadata;
};

// Checks everything: names, shapes, and that the tensors lie one behind the other up to the end of
// the file.
SafeHeader read_safetensors_header(const Source& source);
// The tensor on the host.
TensorBase read_safetensor(const std::shared_ptr<Source>& source, const SafeEntry& entry,
                           bool mmap);
void write_safetensors(Sink& sink, const StateDict& tensors, const Metadata& metadata);
uint64_t safetensors_bytes(const StateDict& tensors, const Metadata& metadata);

}  // namespace files
}  // namespace tessera
