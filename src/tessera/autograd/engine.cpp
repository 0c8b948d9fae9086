// Runs a graph backwards: iteratively, later nodes first, each once all its gradients are there.
#include <algorithm>
#include <cstring>
#include <optional>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "tessera/autograd/callbacks.h"
#include "tessera/autograd/node.h"
#include "tessera/fuse/stream.h"
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/reduce.h"
#include "tessera/ops/modes.h"
#include "tessera/profile/record.h"

namespace tessera::autograd {

namespace {

struct Task {
  Ref<Node> node;
  bool operator<(const Task& o) const { return node->sequence < o.node->sequence; }
};

struct Waiting {
  int missing = 0;  // edges that have not delivered yet
  Grads grads;
};

// Replaces the gradients that arrive at a node by the results of its tensor hooks, and stores those
// of tensors with retain_grad().
void run_tensor_hooks(Node& node, Grads& grads) {
  if (!node.hooks) return;
  auto tensors = node.hooks->tensors.copy();
  for (auto& h : tensors) {
    TensorBase& g = grads[h.output];
    if (!g.defined()) continue;
    TensorBase other = h.call(g);
    if (!other.defined()) continue;
    check_hook_result(g, other, std::to_string(&h - tensors.data()));
    g = std::move(other);
  }
  for (auto& r : node.hooks->retained) {
    const TensorBase& g = grads[r.output];
    if (!g.defined()) continue;
    // A copy: the gradient may also become that of another tensor.
    *r.grad = r.grad->defined() ? op::add(*r.grad, g, Scalar(1))
                                : op::clone(g, MemoryFormat::kContiguous);
  }
}

std::string where_made(const Node& node) {
  if (!node.trace) return ", which was made before anomaly detection was on";
  if (!node.trace->stack.empty())
    return cat(". Traceback of the forward call that made it:\n", node.trace->stack);
  std::string line = node.trace->source.text();
  return line.empty() ? "" : cat(", called at ", line);
}

void check_nan(const Node& node, const Grads& grads) {
  GradMode off(false);
  for (size_t i = 0; i < grads.size(); ++i) {
    const TensorBase& g = grads[i];
    if (!g.defined() || g.device().is_meta()) continue;
    TensorBase same = op::sum(op::eq(g, g));
    TensorBase host = op::_to_device(same, Device{});
    fuse::ensure_readable(host, fuse::Reason::kHostRead);
    int64_t count;
    std::memcpy(&count, host.raw(), sizeof count);
    TS_CHECK(count == g.numel(), "Function '", node.name(), "' returned nan values in its ", i,
             "th output", where_made(node));
  }
}

Grads call_node(Node& node, Grads&& grads) {
  if (!profile::recording()) [[likely]]
    return node.apply(std::move(grads));
  profile::Scope scope(profile::Kind::kNodeApply, profile::own_buffer().copy(node.name()));
  scope.sequence = static_cast<int64_t>(node.sequence);
  return node.apply(std::move(grads));
}

Grads apply_node(Node& node, Grads&& grads) {
  if (node.hooks) {
    auto before = node.hooks->before.copy();
    for (auto& h : before) h.call(grads);
  }
  bool observed = node.hooks && !node.hooks->after.empty();
  Grads outputs = observed ? grads : Grads();
  Grads made;
  if (!anomaly().enabled) [[likely]] {
    made = call_node(node, std::move(grads));
  } else {
    try {
      made = call_node(node, std::move(grads));
    } catch (const Error& e) {
      raise(e.kind(), cat(e.what(), "\nError detected in ", node.name(), where_made(node)));
    }
    if (anomaly().check_nan) check_nan(node, made);
  }
  if (observed) {
    auto after = node.hooks->after.copy();
    for (auto& h : after) h.call(made, outputs);
  }
  return made;
}

// Returns the gradient as the node expects it that it enters: summed over what broadcasting added
// and in the dtype of the node's result. `from` returned it as its gradient `index`; it is null for
// the gradients that backward() was called with.
TensorBase validate_gradient(TensorBase grad, const ResultSpec& spec, const Node* from,
                             size_t index) {
  if (!spec.sizes) return grad;
  if (grad.dtype() == spec.dtype && grad.sizes() == *spec.sizes && grad.device() == spec.device)
      [[likely]]
    return grad;
  auto refuse = [&](const auto&... reason) {
    std::string subject = from ? cat("Function ", from->name(), " returned an") : std::string();
    raise(ErrorKind::kRuntime,
          cat(subject, from ? " " : "", "invalid gradient at index ", index, " - ", reason...));
  };
  if (!(grad.sizes() == *spec.sizes)) {
    if (!is_summable_to(grad.sizes(), *spec.sizes))
      refuse("got ", grad.sizes(), " but expected shape compatible with ", *spec.sizes);
    grad = fit_gradient(std::move(grad), *spec.sizes, grad.dtype(), grad.device());
  }
  TS_CHECK(is_floating(grad.dtype()) || is_complex(grad.dtype()) == is_complex(spec.dtype),
           "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == grad_is_complex) "
           "to be true, but got false. (a complex gradient for a real tensor, or one of integers "
           "for a complex tensor)");
  if (grad.dtype() != spec.dtype) grad = op::_to_dtype(grad, spec.dtype);
  if (!(grad.device() == spec.device)) {
    if (grad.dim() != 0) refuse("expected device ", spec.device, " but got ", grad.device());
    grad = op::_to_device(grad, spec.device);
  }
  return grad;
}

class Engine {
 public:
  // Without `inputs` all leaves accumulate their gradient. With them the engine computes only their
  // gradients: it accumulates them if `accumulates`, else it captures them.
  Engine(bool retain_graph, std::span<const TensorBase> inputs, bool accumulates)
      : retain_graph_(retain_graph), accumulates_(accumulates || inputs.empty()) {
    for (const TensorBase& t : inputs) {
      Edge e = gradient_edge(t);
      TS_CHECK(e.node, "One of the differentiated Tensors does not require grad");
      captured_at_.emplace(e.node.get(), captures_.size());
      captures_.push_back(e);
      captured_.emplace_back();
    }
  }

  // Which nodes lead to what is asked for: all of them without inputs. Iteratively, children first.
  void find_needed(std::span<const Edge> roots) {
    if (captures_.empty()) return;
    for (const Edge& e : captures_) needed_[e.node.get()] = true;
    std::unordered_set<Node*> seen;
    std::vector<std::pair<Node*, size_t>> stack;
    for (const Edge& r : roots)
      if (seen.insert(r.node.get()).second) stack.emplace_back(r.node.get(), 0);
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next < node->next.size()) {
        Node* child = node->next[next++].node.get();
        if (child && seen.insert(child).second) stack.emplace_back(child, 0);
        continue;
      }
      bool leads = needed_.contains(node);
      for (const Edge& e : node->next) leads |= e.node && needed_.contains(e.node.get());
      if (leads) needed_[node] = true;
      stack.pop_back();
    }
  }
  bool needed(const Node* n) const {
    return captures_.empty() || needed_.contains(const_cast<Node*>(n));
  }

  void count(std::span<const Edge> roots) {
    find_needed(roots);
    std::vector<Node*> stack;
    for (const Edge& r : roots)
      if (waiting_.try_emplace(r.node.get()).second) stack.push_back(r.node.get());
    while (!stack.empty()) {
      Node* n = stack.back();
      stack.pop_back();
      for (const Edge& e : n->next) {
        if (!e.node || !needed(e.node.get())) continue;
        auto [it, fresh] = waiting_.try_emplace(e.node.get());
        ++it->second.missing;
        if (fresh) stack.push_back(e.node.get());
      }
    }
  }

  void deliver(const Edge& e, TensorBase grad, const Node* from, size_t index) {
    if (grad.defined())
      grad = validate_gradient(std::move(grad), e.node->result_spec(e.output), from, index);
    Waiting& w = waiting_[e.node.get()];
    if (w.grads.empty()) w.grads.resize(e.node->num_outputs);
    TensorBase& slot = w.grads[e.output];
    if (grad.defined()) slot = slot.defined() ? op::add(slot, grad, Scalar(1)) : std::move(grad);
  }

  void capture(Node* node, const Grads& grads) {
    auto [first, last] = captured_at_.equal_range(node);
    for (auto it = first; it != last; ++it) {
      const TensorBase& grad = grads[captures_[it->second].output];
      if (grad.defined()) captured_[it->second] = grad;
    }
  }

  void run(std::span<const Edge> roots) {
    for (const Edge& r : roots)
      if (waiting_[r.node.get()].missing == 0 && queued_.insert(r.node.get()).second)
        ready_.push({r.node});
    while (!ready_.empty()) {
      Ref<Node> node = ready_.top().node;
      ready_.pop();
      std::optional<profile::Scope> observed;
      if (profile::recording()) [[unlikely]] {
        observed.emplace(profile::Kind::kNode, profile::own_buffer().copy(node->name()));
        observed->sequence = static_cast<int64_t>(node->sequence);
      }
      Grads grads = std::move(waiting_[node.get()].grads);
      run_tensor_hooks(*node, grads);
      if (!captures_.empty()) capture(node.get(), grads);
      bool any =
          std::any_of(grads.begin(), grads.end(), [](const TensorBase& g) { return g.defined(); });
      // grad() leaves .grad unchanged, and runs only the nodes that lead to its inputs.
      bool wanted = captures_.empty() || (accumulates_ && node->next.empty());
      for (const Edge& e : node->next) wanted |= e.node && needed(e.node.get());
      Grads out(node->next.size());
      if (any && wanted) {
        out = apply_node(*node, std::move(grads));
        if (!retain_graph_) node->release_saved();
      }
      for (size_t i = 0; i < node->next.size(); ++i) {
        const Edge& e = node->next[i];
        if (!e.node || !needed(e.node.get())) continue;
        deliver(e, i < out.size() ? std::move(out[i]) : TensorBase(), node.get(), i);
        if (--waiting_[e.node.get()].missing == 0) ready_.push({e.node});
      }
    }
  }

  Grads take_captured() { return std::move(captured_); }

 private:
  bool retain_graph_;
  bool accumulates_;
  std::vector<Edge> captures_;
  std::unordered_multimap<Node*, size_t> captured_at_;  // positions in captures_
  Grads captured_;
  std::unordered_map<Node*, bool> needed_;
  std::unordered_map<Node*, Waiting> waiting_;
  std::unordered_set<Node*> queued_;  // roots may repeat
  std::priority_queue<Task> ready_;
};

// Of the outermost backward of this thread; null outside of one.
thread_local std::vector<std::function<void()>>* t_at_end = nullptr;

// Runs a backward, and what is to be done at its end.
template <class F>
void with_callbacks(F&& backward) {
  if (t_at_end) return backward();
  std::vector<std::function<void()>> calls;
  t_at_end = &calls;
  struct Reset {
    ~Reset() { t_at_end = nullptr; }
  } reset;
  backward();
  for (size_t i = 0; i < calls.size(); ++i) {  // one may add another
    auto call = std::move(calls[i]);
    call();
  }
}

thread_local bool t_retained = false;
// Backwards nest: a checkpoint's runs inside another.
struct RetainedScope {
  explicit RetainedScope(bool on) : before(t_retained) { t_retained = on; }
  ~RetainedScope() { t_retained = before; }
  bool before;
};

}  // namespace

bool in_backward() { return t_at_end != nullptr; }

void at_end_of_backward(std::function<void()> call) {
  TS_CHECK(t_at_end, "there is no backward under way whose end could be waited for");
  t_at_end->push_back(std::move(call));
}

namespace {
Grads run_engine(std::span<const TensorBase> roots, std::span<const TensorBase> root_grads,
                 bool retain_graph, bool create_graph, std::span<const TensorBase> inputs,
                 bool accumulates) {
  std::vector<Edge> edges;
  Grads start;
  for (size_t i = 0; i < roots.size(); ++i) {
    const TensorBase& root = roots[i];
    Edge e = gradient_edge(root);
    TS_CHECK(e.node, "element ", i,
             " of tensors does not require grad and does not have a grad_fn");
    TensorBase g = i < root_grads.size() ? root_grads[i] : TensorBase();
    if (!g.defined()) {
      TS_CHECK(root.numel() == 1, "grad can be implicitly created only for scalar outputs");
      TS_CHECK(!is_complex(root.dtype()),
               "grad can be implicitly created only for real scalar outputs but got ",
               root.dtype());
      g = op::ones_like(root);
    }
    TS_CHECK(g.sizes() == root.sizes(), "Mismatch in shape: grad_output[", i, "] has a shape of ",
             "torch.Size(", g.sizes(), ")", " and output[", i, "] has a shape of ", "torch.Size(",
             root.sizes(), ").");
    TS_CHECK(is_complex(g.dtype()) == is_complex(root.dtype()),
             "For complex Tensors, both grad_output and output are required to have the same "
             "dtype. Mismatch in dtype: grad_output[",
             i, "] has a dtype of torch.", dtype_name(g.dtype()), " and output[", i,
             "] has a dtype of torch.", dtype_name(root.dtype()), ".");
    edges.push_back(std::move(e));
    start.push_back(std::move(g));
  }
  GradMode graph(create_graph);
  RetainedScope retained(retain_graph);
  Engine engine(retain_graph, inputs, accumulates);
  engine.count(edges);
  for (size_t i = 0; i < edges.size(); ++i)
    engine.deliver(edges[i], std::move(start[i]), nullptr, i);
  with_callbacks([&] { engine.run(edges); });
  return engine.take_captured();
}
}  // namespace

void run_backward_into(std::span<const TensorBase> roots, std::span<const TensorBase> root_grads,
                       bool retain_graph, bool create_graph, std::span<const TensorBase> inputs) {
  for (const TensorBase& t : inputs) retain_grad(t);
  run_engine(roots, root_grads, retain_graph, create_graph, inputs, true);
}

Grads run_backward(std::span<const TensorBase> roots, std::span<const TensorBase> root_grads,
                   bool retain_graph, bool create_graph, std::span<const TensorBase> inputs,
                   bool allow_unused) {
  Grads out = run_engine(roots, root_grads, retain_graph, create_graph, inputs, false);
  for (size_t i = 0; i < out.size(); ++i)
    TS_CHECK(out[i].defined() || allow_unused,
             "One of the differentiated Tensors appears to not have been used in the graph. Set "
             "allow_unused=True if this is the desired behavior.");
  return out;
}

}  // namespace tessera::autograd

namespace tessera {
bool records_gradients() { return autograd::grad_enabled(); }
bool graph_is_retained() { return autograd::t_retained; }
}  // namespace tessera
