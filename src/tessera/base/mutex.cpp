#include "tessera/base/mutex.h"

#ifdef TESSERA_LOCK_CHECKS
#include <cstdio>
#include <cstdlib>

namespace tessera {

int& held_mutexes() {
  static thread_local int held = 0;
  return held;
}

void require_no_mutex(const char* what) {
  if (held_mutexes() == 0) return;
  std::fprintf(stderr,
               "tessera: %s while the thread holds %d locks of the core; see Note [Order of locks] "
               "in base/blocking.h\n",
               what, held_mutexes());
  std::abort();
}

}  // namespace tessera
#endif
