#include "tessera/tensor/generators.h"

#include <deque>

#include "tessera/base/fork.h"

namespace tessera {

namespace {

struct Generators {
  Mutex mutex;
  std::deque<Mt19937Generator> all;  // the CPU's, then one for each cuda device asked for
  uint64_t seed = Mt19937Generator::kDefaultSeed;
};

Generators& generators() {
  static Generators* g = new Generators;
  return *g;
}

}  // namespace

// Every generator of the process, default ones and those that a program made.
struct LiveGenerators {
  Mutex mutex;
  Mt19937Generator* first = nullptr;

  void add(Mt19937Generator& g) {
    std::lock_guard lock(mutex);
    g.next_live_ = first;
    if (first) first->previous_ = &g;
    first = &g;
  }
  void remove(Mt19937Generator& g) {
    std::lock_guard lock(mutex);
    (g.previous_ ? g.previous_->next_live_ : first) = g.next_live_;
    if (g.next_live_) g.next_live_->previous_ = g.previous_;
  }
  template <class F>
  void for_each(F f) {
    for (Mt19937Generator* g = first; g; g = g->next_live_) f(*g);
  }
};

namespace {

LiveGenerators& live() {
  static auto* all = new LiveGenerators;
  return *all;
}

const AtFork g_at_fork(
    ForkStage::kGenerators,
    [] {
      generators().mutex.lock();
      live().mutex.lock();
      live().for_each([](Mt19937Generator& g) { g.mutex.lock(); });
    },
    [] {
      live().for_each([](Mt19937Generator& g) { g.mutex.unlock(); });
      live().mutex.unlock();
      generators().mutex.unlock();
    });

}  // namespace

Mt19937Generator::Mt19937Generator(uint64_t seed) {
  manual_seed(seed);
  live().add(*this);
}
Mt19937Generator::~Mt19937Generator() { live().remove(*this); }

void GeneratorLock::wait() {
  scope_.emplace();
  lock_.lock();
}

Mt19937Generator& default_generator(Device device) {
  Generators& g = generators();
  std::lock_guard lock(g.mutex);
  size_t slot = !device.is_cuda() ? 0 : 1 + static_cast<size_t>(device.index);
  while (g.all.size() <= slot) g.all.emplace_back(g.seed).of_cuda = g.all.size() > 1;
  return g.all[slot];
}

void manual_seed(uint64_t seed) {
  BlockingScope scope;  // another thread may draw from a generator for long
  Generators& g = generators();
  std::lock_guard lock(g.mutex);
  g.seed = seed;
  for (Mt19937Generator& one : g.all) {
    std::lock_guard each(one.mutex);
    one.manual_seed(seed);
  }
}

}  // namespace tessera
