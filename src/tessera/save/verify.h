// Verifies a saved file without making tensors of it: `tessera check FILE`.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tessera/save/source.h"

namespace tessera::files {

struct Verified {
  const char* format = "";
  uint64_t bytes = 0;
  uint64_t parts = 0;    // entries of an archive, or tensors
  uint64_t checked = 0;  // entries whose checksum was compared
  // Globals of the pickle that are not data: a file with weights_only needs them allowed.
  std::vector<std::string> unknown;
};

// Reads every byte. Compares the checksums of an archive's entries, reads its pickle and compares
// the sizes of its storages; of a safetensors file, and of PyTorch's older form, which have no
// checksums, checks the structure. Raises Refused where load would, and SystemError.
Verified verify_file(const std::shared_ptr<Source>& source);

}  // namespace tessera::files
