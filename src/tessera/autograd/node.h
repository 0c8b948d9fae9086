// The graph behind a result: which call made it, and where gradients go from there.
#pragma once
#include <vector>

#include "tessera/autograd/hooks.h"
#include "tessera/base/source.h"
#include "tessera/ops/call.h"

namespace tessera::autograd {

class Node;

struct Edge {
  Ref<Node> node;       // null: no gradient wanted
  uint32_t output = 0;  // which of the node's results
};

// Geometry of a node's result: gradients that enter the node are converted to it.
struct ResultSpec {
  const Dims* sizes = nullptr;  // null: the node accepts any gradient
  DType dtype = DType::kFloat32;
  Device device;
};

// Where a node was made; only in anomaly mode, or while graphs are tracked.
struct Trace {
  SourceRef source;
  std::string stack;
  bool tracked = false;
};

class Node : public RefCounted {
 public:
  Node();
  virtual ~Node();

  // Gradients of its results in, of its inputs out (one for each edge).
  virtual Grads apply(Grads&& grads) = 0;
  virtual const char* name() const = 0;
  virtual ResultSpec result_spec(uint32_t /*output*/) const { return {}; }
  // Frees what was saved for backward; a second backward then raises.
  virtual void release_saved() {}
  virtual int64_t saved_bytes() const { return 0; }

  std::vector<Edge> next;
  uint32_t num_outputs = 1;
  uint64_t sequence;             // order of creation: later ones run first
  std::shared_ptr<Hooks> hooks;  // a leaf's are shared with its Meta: nodes of leaves come and go
  std::unique_ptr<Trace> trace;

 private:
  Node* next_dying_ = nullptr;  // see Note [Freeing a graph]
};

// A tensor kept for backward, with the version it had.
class SavedTensor {
 public:
  SavedTensor() = default;
  // `is_output`: the node's own result, kept without its graph so that no cycle arises.
  SavedTensor(const TensorBase& t, bool is_output);
  // Raises when it was modified since; `owner` is the node for its own outputs.
  TensorBase unpack(const Node* owner, const char* op_name, uint32_t output = 0) const;
  bool defined() const { return data_.defined() || packed_; }
  bool by_hooks() const { return packed_ != nullptr; }
  int64_t bytes() const { return data_.defined() ? static_cast<int64_t>(data_.nbytes()) : 0; }
  void reset() { *this = SavedTensor(); }

 private:
  TensorBase data_;
  std::shared_ptr<void> packed_;  // in the place of data_, by saved_tensors_hooks
  std::shared_ptr<SavedHooks> hooks_;
  Edge edge_;
  uint32_t version_ = 0;
  bool is_output_ = false;
  bool is_leaf_ = false;
};

// Does backward of this call read argument `i`?
bool saves_argument(const Op& op, Args args, size_t i);

// The call of an operator with a gradient in its record.
class OpNode final : public Node {
 public:
  OpNode(const Op& op, Args args);
  Grads apply(Grads&& grads) override;
  const char* name() const override { return name_.c_str(); }
  ResultSpec result_spec(uint32_t output) const override {
    const Geometry& g = result_geometry_.empty() ? result_ : result_geometry_[output];
    return {&g.sizes, g.dtype, g.device};
  }
  void release_saved() override;
  int64_t saved_bytes() const override;
  // Called once the results are there: what backward has to know of them.
  void note_results(std::span<const TensorBase> results);

  bool in_place = false;  // of the in-place variant of the operator

 private:
  const Op& op_;
  std::string name_;
  // One for each tensor argument and each element of a list; so are the edges.
  struct Slot {
    Geometry geometry;
    SavedTensor saved;
    int arg;
  };
  void add_slot(const TensorBase& t, int arg, bool save);

  std::vector<Value> args_;  // tensors only as tags
  std::vector<Slot> slots_;
  std::vector<int> first_slot_;  // of each argument, and the end
  std::vector<Dims> ints_;       // owned copies of lists in args_
  std::vector<std::vector<double>> floats_;
  std::vector<std::string> strings_;
  std::vector<SavedTensor> results_;       // empty where none is saved
  std::vector<Geometry> result_geometry_;  // of operators with several results
  Geometry result_;                        // of operators with one result
  bool saves_ = false;                     // something that its backward reads
  bool released_ = false;
};

class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(const TensorBase& leaf);
  ~AccumulateGrad() override;
  Grads apply(Grads&& grads) override;
  const char* name() const override { return "AccumulateGrad"; }
  // The leaf when the node was made: assigning to `leaf.data` does not change it.
  ResultSpec result_spec(uint32_t) const override {
    return {&geometry_.sizes, geometry_.dtype, geometry_.device};
  }
  // Returns true if the leaf still has the geometry that the node was made for.
  bool fits_leaf() const;
  const TensorBase& leaf() const { return leaf_; }

 private:
  TensorBase taken_over(TensorBase grad) const;

  TensorBase leaf_;
  Geometry geometry_;
};

struct ViewStep;
// The last step of a chain of views and which of its results is meant; without a step, the base.
struct ViewLink {
  Ref<ViewStep> step;
  int output = 0;
};

// A call of a view operator, replayed on another tensor of the base's geometry. Immutable, and
// shared by all results of the call and all views made from them. Parents are freed in a loop.
struct ViewStep final : RefCounted {
  ~ViewStep();

  const Op* op = nullptr;
  std::vector<Value> args;  // argument op->self_index is the tensor viewed
  std::vector<Dims> ints;   // storage of the lists in args
  ViewLink parent;
  int64_t replay_cost = 0;  // results made by replaying the chain up to this step
};

struct Meta final : AutogradMeta {
  TensorBase grad;
  std::shared_ptr<TensorBase> retained;  // of a result whose gradient is kept; in the place of grad
  Edge grad_fn;                          // node null for leaves
  AccumulateGrad* accumulator = nullptr;  // borrowed; the node clears it when it dies
  std::shared_ptr<Hooks> leaf_hooks;
  // Views: base without its own base, the steps from it, and the version grad_fn was made for.
  TensorBase base;
  ViewLink steps;
  uint32_t view_version = 0;
  // The layout of the base for which the steps hold.
  Dims base_sizes;
  Dims base_strides;
  int64_t base_offset = 0;

  bool base_requires_grad() const override;
  TensorBase& grad_slot() { return retained ? *retained : grad; }
};

// The hooks of a tensor's gradient, made where there are none, and which result of its node it is.
std::shared_ptr<Hooks> hooks_of(const TensorBase& t, uint32_t* output);

// x.retain_grad(): a result keeps its gradient too.
void retain_grad(const TensorBase& t);

Meta& meta_of(const TensorBase& t);  // made on demand
Meta* try_meta(const TensorBase& t);
bool is_leaf(const TensorBase& t);
// Where the gradient of `t` goes; regenerates the graph of a view whose base was written.
Edge gradient_edge(const TensorBase& t);
Ref<Node> grad_fn(const TensorBase& t);
void set_history(const TensorBase& t, Ref<Node> node, uint32_t output);
void set_requires_grad(const TensorBase& t, bool value);

// How a view is made again from a tensor with the layout of its base: by a single _as_strided where
// that is the same and cheaper, else by the steps.
struct ViewRecipe {
  ViewRecipe(const TensorBase& view, const Meta& meta);
  TensorBase apply(const TensorBase& base) const;

  ViewLink steps;
  bool by_strides = false;
  Dims sizes;
  Dims strides;
  Dims base_strides;
  int64_t offset = 0;  // from the first element of the base
};
// Notes that `views` are the results of this call on `parent`.
void track_views(std::span<const TensorBase> views, const TensorBase& parent, const Op& op,
                 Args args);
// The tensor itself has become a view of what it was, by this call; `node` where it is recorded.
void note_inplace_view(const TensorBase& t, const Op& op, Args args, Ref<Node> node);
// An in-place write of `t` by `node`; a view's write is passed on to its base.
void rebase_history(const TensorBase& t, Ref<Node> node);

bool grad_enabled();
void set_grad_enabled(bool on);
class GradMode {
 public:
  explicit GradMode(bool on) : before_(grad_enabled()) { set_grad_enabled(on); }
  ~GradMode() { set_grad_enabled(before_); }
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  bool before_;
};

// Returns true if a gradient of shape `sizes` can be summed to `shape`: broadcasting `shape` gives
// `sizes`.
bool is_summable_to(const Dims& sizes, const Dims& shape);
// Sums `grad` over what broadcasting added, converts it to `dtype` and moves it to `device`.
TensorBase fit_gradient(TensorBase grad, const Dims& shape, DType dtype, Device device);

// Called by nodes that hooks.h tracks.
void start_tracking(const Node* node);
void stop_tracking(const Node* node);

// The engine. `inputs` empty: accumulate into leaves; else return the gradients of the inputs.
Grads run_backward(std::span<const TensorBase> roots, std::span<const TensorBase> root_grads,
                   bool retain_graph, bool create_graph, std::span<const TensorBase> inputs,
                   bool allow_unused);
// Like run_backward without inputs, but only the gradients of `inputs` are accumulated.
void run_backward_into(std::span<const TensorBase> roots, std::span<const TensorBase> root_grads,
                       bool retain_graph, bool create_graph, std::span<const TensorBase> inputs);

}  // namespace tessera::autograd
