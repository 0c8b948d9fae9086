#include "tessera/tensor/generators.h"

#include <deque>

namespace tessera {

namespace {

struct Generators {
  std::mutex mutex;
  std::deque<Mt19937Generator> all;  // the CPU's, then one for each cuda device asked for
  uint64_t seed = Mt19937Generator::kDefaultSeed;
};

Generators& generators() {
  static Generators* g = new Generators;
  return *g;
}

}  // namespace

Mt19937Generator& default_generator(Device device) {
  Generators& g = generators();
  std::lock_guard lock(g.mutex);
  size_t slot = !device.is_cuda() ? 0 : 1 + static_cast<size_t>(device.index);
  while (g.all.size() <= slot) g.all.emplace_back(g.seed).of_cuda = g.all.size() > 1;
  return g.all[slot];
}

void manual_seed(uint64_t seed) {
  Generators& g = generators();
  std::lock_guard lock(g.mutex);
  g.seed = seed;
  for (Mt19937Generator& one : g.all) {
    std::lock_guard each(one.mutex);
    one.manual_seed(seed);
  }
}

}  // namespace tessera
