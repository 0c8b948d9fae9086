// The way of a call: autocast, rules, deferral or backend, autograd.
#include "tessera/amp/autocast.h"
#include "tessera/autograd/node.h"
#include "tessera/call/batch_writes.h"
#include "tessera/call/mismatch.h"
#include "tessera/call/observed.h"
#include "tessera/call/overlap.h"
#include "tessera/call/pointwise.h"
#include "tessera/fuse/stream.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/tensor/batch_scope.h"

namespace tessera {

namespace {

using autograd::GradMode;
using autograd::OpNode;

bool any_requires_grad(Args args) {
  if (!autograd::grad_enabled()) return false;
  for (const Value& v : args) {
    if (v.is_tensor()) {
      if (v.tensor->requires_grad()) return true;
    } else if (v.tag == Value::Tag::kTensors) {
      for (const TensorBase& t : v.tensors)
        if (t.defined() && t.requires_grad()) return true;
    }
  }
  return false;
}

bool wants_gradient(const Op& op, Args args) { return op.has_gradient && any_requires_grad(args); }

Outputs compute(const Op& op, Args args, bool gradient) {
  if (op.kind == Kind::kPointwise) return call_pointwise(op, args, Target::kFresh, TensorBase());
  if (op.record->check) op.record->check(Call{op, args});
  if (!gradient || op.kind == Kind::kView) return op.record->run(Call{op, args});
  GradMode off(false);  // the record's own gradient stands for what it is made of
  return op.record->run(Call{op, args});
}

void check_inference(const TensorBase& self) {
  if (self.impl()->inference != TensorImpl::Inference::kInference) [[likely]]
    return;
  TS_CHECK(inference_mode(),
           "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a "
           "clone to get a normal tensor before doing inplace update.See "
           "https://github.com/pytorch/rfcs/pull/17 for more details.");
}

void check_inplace_leaf(const TensorBase& self) {
  check_inference(self);
  if (!autograd::grad_enabled() || !self.requires_grad()) return;
  TS_CHECK(!autograd::is_leaf(self),
           "a leaf Variable that requires grad is being used in an in-place operation.");
  autograd::Meta* m = autograd::try_meta(self);
  TS_CHECK(!m || !m->base.defined() || !m->base.requires_grad() || !autograd::is_leaf(m->base),
           "a view of a leaf Variable that requires grad is being used in an in-place operation.");
}

// An operator that is in-place by itself: copy_, fill_, uniform_.
Outputs run_in_place(const Op& op, Args args, bool gradient) {
  const TensorBase& self = *args[static_cast<size_t>(op.self_index)].tensor;
  check_inplace_leaf(self);
  check_writable(op, self);
  gradient = gradient && is_differentiable(self.dtype());
  Ref<OpNode> node;
  if (gradient) node = Ref<OpNode>::adopt(new OpNode(op, args));
  {
    GradMode off(false);
    op.record->run(Call{op, args});
  }
  if (gradient) {
    autograd::rebase_history(self, Ref<autograd::Node>::share(node.get()));
    node->note_results({&self, 1});
  }
  return self;
}

void set_histories(Ref<OpNode> node, Outputs& out) {
  for (int i = 0; i < out.size(); ++i)
    if (out[i].defined() && is_differentiable(out[i].dtype()))
      autograd::set_history(out[i], Ref<autograd::Node>::share(node.get()),
                            static_cast<uint32_t>(i));
  node->note_results(out.span());
}

Outputs dispatch_casted(const Op& op, Args args) {
  bool gradient = wants_gradient(op, args);
  if (op.kind == Kind::kView) {
    const TensorBase& self = *args[static_cast<size_t>(op.self_index)].tensor;
    Outputs out;
    {
      GradMode off(false);
      out = op.record->run(Call{op, args});
    }
    if (out.size() == 1 && out[0].is_same(self)) return out;
    if (autograd::grad_enabled() && out.size() > 0)
      autograd::track_views(out.span(), self, op, args);
    if (gradient && out.size() > 0) set_histories(Ref<OpNode>::adopt(new OpNode(op, args)), out);
    return out;
  }
  if (op.writes_self) return run_in_place(op, args, gradient);
  if (!gradient) return compute(op, args, false);
  auto node = Ref<OpNode>::adopt(new OpNode(op, args));
  Outputs out = compute(op, args, true);
  set_histories(std::move(node), out);
  return out;
}

// The node of a write into self. What it saves of self is the value before the write.
Ref<OpNode> node_of_write(const Op& op, Args args, const TensorBase& self) {
  size_t at = static_cast<size_t>(op.self_index);
  TensorBase before;
  std::vector<Value> kept(args.begin(), args.end());
  if (autograd::saves_argument(op, args, at)) {
    GradMode off(false);
    before = op::clone(self);
  }
  if (before.defined()) {
    if (self.requires_grad()) {
      autograd::Edge e = autograd::gradient_edge(self);
      autograd::set_history(before, e.node, e.output);
    }
    kept[at] = Value(before);
  }
  auto node = Ref<OpNode>::adopt(new OpNode(op, kept));
  node->in_place = true;
  return node;
}

// A write whose result does not change with what was there: comparisons in place.
class ConstantWrite final : public autograd::Node {
 public:
  explicit ConstantWrite(const TensorBase& self)
      : sizes_(self.sizes()), dtype_(self.dtype()), device_(self.device()) {
    next.push_back(autograd::gradient_edge(self));
  }
  autograd::Grads apply(autograd::Grads&& grads) override {
    return {grads[0].defined() ? op::zeros_like(grads[0]) : TensorBase()};
  }
  const char* name() const override { return "ConstantWriteBackward0"; }
  autograd::ResultSpec result_spec(uint32_t) const override { return {&sizes_, dtype_, device_}; }

 private:
  Dims sizes_;
  DType dtype_;
  Device device_;
};

// Must what self was computed from be forgotten, because an operator without a gradient writes it?
Ref<autograd::Node> cut_by_write(const TensorBase& self) {
  if (!autograd::grad_enabled() || !self.requires_grad()) return {};
  return Ref<autograd::Node>::adopt(new ConstantWrite(self));
}

// `write` changes the memory of self and moves its version.
template <class F>
TensorBase write_in_place(const Op& op, Args args, const TensorBase& self, F&& write) {
  const bool gradient = wants_gradient(op, args) && is_differentiable(self.dtype());
  Ref<OpNode> node;
  Ref<autograd::Node> cut;
  if (gradient)
    node = node_of_write(op, args, self);
  else
    cut = cut_by_write(self);
  write();
  if (gradient) {
    autograd::rebase_history(self, Ref<autograd::Node>::share(node.get()));
    node->note_results({&self, 1});
  } else if (cut) {
    autograd::rebase_history(self, std::move(cut));
  }
  return self;
}

// `transpose_`: the tensor itself takes the geometry of the view.
TensorBase inplace_view(const Op& op, Args args, const TensorBase& self) {
  Ref<OpNode> node;
  if (wants_gradient(op, args)) node = Ref<OpNode>::adopt(new OpNode(op, args));
  TensorBase view;
  {
    GradMode off(false);
    view = op.record->run(Call{op, args}).take();
  }
  set_geometry(self, view.sizes(), view.strides(), view.storage_offset());
  count_write(self);
  if (node) node->note_results({&self, 1});
  autograd::note_inplace_view(self, op, args, Ref<autograd::Node>::share(node.get()));
  return self;
}

bool reads_tensors(Args args) {
  for (const Value& v : args)
    if (v.is_tensor() || v.tag == Value::Tag::kTensors) return true;
  return false;
}

// Is the shape of the result one of the arguments? That of arange follows from its numbers.
bool names_shape(const Op& op) {
  for (const ArgSpec& arg : op.args)
    if (arg.type == ArgSpec::Type::kInts) return true;
  return op.record->random;
}

Outputs dispatch_unobserved(const Op& op, Args args) {
  if (amp::any_autocast()) [[unlikely]] {
    amp::Casts casts(op, args);
    return dispatch_casted(op, casts.args());
  }
  return dispatch_casted(op, args);
}

TensorBase inplace_unobserved(const Op& op, Args args) {
  const TensorBase& self = *args[static_cast<size_t>(op.self_index)].tensor;
  check_inplace_leaf(self);
  if (op.kind == Kind::kPointwise)
    return write_in_place(op, args, self,
                          [&] { call_pointwise(op, args, Target::kInplace, self); });
  if (op.record->updates_self) {
    check_writable(op, self);
    return write_in_place(op, args, self, [&] {
      GradMode off(false);
      op.record->run(Call{op, args, &self});
      count_write(self);
    });
  }
  if (op.kind == Kind::kView) return inplace_view(op, args, self);
  // Everything else: computed beside, then written. Of a copy, where gradients may want to know
  // what self was before.
  std::vector<Value> kept(args.begin(), args.end());
  TensorBase before;
  if (any_requires_grad(args)) {
    before = op::clone(self);
    kept[static_cast<size_t>(op.self_index)] = Value(before);
  }
  TensorBase result = dispatch(op, kept).take();
  if (result.requires_grad())
    if (auto* node = dynamic_cast<OpNode*>(autograd::grad_fn(result).get())) node->in_place = true;
  Ref<autograd::Node> cut = result.requires_grad() ? Ref<autograd::Node>() : cut_by_write(self);
  TS_CHECK(result.sizes() == self.sizes(), "output with shape ", self.sizes(),
           " doesn't match the broadcast shape ", result.sizes());
  check_result_fits(op, result.dtype(), self.dtype());
  check_writable(op, self);
  {
    GradMode off(false);
    copy_into(self, result, false);
  }
  if (result.requires_grad())
    autograd::rebase_history(self, autograd::grad_fn(result));
  else if (cut)
    autograd::rebase_history(self, std::move(cut));
  return self;
}

Outputs dispatch_in_batch(const Op& op, Args args) {
  if (op.writes_self) check_batch_write(op, args);
  std::optional<ObservedCall> call;
  if (profile::recording()) call.emplace(profile::Kind::kOperator, op, args);
  ArgumentVersions versions(op, args);
  Outputs out = dispatch_unobserved(op, args);
  versions.check();
  note_batch_results(args, out.span());
  return out;
}

void out_unobserved(const Op& op, Args args, std::span<const TensorBase> outs) {
  bool gradient = wants_gradient(op, args);
  for (const TensorBase& out : outs) {
    check_inference(out);
    gradient |= autograd::grad_enabled() && out.requires_grad();
  }
  TS_CHECK(
      !gradient, op.name,
      "(): functions with out=... arguments don't support automatic differentiation, but one of "
      "the arguments requires grad.");
  if (op.kind == Kind::kPointwise) {
    call_pointwise(op, args, Target::kOut, outs[0]);
    return;
  }
  // What is not said of dtype and device is read off the output, as PyTorch does; what is said must
  // be true of it.
  const bool creates = op.self_index < 0 && !reads_tensors(args);
  std::vector<Value> said(args.begin(), args.end());
  for (size_t i = 0; i < said.size(); ++i) {
    if (said[i].tag == Value::Tag::kDType)
      TS_CHECK(said[i].dtype == outs[0].dtype(), "dtype ", said[i].dtype,
               " does not match dtype of out parameter (", outs[0].dtype(), ")");
    if (said[i].tag == Value::Tag::kDevice)
      TS_CHECK(said[i].device == outs[0].device(), "device ", said[i].device,
               " does not match device of out parameter (", outs[0].device(), ")");
    if (!said[i].is_none()) continue;
    if (op.args[i].type == ArgSpec::Type::kDType && !op.record->exact_out)
      said[i] = Value(outs[0].dtype());
    if (op.args[i].type == ArgSpec::Type::kDevice) said[i] = Value(outs[0].device());
  }
  Outputs results = dispatch(op, said);
  TS_CHECK(static_cast<size_t>(results.size()) == outs.size(), op.name, "(): out= has ",
           outs.size(), " tensors and there are ", results.size(), " results");
  // Of several results with indices among them each goes into its own dtype.
  bool exact = false;
  for (int i = 0; outs.size() > 1 && i < results.size(); ++i)
    exact |= is_integral(results[i].dtype(), true);
  for (size_t i = 0; i < outs.size(); ++i) {
    const TensorBase& out = outs[i];
    const TensorBase& result = results[static_cast<int>(i)];
    TS_CHECK(!exact || result.dtype() == out.dtype(), "Expected out tensor to have dtype ",
             dtype_cpp_name(result.dtype()), ", but got ", dtype_cpp_name(out.dtype()), " instead");
    check_result_fits(op, result.dtype(), out.dtype());
    if (!(result.device() == out.device()))
      throw DeviceMismatch(op.name, {"the result", result}, {"out", out});
    if (creates && !names_shape(op) && result.dim() == 1 && out.numel() == result.numel()) {
      // A number of elements was asked for, and the output has it: its shape is its own.
      check_writable(op, out);
      copy_into(out, alias(result, out.sizes(), contiguous_strides(out.sizes()), 0), false);
      continue;
    }
    resize_output(out, result.sizes());
    check_writable(op, out);
    copy_into(out, result, false);
  }
}

}  // namespace

Outputs dispatch(const Op& op, Args args) {
  if (any_batch_scope()) [[unlikely]]
    return dispatch_in_batch(op, args);
  if (!profile::recording()) [[likely]]
    return dispatch_unobserved(op, args);
  ObservedCall call(profile::Kind::kOperator, op, args);
  return dispatch_unobserved(op, args);
}

TensorBase dispatch_inplace(const Op& op, Args args) {
  if (any_batch_scope()) [[unlikely]]
    check_batch_write(op, args);
  if (!profile::recording()) [[likely]]
    return inplace_unobserved(op, args);
  ObservedCall call(profile::Kind::kOperatorInplace, op, args);
  return inplace_unobserved(op, args);
}

void dispatch_out(const Op& op, Args args, std::span<const TensorBase> outs) {
  if (any_batch_scope()) [[unlikely]]
    check_batch_out(op, outs);
  if (!profile::recording()) [[likely]]
    return out_unobserved(op, args, outs);
  ObservedCall call(profile::Kind::kOperator, op, args);
  out_unobserved(op, args, outs);
}

TensorBase target(const Call& call) {
  return call.inplace ? *call.inplace : op::clone(call.tensor(call.op.self_index));
}

}  // namespace tessera
