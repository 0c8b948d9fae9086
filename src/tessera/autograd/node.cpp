#include "tessera/autograd/node.h"

#include <algorithm>
#include <limits>

#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/view.h"
#include "tessera/ops/modes.h"
#include "tessera/profile/record.h"

namespace tessera {
namespace autograd {

namespace {

std::atomic<uint64_t> g_sequence{0};

// Note [Freeing a graph]
// A chain of a million nodes must not free itself by recursion: nodes whose last edge is destroyed
// are linked into a list that the outermost destructor empties. The links are members of the nodes,
// since a destructor must not allocate.
thread_local bool t_is_freeing = false;
thread_local Node* t_dying = nullptr;

std::string backward_name(const std::string& op) {
  std::string out;
  bool upper = true;
  for (char c : op) {
    if (c == '_') {
      upper = true;
      continue;
    }
    out += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = false;
  }
  return out + "Backward0";
}

}  // namespace

Node::Node() : sequence(g_sequence.fetch_add(1, std::memory_order_relaxed)) {
  if (profile::recording()) [[unlikely]]
    if (profile::Scope* call = profile::current_scope())
      if (call->sequence < 0) call->sequence = static_cast<int64_t>(sequence);
  bool tracked = graphs_tracked();
  if (!tracked && !anomaly().enabled) [[likely]]
    return;
  trace = std::make_unique<Trace>();
  trace->source = SourceRef::capture(true);
  if (anomaly().enabled && describe_stack) trace->stack = describe_stack();
  trace->tracked = tracked;
  if (tracked) start_tracking(this);
}

Node::~Node() {
  if (trace && trace->tracked) stop_tracking(this);
  for (Edge& e : next) {
    Node* node = e.node.release();
    if (!node || !node->unref()) continue;
    node->next_dying_ = t_dying;
    t_dying = node;
  }
  if (t_is_freeing) return;
  t_is_freeing = true;
  while (Node* node = t_dying) {
    t_dying = node->next_dying_;
    delete node;
  }
  t_is_freeing = false;
}

SavedTensor::SavedTensor(const TensorBase& t, bool is_output) : is_output_(is_output) {
  version_ = version_of(t);
  is_leaf_ = !is_output && t.requires_grad() && is_leaf(t);
  if (const auto& hooks = current_saved_hooks()) {
    if (!is_output && t.requires_grad()) edge_ = gradient_edge(t);
    hooks_ = hooks;
    packed_ = hooks->pack(alias(t, t.sizes(), t.strides(), t.storage_offset()));
    return;
  }
  if (is_leaf_) {
    data_ = t;
    return;
  }
  // Without its graph: a tensor that is later written in place by something downstream of this node
  // would otherwise own itself.
  data_ = alias(t, t.sizes(), t.strides(), t.storage_offset());
  if (!is_output && t.requires_grad()) edge_ = gradient_edge(t);
}

TensorBase SavedTensor::unpack(const Node* owner, const char* op_name, uint32_t output) const {
  auto with_history = [&](TensorBase t) {
    if (is_output_)
      set_history(t, Ref<Node>::share(const_cast<Node*>(owner)), output);
    else if (edge_.node)
      set_history(t, edge_.node, edge_.output);
    return t;
  };
  if (packed_) {
    TensorBase t = hooks_->unpack(packed_);
    return with_history(alias(t, t.sizes(), t.strides(), t.storage_offset()));
  }
  uint32_t now = version_of(data_);
  TS_CHECK(
      now == version_,
      "one of the variables needed for gradient computation has been modified by an inplace "
      "operation: [",
      data_.dtype(), " ", data_.sizes(), "], which ", op_name, " saved, is at version ", now,
      "; expected version ", version_,
      " instead. Hint: enable anomaly detection to find the operation that failed to compute its "
      "gradient, with torch.autograd.set_detect_anomaly(True).");
  if (is_leaf_) return data_;
  return with_history(alias(data_, data_.sizes(), data_.strides(), data_.storage_offset()));
}

bool saves_argument(const Op& op, Args args, size_t i) {
  const ArgSpec& spec = op.args[i];
  if (!spec.saved || spec.saved_for < 0) return spec.saved;
  const Value& reader = args[static_cast<size_t>(spec.saved_for)];
  return reader.is_tensor() && reader.tensor->requires_grad();
}

}  // namespace autograd

TensorBase Backward::grad_of(int k) const {
  size_t at = static_cast<size_t>(k);
  if (result_grads[at].defined()) return result_grads[at];
  const Geometry& g = result_geometry[at];
  return op::zeros(g.sizes.span(), g.dtype, g.device);
}

// What was saved and what SavedTensor::unpack made of it are two ways to the memory; a leaf is
// handed out itself, and whoever has hooks may keep what they were given.
bool Backward::is_last_use(int i) const {
  const TensorBase& t = tensor(i);
  const Storage& s = t.storage();
  return !by_hooks && !graph_is_retained() && t.ref()->use_count() == 1 &&
         s.use_count() - s.pending_refs == 2 && !s.exposed && t.is_contiguous() &&
         s.nbytes == static_cast<size_t>(t.numel()) * itemsize(t.dtype());
}

namespace autograd {

OpNode::OpNode(const Op& op, Args args)
    : op_(op), name_(backward_name(op.name)), args_(args.begin(), args.end()) {
  size_t n = args.size();
  ints_.reserve(n);
  floats_.reserve(n);
  strings_.reserve(n);
  first_slot_.reserve(n + 1);
  for (size_t i = 0; i < n; ++i) {
    first_slot_.push_back(static_cast<int>(slots_.size()));
    int arg = static_cast<int>(i);
    Value& v = args_[i];
    saves_ |= saves_argument(op, args, i);
    switch (v.tag) {
      case Value::Tag::kInts:
        v = Value(ints_.emplace_back(v.ints));
        break;
      case Value::Tag::kFloats:
        v = Value(std::span<const double>(floats_.emplace_back(v.floats.begin(), v.floats.end())));
        break;
      case Value::Tag::kString:
        v = Value(std::string_view(strings_.emplace_back(v.string)));
        break;
      case Value::Tag::kTensor:
        add_slot(*v.tensor, arg, saves_argument(op, args, i));
        v.tensor = nullptr;
        break;
      case Value::Tag::kTensors:
        for (const TensorBase& t : v.tensors) add_slot(t, arg, op.args[i].saved);
        v.tensors = {};
        break;
      default:
        break;
    }
  }
  first_slot_.push_back(static_cast<int>(slots_.size()));
}

void OpNode::add_slot(const TensorBase& t, int arg, bool save) {
  Slot& slot = slots_.emplace_back();
  slot.arg = arg;
  Edge& edge = next.emplace_back();
  if (!t.defined()) return;
  const bool by_columns =
      t.dim() >= 2 && t.strides()[t.dim() - 2] == 1 && t.strides()[t.dim() - 1] > 1;
  slot.geometry = {t.sizes(), t.dtype(), t.device(), by_columns};
  if (save) {
    if (t.impl()->inference != TensorImpl::Inference::kNone) [[unlikely]]
      TS_CHECK(inference_mode(),
               "Inference tensors cannot be saved for backward. Please do not use Tensors created "
               "in inference mode in computation tracked by autograd. To work around this, you can "
               "make a clone to get a normal tensor and use it in autograd, or use "
               "`torch.no_grad()` instead of `torch.inference_mode()`.");
    slot.saved = SavedTensor(t, false);
  }
  if (is_differentiable(t.dtype())) edge = gradient_edge(t);
}

void OpNode::note_results(std::span<const TensorBase> results) {
  num_outputs = static_cast<uint32_t>(results.size());
  if (results.size() == 1 && results[0].defined())
    result_ = {results[0].sizes(), results[0].dtype(), results[0].device()};
  if (results.size() > 1)
    for (const TensorBase& t : results)
      result_geometry_.push_back(t.defined() ? Geometry{t.sizes(), t.dtype(), t.device()}
                                             : Geometry{});
  if (!op_.saved_results) return;
  saves_ = true;
  results_.resize(results.size());
  for (size_t i = 0; i < results.size(); ++i)
    if (op_.saved_results >> i & 1)
      results_[i] = SavedTensor(results[i], is_differentiable(results[i].dtype()));
}

void OpNode::release_saved() {
  released_ = saves_;  // a node that needs nothing can be gone through again
  for (Slot& s : slots_) s.saved.reset();
  for (SavedTensor& s : results_) s.reset();
}

int64_t OpNode::saved_bytes() const {
  int64_t total = 0;
  for (const Slot& s : slots_) total += s.saved.bytes();
  for (const SavedTensor& s : results_) total += s.bytes();
  return total;
}

// Backward reads a saved tensor as it was: what an unpack hook returned is converted to its dtype.
static TensorBase like_saved(TensorBase t, const Geometry& saved, const std::string& name) {
  TS_CHECK(t.sizes() == saved.sizes && t.device() == saved.device, name,
           ": the unpack hook returned a tensor of shape ", t.sizes(), " on ", t.device(),
           " for a saved tensor of shape ", saved.sizes, " on ", saved.device);
  return t.dtype() == saved.dtype ? t : op::_to_dtype(t, saved.dtype);
}

Grads OpNode::apply(Grads&& grads) {
  TS_CHECK(!released_,
           "Trying to backward through the graph a second time (or directly access saved tensors "
           "after they have already been freed). Saved intermediate values of the graph are freed "
           "when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to "
           "backward through the graph a second time or if you need to access saved tensors after "
           "calling backward. (in ",
           name_, ")");
  size_t n = slots_.size();
  if (std::none_of(grads.begin(), grads.end(), [](const auto& g) { return g.defined(); }))
    return Grads(n);  // hooks returned None
  std::vector<TensorBase> unpacked(n);
  std::vector<Geometry> geometry(n);
  std::unique_ptr<bool[]> wanted(new bool[n + 1]);
  bool by_hooks = false;
  for (size_t i = 0; i < n; ++i) {
    const SavedTensor& saved = slots_[i].saved;
    if (saved.defined()) unpacked[i] = saved.unpack(this, name_.c_str());
    if (saved.by_hooks()) {
      by_hooks = true;
      unpacked[i] = like_saved(std::move(unpacked[i]), slots_[i].geometry, name_);
    }
    geometry[i] = slots_[i].geometry;
    wanted[i] = static_cast<bool>(next[i].node);
  }
  std::vector<Value> args = args_;
  for (size_t i = 0; i < args.size(); ++i) {
    size_t at = static_cast<size_t>(first_slot_[i]);
    if (args[i].tag == Value::Tag::kTensor) {
      args[i].tensor = unpacked[at].defined() ? &unpacked[at] : nullptr;
    } else if (args[i].tag == Value::Tag::kTensors) {
      args[i].tensors = {unpacked.data() + at, static_cast<size_t>(first_slot_[i + 1]) - at};
    }
  }
  std::vector<TensorBase> results(std::max<size_t>(results_.size(), 1));
  for (size_t i = 0; i < results_.size(); ++i) {
    if (!results_[i].defined()) continue;
    results[i] = results_[i].unpack(this, name_.c_str(), static_cast<uint32_t>(i));
    if (results_[i].by_hooks())
      results[i] = like_saved(std::move(results[i]),
                              result_geometry_.empty() ? result_ : result_geometry_[i], name_);
  }
  std::vector<TensorBase> made(n);
  TensorBase first = grads[0];
  Backward b{first,       grads,    args,
             results[0],  results,  result_geometry_,
             first_slot_, geometry, {wanted.get(), n},
             made,        by_hooks, in_place};
  if (!first.defined()) first = b.grad_of(0);
  op_.record->backward(b);
  // The gradient of overwritten values is zero, not missing.
  if (op_.writes_self)
    if (size_t at = static_cast<size_t>(first_slot_[static_cast<size_t>(op_.self_index)]);
        wanted[at] && !made[at].defined())
      made[at] = op::zeros_like(first);
  Grads out(n);
  for (size_t e = 0; e < n; ++e) {
    const Geometry& g = slots_[e].geometry;
    if (next[e].node && made[e].defined())
      out[e] = fit_gradient(std::move(made[e]), g.sizes, g.dtype, g.device);
  }
  return out;
}

// One node a leaf, as long as some graph leads to it.
AccumulateGrad::AccumulateGrad(const TensorBase& leaf)
    : leaf_(leaf), geometry_{leaf.sizes(), leaf.dtype(), leaf.device()} {
  // As soon as its gradient is there, however long ago another graph made it.
  sequence = std::numeric_limits<uint64_t>::max();
  Meta& m = meta_of(leaf_);
  m.accumulator = this;
  hooks = m.leaf_hooks;
}
AccumulateGrad::~AccumulateGrad() {
  Meta& m = meta_of(leaf_);
  if (m.accumulator == this) m.accumulator = nullptr;
}

bool AccumulateGrad::fits_leaf() const {
  return geometry_.sizes == leaf_.sizes() && geometry_.dtype == leaf_.dtype() &&
         geometry_.device == leaf_.device();
}

Grads AccumulateGrad::apply(Grads&& grads) {
  if (!grads[0].defined()) return {};
  TensorBase& slot = meta_of(leaf_).grad_slot();
  TensorBase g = std::move(grads[0]);
  if (grad_enabled()) {
    slot = slot.defined() ? op::add(slot, g, Scalar(1)) : g;
  } else if (slot.defined()) {
    op::add_(slot, g, Scalar(1));
  } else {
    slot = taken_over(std::move(g));
  }
  return {};
}

// The gradient itself if nobody else holds it. One that others hold too, or that is laid out unlike
// the leaf (an expanded one repeats its elements), is copied, as the leaf is laid out.
TensorBase AccumulateGrad::taken_over(TensorBase g) const {
  if (g.strides() == leaf_.strides() && g.ref()->use_count() == 1) {
    if (!g.impl()->is_view) return g;
    // A view of all of something that only it holds: a transposed product.
    Meta* m = try_meta(g);
    Storage& s = g.storage();
    bool whole = s.nbytes == static_cast<size_t>(g.numel()) * itemsize(g.dtype());
    if (m && m->base.defined() && m->base.ref()->use_count() == 1 && whole &&
        s.use_count() - s.pending_refs == 2)
      return alias(g, g.sizes(), g.strides(), g.storage_offset());
  }
  if (leaf_.is_contiguous()) return op::clone(g, MemoryFormat::kContiguous);
  if (!is_dense(leaf_)) return op::clone(g);
  TensorBase copy = new_empty_strided(leaf_.sizes(), leaf_.strides(), g.dtype(), g.device());
  op::copy_(copy, g);
  return copy;
}

bool is_summable_to(const Dims& sizes, const Dims& shape) {
  if (sizes.ndim() < shape.ndim()) return false;
  size_t lead = sizes.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != sizes[lead + d] && shape[d] != 1) return false;
  return true;
}

TensorBase fit_gradient(TensorBase grad, const Dims& shape, DType dtype, Device device) {
  if (!(grad.sizes() == shape)) {
    Dims dims;
    int lead = grad.dim() - shape.ndim();
    TS_ASSERT(lead >= 0, "gradient of shape ", grad.sizes(), " for an input of shape ", shape);
    for (int d = 0; d < grad.dim(); ++d)
      if (d < lead || (shape[static_cast<size_t>(d - lead)] == 1 && grad.sizes()[d] != 1))
        dims.push_back(d);
    if (!dims.empty()) grad = op::sum(grad, dims.span(), true, std::nullopt);
    if (!(grad.sizes() == shape)) grad = op::reshape(grad, shape.span());
  }
  // Of a real argument only the real part of a complex gradient counts.
  if (grad.dtype() != dtype) grad = op::_to_dtype(grad, dtype);
  // A number from the CPU that joined tensors of a GPU: its gradient goes back to where it is.
  if (!(grad.device() == device)) grad = op::_to_device(grad, device);
  return grad;
}

}  // namespace autograd
}  // namespace tessera
