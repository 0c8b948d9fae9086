// The default random generator of each device.
#pragma once
#include <mutex>
#include <optional>

#include "tessera/base/blocking.h"
#include "tessera/base/device.h"
#include "tessera/tensor/rng.h"

namespace tessera {

Mt19937Generator& default_generator(Device device);
// Holds a generator's mutex; see Note [Order of locks]. Python's lock is released until the end if
// another thread holds the mutex. `releases_python`: in any case, because the work under the mutex
// opens a BlockingScope. Python objects must not be used meanwhile.
class GeneratorLock {
 public:
  explicit GeneratorLock(Mt19937Generator& generator, bool releases_python = false)
      : lock_(generator.mutex, std::defer_lock) {
    if (releases_python || !lock_.try_lock()) [[unlikely]]
      wait();
  }

 private:
  void wait();
  std::optional<BlockingScope> scope_;
  std::unique_lock<Mutex> lock_;
};

// Seeds every device's generator, as torch.manual_seed does.
void manual_seed(uint64_t seed);

}  // namespace tessera
