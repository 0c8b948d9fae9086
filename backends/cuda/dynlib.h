// Opens CUDA's libraries at first use, so that one build serves machines with and without a GPU.
#pragma once
#include <string>
#include <vector>

namespace tessera::cuda {

// The first of `names` that opens, searched in this order: already loaded or on the default path,
// $CUDA_HOME, $CUDA_PATH, /usr/local/cuda/lib64, then the folders of $TESSERA_CUDA_LIBS (a colon
// list, which the Python package fills with the folders of pip's wheels). Null if none does; *why
// then names what was looked for.
void* open_library(const std::vector<const char*>& names, std::string* why);

// Has the core's exit handler run before those of the libraries opened so far (driver/ending.h).
void renew_exit_handler();

// Reads the file that open_library would most likely open, so that opening it later finds it in
// memory. Opens nothing.
void read_ahead(const std::vector<const char*>& names);

}  // namespace tessera::cuda
