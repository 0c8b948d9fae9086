// What the stand-ins for CUDA's libraries have in common.
#pragma once
#include <cstring>
#include <functional>

#include "device.h"

namespace emulator {

// Is [p, p + bytes) memory of a device? A library is given nothing else.
inline bool on_device(const void* p, size_t bytes) {
  Range r;
  return p && find_range(p, bytes, &r) && r.device;
}

// Queues it; true unless the context is lost.
inline bool enqueue(void* stream, std::function<void()> work) {
  std::function<int()> f = [w = std::move(work)] {
    w();
    return 0;
  };
  return emulator_enqueue(stream, &f) == 0;
}

}  // namespace emulator
