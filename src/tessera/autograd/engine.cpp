// Runs a graph backwards: iteratively, later nodes first, each once all its gradients are there.
#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "tessera/autograd/node.h"
#include "tessera/gen/binary.h"
#include "tessera/gen/creation.h"

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

class Engine {
 public:
  Engine(bool retain_graph, std::span<const TensorBase> inputs) : retain_graph_(retain_graph) {
    for (const TensorBase& t : inputs) {
      Edge e = gradient_edge(t);
      TS_CHECK(e.node, "One of the differentiated Tensors does not require grad");
      captures_.push_back(e);
      captured_.emplace_back();
    }
  }

  void count(std::span<const Edge> roots) {
    std::vector<Node*> stack;
    for (const Edge& r : roots)
      if (waiting_.try_emplace(r.node.get()).second) stack.push_back(r.node.get());
    while (!stack.empty()) {
      Node* n = stack.back();
      stack.pop_back();
      for (const Edge& e : n->next) {
        if (!e.node) continue;
        auto [it, fresh] = waiting_.try_emplace(e.node.get());
        ++it->second.missing;
        if (fresh) stack.push_back(e.node.get());
      }
    }
  }

  void deliver(const Edge& e, TensorBase grad) {
    for (size_t i = 0; i < captures_.size(); ++i)
      if (captures_[i].node == e.node && captures_[i].output == e.output && grad.defined())
        captured_[i] = captured_[i].defined() ? op::add(captured_[i], grad, Scalar(1)) : grad;
    Waiting& w = waiting_[e.node.get()];
    if (w.grads.empty()) w.grads.resize(e.node->num_outputs);
    TensorBase& slot = w.grads[e.output];
    if (grad.defined()) slot = slot.defined() ? op::add(slot, grad, Scalar(1)) : std::move(grad);
  }

  void run(std::span<const Edge> roots) {
    for (const Edge& r : roots)
      if (waiting_[r.node.get()].missing == 0 && queued_.insert(r.node.get()).second)
        ready_.push({r.node});
    while (!ready_.empty()) {
      Ref<Node> node = ready_.top().node;
      ready_.pop();
      Grads grads = std::move(waiting_[node.get()].grads);
      bool any =
          std::any_of(grads.begin(), grads.end(), [](const TensorBase& g) { return g.defined(); });
      bool accumulate = node->next.empty() && !captures_.empty();  // grad() leaves .grad alone
      Grads out(node->next.size());
      if (any && !accumulate) {
        out = node->apply(std::move(grads));
        if (!retain_graph_) node->release_saved();
      }
      for (size_t i = 0; i < node->next.size(); ++i) {
        const Edge& e = node->next[i];
        if (!e.node) continue;
        deliver(e, i < out.size() ? std::move(out[i]) : TensorBase());
        if (--waiting_[e.node.get()].missing == 0) ready_.push({e.node});
      }
    }
  }

  Grads take_captured() { return std::move(captured_); }

 private:
  bool retain_graph_;
  std::vector<Edge> captures_;
  Grads captured_;
  std::unordered_map<Node*, Waiting> waiting_;
  std::unordered_set<Node*> queued_;  // roots may repeat
  std::priority_queue<Task> ready_;
};

}  // namespace

Grads run_backward(std::span<const TensorBase> roots, std::span<const TensorBase> root_grads,
                   bool retain_graph, bool create_graph, std::span<const TensorBase> inputs,
                   bool allow_unused) {
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
      g = op::ones_like(root);
    }
    TS_CHECK(g.sizes() == root.sizes(), "Mismatch in shape: grad_output[", i, "] has a shape of ",
             g.sizes(), " and output[", i, "] has a shape of ", root.sizes(), ".");
    edges.push_back(std::move(e));
    start.push_back(std::move(g));
  }
  GradMode graph(create_graph);
  Engine engine(retain_graph, inputs);
  engine.count(edges);
  for (size_t i = 0; i < edges.size(); ++i) engine.deliver(edges[i], std::move(start[i]));
  engine.run(edges);
  if (inputs.empty()) return {};
  Grads out = engine.take_captured();
  for (size_t i = 0; i < out.size(); ++i)
    TS_CHECK(out[i].defined() || allow_unused,
             "One of the differentiated Tensors appears to not have been used in the graph. Set "
             "allow_unused=True if this is the desired behavior.");
  return out;
}

}  // namespace tessera::autograd
