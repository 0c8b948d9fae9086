#include "tessera/distributed/fork_guard.h"

#include <fcntl.h>
#include <unistd.h>

#include <set>

#include "tessera/base/fork.h"

namespace tessera::distributed {

namespace {

struct Guarded {
  Mutex mutex;
  std::set<int> fds;
};

// Never destroyed: connections may be closed while the process ends.
Guarded& guarded() {
  static auto* g = new Guarded;
  return *g;
}

const AtFork g_at_fork(
    ForkStage::kSockets, [] { guarded().mutex.lock(); }, [] { guarded().mutex.unlock(); },
    [] {
      if (!guarded().fds.empty()) {
        // The numbers stay taken: objects that are copies too will close them.
        int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
        for (int fd : guarded().fds)
          if (nothing >= 0) ::dup3(nothing, fd, O_CLOEXEC);
        if (nothing >= 0) ::close(nothing);
        guarded().fds.clear();
      }
      guarded().mutex.unlock();
    });

}  // namespace

void guard_from_forks(int fd) {
  std::lock_guard lock(guarded().mutex);
  guarded().fds.insert(fd);
}

void forget_guarded(int fd) {
  std::lock_guard lock(guarded().mutex);
  guarded().fds.erase(fd);
}

}  // namespace tessera::distributed
