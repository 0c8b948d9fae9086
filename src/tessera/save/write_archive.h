// The archive around a pickle and its storages.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tessera/save/sink.h"
#include "tessera/tensor/tensor.h"

namespace tessera::files {

// Folder of the entries for a file of this name: "model" for "dir/model.pt".
std::string folder_for(const std::string& path);
// Storage N is the whole storage of the Nth tensor, cut to a whole number of its elements; the
// tensors may lie on any device.
void write_archive(Sink& sink, const std::string& folder, std::string_view pickle,
                   std::span<const TensorBase> storages);
uint64_t archive_bytes(const std::string& folder, std::string_view pickle,
                       std::span<const TensorBase> storages);
// ... to a file: whole or not at all, see Note [A kill at any moment].
void write_archive(const std::string& path, std::string_view pickle,
                   std::span<const TensorBase> storages);

// A tensor's whole storage as bytes in host memory; pending work on it has run.
TensorBase host_bytes(const TensorBase& t);

// Where PyTorch has what Tessera has elsewhere: a module, or "module.name", and PyTorch's module.
using ModuleMoves = std::unordered_map<std::string, std::string>;
// Python's classes by PyTorch's names in a pickle of protocol 2 or 3 that Python has written:
// `tessera.x` becomes `torch.x`, or what `moves` says.
std::string rename_modules(std::string_view pickle, const ModuleMoves& moves = {});

}  // namespace tessera::files
