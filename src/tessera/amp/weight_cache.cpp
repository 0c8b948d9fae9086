#include "tessera/amp/weight_cache.h"

#include <algorithm>
#include <unordered_map>

#include "tessera/autograd/node.h"
#include "tessera/driver/current.h"
#include "tessera/gen/copy.h"
#include "tessera/memory/capture.h"

namespace tessera::amp {

namespace {

struct Kept {
  TensorBase weight;  // alive, so that nothing else gets its address
  TensorBase cast;
  const Storage* storage;
  uint32_t version;
  bool gradients;
  StreamHandle stream;
};

struct Region {
  int depth = 0;
  bool enabled = true;
  std::unordered_multimap<const void*, Kept> kept;
  size_t sweep_at = 4096;
};
thread_local Region t_region;

bool is_weight(const TensorBase& t) {
  if (t.dtype() != DType::kFloat32 || !t.requires_grad() || !autograd::is_leaf(t)) return false;
  const autograd::Meta* meta = autograd::try_meta(t);
  if (meta && meta->base.defined()) return false;
  // Whoever knows the address may write without our seeing it.
  return !t.storage().exposed.load(std::memory_order_relaxed);
}

// In a region that lasts for long, weights that only the cache still knows.
void forget_orphans(Region& region) {
  if (region.kept.size() < region.sweep_at) return;
  std::erase_if(region.kept, [](const auto& k) { return k.second.weight.ref()->is_held_once(); });
  region.sweep_at = std::max<size_t>(4096, 2 * region.kept.size());
}

}  // namespace

int enter_region() { return ++t_region.depth; }
int leave_region() {
  if (--t_region.depth == 0) forget_casts();
  return t_region.depth;
}
void forget_casts() {
  // Moved out first: the end of a tensor may run code that looks here.
  auto kept = std::move(t_region.kept);
  t_region.kept.clear();
}
bool cache_enabled() { return t_region.enabled; }
void set_cache_enabled(bool on) { t_region.enabled = on; }

TensorBase lowered(const TensorBase& t, DType dtype) {
  Region& region = t_region;
  if (region.depth == 0 || !region.enabled || !is_weight(t)) return op::_to_dtype(t, dtype);
  const bool gradients = autograd::grad_enabled();
  StreamHandle stream{};
  if (!t.device().is_cpu()) {
    stream = current_stream(t.device().index);
    if (memory::capture_of(t.device().index, stream)) return op::_to_dtype(t, dtype);
  }
  const Storage* storage = &t.storage();
  const uint32_t version = storage->version.load(std::memory_order_relaxed);
  auto [at, end] = region.kept.equal_range(t.impl());
  for (; at != end;) {
    const Kept& k = at->second;
    if (k.storage != storage || k.version != version) {
      at = region.kept.erase(at);  // of what the weight was
      continue;
    }
    if (k.gradients == gradients && k.stream == stream && k.cast.dtype() == dtype) return k.cast;
    ++at;
  }
  TensorBase cast = op::_to_dtype(t, dtype);
  forget_orphans(region);
  region.kept.emplace(t.impl(), Kept{t, cast, storage, version, gradients, stream});
  return cast;
}

}  // namespace tessera::amp
