#include "tessera/distributed/work.h"

#include <cstdlib>
#include <string_view>

namespace tessera::distributed {

namespace {

// PyTorch's variables, the newer first.
bool blocking_wait() {
  for (const char* name : {"TORCH_NCCL_BLOCKING_WAIT", "NCCL_BLOCKING_WAIT"})
    if (const char* value = std::getenv(name)) return std::string_view(value) == "1";
  return false;
}

}  // namespace

bool Work::wait_for(Milliseconds patience, bool block) {
  Completion& c = *completion_;
  const Deadline deadline = Clock::now() + patience;
  if (!c.await_host(deadline)) return false;
  if ((block || c.is_blocking() || blocking_wait()) && !c.await_device(deadline)) return false;
  c.rethrow();
  c.join();
  return true;
}

void Work::wait() {
  while (!wait_for(std::chrono::hours(1))) {
  }
}

}  // namespace tessera::distributed
