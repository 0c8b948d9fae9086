#include "tessera/call/batch_writes.h"

#include <algorithm>

#include "tessera/autograd/node.h"
#include "tessera/gen/copy.h"
#include "tessera/ops/call.h"
#include "tessera/tensor/batch_scope.h"

namespace tessera {

namespace {

template <class F>
bool any_tensor(Args args, F&& has) {
  for (const Value& v : args) {
    if (v.is_tensor() && has(*v.tensor)) return true;
    if (v.tag == Value::Tag::kTensors)
      for (const TensorBase& t : v.tensors)
        if (t.defined() && has(t)) return true;
  }
  return false;
}

void refuse_write(const Op& op, const TensorBase& self, int64_t size) {
  std::string name(op.name);
  if (name.back() == '_') name.pop_back();
  if (name == "add") {
    Dims shape{size};
    for (int64_t n : self.sizes()) shape.push_back(n);
    raise(ErrorKind::kRuntime,
          cat("output with shape ", self.sizes(), " doesn't match the broadcast shape ", shape));
  }
  const bool arithmetic = name == "sub" || name == "mul" || name == "div" || name == "copy";
  const std::string what = arithmetic ? "inplace arithmetic" : name + "_";
  raise(ErrorKind::kRuntime,
        cat("vmap: ", what,
            "(self, *extra_args) is not possible because there exists a Tensor `other` in "
            "extra_args that has more elements than `self`. This happened due to `other` being "
            "vmapped over but `self` not being vmapped over in a vmap. Please try to use "
            "out-of-place operators instead of ",
            what,
            ". If said operator is being called inside the PyTorch framework, please file a bug "
            "report instead."));
}

void refuse_captured(const Op& op, Args args) {
  std::string name(op.name);
  if (name.back() != '_') name += '_';
  if (op.kind == Kind::kPointwise && args.size() > 1) name += ".Tensor";
  raise(ErrorKind::kRuntime,
        cat("During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to "
            "call in-place operation (aten::",
            name,
            ") that would mutate a captured Tensor. This is not supported; please rewrite the "
            "function being transformed to explicitly accept the mutated Tensor(s) as inputs."));
}

}  // namespace

void check_batch_write(const Op& op, Args args) {
  const TensorBase& self = *args[static_cast<size_t>(op.self_index)].tensor;
  for (BatchScope* scope = BatchScope::innermost(); scope; scope = scope->outer()) {
    const bool batched =
        any_tensor(args, [&](const TensorBase& t) { return scope->is_batched(t); });
    if (!scope->is_outside(self)) {
      if (batched) scope->add_batched(self);
      continue;
    }
    if (scope->size == 0) refuse_captured(op, args);
    if (batched) refuse_write(op, self, scope->size);
    TS_CHECK(!op.record->random || !scope->different,
             "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will "
             "appear like same randomness. If this is necessary for your usage, please file an "
             "issue with functorch.");
    if (scope->size == 1) continue;
    TS_CHECK_IMPLEMENTED(op.kind != Kind::kView, "vmap: ", op.name,
                         "_() of a tensor that is not mapped over is not implemented");
    autograd::GradMode off(false);
    TensorBase all = alias(self, self.sizes(), self.strides(), self.storage_offset());
    scope->written.push_back({all, op::clone(all)});
  }
}

void check_batch_out(const Op& op, std::span<const TensorBase> outs) {
  for (BatchScope* scope = BatchScope::innermost(); scope; scope = scope->outer())
    for (const TensorBase& out : outs)
      TS_CHECK(scope->size == 0 || !scope->is_outside(out),
               "Batching rule not implemented for aten::", op.name,
               ".out; the fallback path doesn't work on out= or view ops.");
}

ArgumentVersions::ArgumentVersions(const Op& op, Args args) : op_(op) {
  for (BatchScope* scope = BatchScope::innermost(); scope; scope = scope->outer()) {
    if (scope->size == 0) continue;
    if (!any_tensor(args, [&](const TensorBase& t) { return scope->is_batched(t); })) continue;
    for (size_t i = 0; i < args.size(); ++i) {
      const bool is_self = op.writes_self && static_cast<int>(i) == op.self_index;
      if (args[i].is_tensor() && !is_self && scope->is_outside(*args[i].tensor))
        seen_.push_back({*args[i].tensor, version_of(*args[i].tensor)});
    }
  }
}

void ArgumentVersions::check() const {
  for (const Argument& s : seen_)
    TS_CHECK(version_of(s.tensor) == s.version, "vmap: ", op_.name,
             "() got a batched tensor as input while an argument of shape ", s.tensor.sizes(),
             ", which it updates in place, was not batched. Batch normalization can be given "
             "track_running_stats=False or eval mode.");
}

void note_batch_results(Args args, std::span<const TensorBase> results) {
  for (BatchScope* scope = BatchScope::innermost(); scope; scope = scope->outer()) {
    if (scope->size == 0) continue;
    if (!any_tensor(args, [&](const TensorBase& t) { return scope->is_batched(t); })) continue;
    for (const TensorBase& t : results)
      if (t.defined() && !scope->is_outside(t)) scope->add_batched(t);
  }
}

void begin_next_example() {
  BatchScope* scope = BatchScope::innermost();
  autograd::GradMode off(false);
  // The first write of a tensor knows its content before all of them.
  std::for_each(scope->written.rbegin(), scope->written.rend(),
                [](const BatchScope::Written& w) { copy_into(w.tensor, w.before, false); });
  scope->written.clear();
  scope->begin_example();
}

}  // namespace tessera
