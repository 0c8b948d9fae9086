// The archive around a pickle and its storages.
#pragma once
#include <span>
#include <string>
#include <string_view>

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

// Python's classes by PyTorch's names: `tessera.x` becomes `torch.x` in a pickle of protocol 2 or 3
// that Python has written.
std::string rename_modules(std::string_view pickle);

}  // namespace tessera::files
