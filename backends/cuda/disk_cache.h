// Compiled kernels in a private folder of the user's cache: $TESSERA_CACHE_DIR, else
// $XDG_CACHE_HOME/tessera, else ~/.cache/tessera. Any failure means a miss, never an error.
//
// Note [Trusting the folder]
// What is read here runs on the GPU. So the folder must belong to this user and be closed to all
// others, links are not followed, and each file carries a checksum and the hash of what it was made
// from. Files are written under a temporary name and renamed, so any number of processes may share
// the folder; the oldest go when it outgrows its bound ($TESSERA_CACHE_MB, 256 by default).
#pragma once
#include <vector>

#include "hash.h"

namespace tessera::cuda {

bool read_cached(const Hash128& name, std::vector<char>* image);
bool has_cached(const Hash128& name);  // without looking into it
void write_cached(const Hash128& name, const std::vector<char>& image);

}  // namespace tessera::cuda
