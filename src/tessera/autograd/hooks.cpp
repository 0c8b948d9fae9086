#include "tessera/autograd/hooks.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "tessera/autograd/node.h"
#include "tessera/base/fork.h"

namespace tessera::autograd {

std::string (*describe_stack)() = nullptr;

namespace {

thread_local std::vector<std::shared_ptr<SavedHooks>> t_saved_hooks;
std::atomic<uint64_t> g_hook_id{1};

struct Tracker {
  std::atomic<bool> on{false};
  Mutex mutex;
  std::unordered_set<const Node*> nodes;
};
Tracker& tracker() {
  static Tracker* t = new Tracker;
  return *t;
}
Mutex& lock_of_tracker() { return tracker().mutex; }
const HeldDuringFork<ForkStage::kGraphNodes, lock_of_tracker> g_at_fork;

}  // namespace

bool Hooks::remove(uint64_t id) {
  return tensors.remove(id) || before.remove(id) || after.remove(id);
}

namespace {
// The type of a tensor in the form of PyTorch's messages: torch.cuda.HalfTensor, MetaFloatType.
std::string type_name(const TensorBase& t) {
  const char* dtype = dtype_title(t.dtype());
  if (is_complex(t.dtype()) || t.device().is_meta())
    return cat(t.device().is_meta()   ? "Meta"
               : t.device().is_cuda() ? "CUDA"
                                      : "CPU",
               dtype, "Type");
  return cat(t.device().is_cuda() ? "torch.cuda." : "torch.", dtype, "Tensor");
}
}  // namespace

void check_hook_result(const TensorBase& given, const TensorBase& result, const std::string& name) {
  TS_CHECK(given.dtype() == result.dtype() && given.device().type == result.device().type, "hook '",
           name, "' has changed the type of value (was ", type_name(given), " got ",
           type_name(result), ")");
  TS_CHECK(given.sizes() == result.sizes(), "hook '", name, "' has changed the size of value");
}

uint64_t new_hook_id() { return g_hook_id.fetch_add(1, std::memory_order_relaxed); }

void push_saved_hooks(std::shared_ptr<SavedHooks> hooks) {
  t_saved_hooks.push_back(std::move(hooks));
}
void pop_saved_hooks() {
  TS_ASSERT(!t_saved_hooks.empty());
  t_saved_hooks.pop_back();
}
const std::shared_ptr<SavedHooks>& current_saved_hooks() {
  static const auto& none = *new std::shared_ptr<SavedHooks>;
  return t_saved_hooks.empty() ? none : t_saved_hooks.back();
}

Anomaly& anomaly() {
  thread_local Anomaly state;
  return state;
}

void track_graphs(bool on) { tracker().on.store(on, std::memory_order_relaxed); }
bool graphs_tracked() { return tracker().on.load(std::memory_order_relaxed); }

void start_tracking(const Node* node) {
  std::lock_guard lock(tracker().mutex);
  tracker().nodes.insert(node);
}
void stop_tracking(const Node* node) {
  std::lock_guard lock(tracker().mutex);
  tracker().nodes.erase(node);
}

std::vector<LiveNodes> live_graphs() {
  std::map<std::pair<std::string, std::string>, LiveNodes> groups;
  {
    std::lock_guard lock(tracker().mutex);
    for (const Node* n : tracker().nodes) {
      std::string source = n->trace ? n->trace->source.text() : "";
      LiveNodes& g = groups[{n->name(), source}];
      g.name = n->name();
      g.source = source;
      ++g.count;
      g.saved_bytes += n->saved_bytes();
    }
  }
  std::vector<LiveNodes> out;
  for (auto& [key, g] : groups) out.push_back(std::move(g));
  std::sort(out.begin(), out.end(), [](const LiveNodes& a, const LiveNodes& b) {
    return std::tie(a.saved_bytes, a.count) > std::tie(b.saved_bytes, b.count);
  });
  return out;
}

}  // namespace tessera::autograd
