#include "tessera/base/blocking.h"

namespace tessera {
void* (*blocking_enter)() = nullptr;
void (*blocking_leave)(void*) = nullptr;
}  // namespace tessera
