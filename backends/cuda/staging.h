// Page-locked bays that pageable memory passes through, and the threads that fill and empty them.
#pragma once
#include <mutex>

#include "context.h"
#include "copy_team.h"

namespace tessera::cuda {

struct Bay {
  char* memory = nullptr;
  CUevent done = nullptr;
  bool busy = false;  // a copy to or from it may be under way
};

struct Staging {
  static constexpr int kBays = 12;
  static constexpr size_t kBayBytes = size_t{2} << 20;

  std::mutex mutex;
  Bay bays[kBays];
  int next = 0;
  // Small copies share a bay as long as they are on one stream: its event then covers them all.
  CUstream small_stream = nullptr;
  size_t small_used = kBayBytes;
  int small_bay = 0;
  CopyTeam team;
  bool ready = false;
};

// Sets *out to the bays of a device for one direction, ready for use; the caller locks their mutex.
// A download holds it until earlier work of its stream is done, so uploads have bays of their own.
Status staging_of(Device& d, bool upload, Staging** out);

}  // namespace tessera::cuda
