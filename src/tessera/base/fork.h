// Locks that the process holds while it forks.
#pragma once
#include <cstdint>

#include "tessera/base/mutex.h"

namespace tessera {

// Note [Locks during a fork]
// A forked child has one thread, the one that forked. A lock that another thread held at the fork
// stays locked in the child forever. So the forking thread takes every lock of the core that a
// child may need before the fork; parent and child release them afterwards. None is a
// std::recursive_mutex: its owner is a thread number, which differs in the child. The stages are
// the order of the core's locks: a thread that holds a lock of one stage only waits for locks of
// later stages. The forking thread may hold Python's lock, and no stage needs Python's lock.
//
// Handlers of pthread_atfork run in reverse order of registration before a fork. A stage may need
// locks of a library that was loaded later (deferred work runs in kStreams), and such a library
// has handlers of its own. So renew_fork_handlers() registers the core's again after each load;
// the newest registration does the work.
enum class ForkStage : uint8_t {
  kGenerators,  // the list of generators, then each generator
  kStreams,     // pending streams; deferred work runs here
  kCopies,
  kCaptures,
  kAllocators,
  kPinnedAllocator,
  kStreamPool,
  kBackends,
  kWatch,
  kDeviceProfile,
  kProfile,
  kGraphNodes,
  kExitFunctions,
  kProcessGroup,
  kEngines,
  kStores,
  kSockets,
  kCount
};

// `lock` is called before a fork and throws nothing; `unlock` afterwards in the parent, and in the
// child unless `unlock_in_child` is given. Call it while the library is loaded, once per stage.
struct AtFork {
  AtFork(ForkStage stage, void (*lock)(), void (*unlock)(), void (*unlock_in_child)() = nullptr);
};

// A stage that is one mutex, which `kMutex` returns.
template <ForkStage kStage, auto kMutex>
struct HeldDuringFork : AtFork {
  HeldDuringFork()
      : AtFork(
            kStage, [] { kMutex().lock(); }, [] { kMutex().unlock(); }) {}
};

void renew_fork_handlers();

}  // namespace tessera
