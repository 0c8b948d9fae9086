// What programs hang onto a graph: hooks of gradients and nodes, other ways to keep saved tensors,
// and looking for where a wrong gradient came from.
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/ops/call.h"

namespace tessera::autograd {

using Grads = std::vector<TensorBase>;

// Hooks in the order of their ids. Removing one takes constant time on average: its place stays
// until half of them are empty.
template <class Hook>
class HookList {
 public:
  void push_back(Hook hook) { hooks_.push_back(std::move(hook)); }
  bool empty() const { return removed_ == hooks_.size(); }
  bool remove(uint64_t id) {
    auto at = std::lower_bound(hooks_.begin(), hooks_.end(), id,
                               [](const Hook& h, uint64_t wanted) { return h.id < wanted; });
    if (at == hooks_.end() || at->id != id || !at->call) return false;
    at->call = nullptr;
    if (++removed_ * 2 > hooks_.size()) {
      std::erase_if(hooks_, [](const Hook& h) { return !h.call; });
      removed_ = 0;
    }
    return true;
  }
  // The hooks that are there now: one may remove itself while they run.
  std::vector<Hook> copy() const {
    std::vector<Hook> all;
    for (const Hook& h : hooks_)
      if (h.call) all.push_back(h);
    return all;
  }

 private:
  std::vector<Hook> hooks_;
  size_t removed_ = 0;
};

struct Hooks {
  // Sees the gradient of one result, and may return another one.
  struct OnTensor {
    uint64_t id;
    uint32_t output;
    std::function<TensorBase(const TensorBase&)> call;
  };
  // Sees the gradients of all results before the node runs, and may change them.
  struct Before {
    uint64_t id;
    std::function<void(Grads& outputs)> call;
  };
  // Sees them together with what the node made of them.
  struct After {
    uint64_t id;
    std::function<void(Grads& inputs, const Grads& outputs)> call;
  };
  // x.retain_grad(): where the gradient of a result is kept, shared with its tensor.
  struct Retained {
    uint32_t output;
    std::shared_ptr<TensorBase> grad;
  };
  HookList<OnTensor> tensors;
  HookList<Before> before;
  HookList<After> after;
  std::vector<Retained> retained;

  bool remove(uint64_t id);
};
uint64_t new_hook_id();
// Raises if a hook returned a gradient of another dtype, device or shape than it was given.
void check_hook_result(const TensorBase& given, const TensorBase& result, const std::string& name);

// autograd.graph.saved_tensors_hooks: tensors saved for backward are handed to `pack`, and what it
// gives is kept in their place.
struct SavedHooks {
  std::function<std::shared_ptr<void>(const TensorBase&)> pack;
  std::function<TensorBase(const std::shared_ptr<void>&)> unpack;
};
// Of the calling thread; the innermost counts. Null: saved as they are.
void push_saved_hooks(std::shared_ptr<SavedHooks> hooks);
void pop_saved_hooks();
const std::shared_ptr<SavedHooks>& current_saved_hooks();

// Anomaly mode: each node keeps the text of where its operator was called, backward looks for NaN
// (if asked to) and says which operator it was.
struct Anomaly {
  bool enabled = false;
  bool check_nan = true;
};
Anomaly& anomaly();
// Set by the binder: the host language's stack as text.
extern std::string (*describe_stack)();

// Graphs that are alive, for finding out what keeps them: on, every new node is listed with the
// line that made it.
void track_graphs(bool on);
bool graphs_tracked();
struct LiveNodes {
  std::string name;
  std::string source;  // "train.py:12"
  int64_t count;
  int64_t saved_bytes;
};
// Grouped by name and line, most bytes first.
std::vector<LiveNodes> live_graphs();

}  // namespace tessera::autograd
