// The cpu backend's table at the cost of one load: for paths that run once per operator.
#pragma once
#include <atomic>

#include "tessera/driver/backend.h"

namespace tessera {

namespace detail {
extern std::atomic<const Backend*> cpu_table;
}

inline const Backend& cpu() {
  const Backend* table = detail::cpu_table.load(std::memory_order_acquire);
  return table ? *table : *cpu_backend();
}

}  // namespace tessera
