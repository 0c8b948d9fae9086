// A forked child (a worker that loads data) has copies of its parent's connections. They would stay
// open when the parent dies, and nobody would hear of it: in a child they are replaced.
#pragma once

namespace tessera::distributed {

void guard_from_forks(int fd);
// Before it is closed.
void forget_guarded(int fd);

}  // namespace tessera::distributed
