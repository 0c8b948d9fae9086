// Autograd state of a tensor: leaf or result, the base and steps of a view, gradient.
#include "tessera/autograd/copy_slices.h"
#include "tessera/autograd/node.h"
#include "tessera/gen/view.h"
#include "tessera/ops/call.h"

namespace tessera::autograd {

namespace {
thread_local bool t_grad_enabled = true;

// Longer chains of views are replayed by one _as_strided.
constexpr int64_t kMaxReplayCost = 16;

// Makes `edge` the history of the tensor. The gradient kept by retain_grad() is that of the
// tensor's newest value; hooks stay with the value they were registered for.
void set_edge(Meta& m, Edge edge) {
  if (m.retained && m.grad_fn.node != edge.node) {
    const bool moves =
        m.grad_fn.node && m.grad_fn.node->hooks &&
        std::erase_if(m.grad_fn.node->hooks->retained,
                      [&](const Hooks::Retained& r) { return r.grad == m.retained; }) > 0;
    if (moves && edge.node) {
      if (!edge.node->hooks) edge.node->hooks = std::make_shared<Hooks>();
      edge.node->hooks->retained.push_back({edge.output, m.retained});
    }
  }
  m.grad_fn = std::move(edge);
}
}  // namespace

bool grad_enabled() { return t_grad_enabled; }
void set_grad_enabled(bool on) { t_grad_enabled = on; }

Meta* try_meta(const TensorBase& t) { return static_cast<Meta*>(t.impl()->autograd.get()); }

Meta& meta_of(const TensorBase& t) {
  auto& slot = t.impl()->autograd;
  if (!slot) slot = std::make_unique<Meta>();
  return static_cast<Meta&>(*slot);
}

bool is_leaf(const TensorBase& t) {
  Meta* m = try_meta(t);
  return !m || (!m->grad_fn.node && !m->base_requires_grad());
}

bool Meta::base_requires_grad() const {
  return base.defined() && base.requires_grad() && !is_leaf(base);
}

void set_requires_grad(const TensorBase& t, bool value) {
  TS_CHECK(!value || is_differentiable(t.dtype()),
           "only Tensors of floating point and complex dtype can require gradients");
  TS_CHECK(!value || t.impl()->inference != TensorImpl::Inference::kInference || inference_mode(),
           "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  if (!value && !is_leaf(t))
    raise(
        ErrorKind::kRuntime,
        "you can only change requires_grad flags of leaf variables. If you want to use a computed "
        "variable in a subgraph that doesn't require differentiation use var_no_grad = "
        "var.detach().");
  if (is_leaf(t)) t.impl()->requires_grad = value;
}

void retain_grad(const TensorBase& t) {
  TS_CHECK(t.requires_grad(), "can't retain_grad on Tensor that has requires_grad=False");
  if (is_leaf(t)) return;
  Meta& m = meta_of(t);
  if (m.retained) return;
  m.retained = std::make_shared<TensorBase>(std::move(m.grad));
  uint32_t output;
  auto hooks = hooks_of(t, &output);
  hooks->retained.push_back({output, m.retained});
}

std::shared_ptr<Hooks> hooks_of(const TensorBase& t, uint32_t* output) {
  TS_CHECK(t.requires_grad(), "cannot register a hook on a tensor that doesn't require gradient");
  Edge e = gradient_edge(t);
  *output = e.output;
  if (!e.node->hooks) e.node->hooks = std::make_shared<Hooks>();
  if (is_leaf(t)) meta_of(t).leaf_hooks = e.node->hooks;
  return e.node->hooks;
}

ViewStep::~ViewStep() {
  Ref<ViewStep> up = std::move(parent.step);
  while (up && up->use_count() == 1) {
    Ref<ViewStep> next = std::move(up->parent.step);
    up = std::move(next);
  }
}

static TensorBase replay(const ViewLink& last, const TensorBase& base) {
  std::vector<const ViewLink*> chain;
  for (const ViewLink* l = &last; l->step; l = &l->step->parent) chain.push_back(l);
  TensorBase t = base;
  for (size_t i = chain.size(); i-- > 0;) {
    const ViewStep& step = *chain[i]->step;
    std::vector<Value> args = step.args;
    size_t list = 0;
    for (Value& v : args)
      if (v.tag == Value::Tag::kInts) v = Value(step.ints[list++]);
    args[static_cast<size_t>(step.op->self_index)] = Value(t);
    TensorBase next = dispatch(*step.op, args)[chain[i]->output];
    t = next;
  }
  return t;
}

static Ref<ViewStep> view_step(const Op& op, Args args, ViewLink parent, size_t results) {
  auto step = Ref<ViewStep>::make();
  step->op = &op;
  step->args.assign(args.begin(), args.end());
  for (Value& v : step->args) {
    if (v.tag == Value::Tag::kInts) {
      step->ints.emplace_back(v.ints);
      v.ints = {};
    }
    if (v.tag == Value::Tag::kTensor) v.tensor = nullptr;
  }
  step->replay_cost = static_cast<int64_t>(results);
  if (parent.step) step->replay_cost += parent.step->replay_cost;
  step->parent = std::move(parent);
  return step;
}

void track_views(std::span<const TensorBase> views, const TensorBase& parent, const Op& op,
                 Args args) {
  Meta* p = parent.impl()->is_view ? try_meta(parent) : nullptr;
  if (p && !p->base.defined()) p = nullptr;
  Ref<ViewStep> step = view_step(op, args, p ? p->steps : ViewLink{}, views.size());
  for (size_t i = 0; i < views.size(); ++i) {
    Meta& m = meta_of(views[i]);
    m.base = p ? p->base : parent;
    m.base_sizes = p ? p->base_sizes : parent.sizes();
    m.base_strides = p ? p->base_strides : parent.strides();
    m.base_offset = p ? p->base_offset : parent.storage_offset();
    m.steps = {step, static_cast<int>(i)};
    m.view_version = version_of(views[i]);
    views[i].impl()->is_view = true;
  }
}

ViewRecipe::ViewRecipe(const TensorBase& view, const Meta& meta) : steps(meta.steps) {
  const TensorBase& base = meta.base;
  by_strides = steps.step->replay_cost > kMaxReplayCost && view.dtype() == base.dtype() &&
               &view.storage() == &base.storage() && base.storage_offset() == meta.base_offset &&
               !has_internal_overlap(base.sizes(), base.strides());
  if (!by_strides) return;
  sizes = view.sizes();
  strides = view.strides();
  base_strides = meta.base_strides;
  offset = view.storage_offset() - meta.base_offset;
}

TensorBase ViewRecipe::apply(const TensorBase& base) const {
  if (!by_strides) return replay(steps, base);
  return op::_as_strided(base, sizes.span(), strides.span(), offset, base_strides.span());
}

void note_inplace_view(const TensorBase& t, const Op& op, Args args, Ref<Node> node) {
  Meta* m = try_meta(t);
  if (m && m->base.defined()) {
    m->steps = {view_step(op, args, std::move(m->steps), 1), 0};
    m->view_version = version_of(t);
  }
  if (!node) return;
  // A gradient kept by retain_grad() stays with the value before, which had its shape.
  meta_of(t).grad_fn = {std::move(node), 0};
  t.impl()->requires_grad = true;
}

void set_history(const TensorBase& t, Ref<Node> node, uint32_t output) {
  set_edge(meta_of(t), {std::move(node), output});
  t.impl()->requires_grad = true;
}

// The steps of a view hold for the geometry that its base had.
static void check_base(const Meta& view) {
  TS_CHECK(view.base.sizes() == view.base_sizes && view.base.strides() == view.base_strides,
           "a view was used after its base had been transposed or resized in place: make the view "
           "again.");
}

// A view whose base was written in place since has a graph of its own no longer: its values now
// come from the base's new history, through the same steps.
static void refresh_view(const TensorBase& t) {
  Meta* m = try_meta(t);
  if (!m || !m->base.defined()) return;
  uint32_t version = version_of(t);
  if (version == m->view_version) return;
  if (m->base.requires_grad() && !is_leaf(m->base)) {
    check_base(*m);
    GradMode on(true);
    TensorBase again = ViewRecipe(t, *m).apply(m->base);
    TS_CHECK(again.sizes() == t.sizes(), "a view of shape ", again.sizes(),
             " was used after it had been resized in place to ", t.sizes(),
             " and its base had been written: make the view again.");
    if (Meta* made = try_meta(again); made && made->grad_fn.node) {
      set_edge(*m, made->grad_fn);
      t.impl()->requires_grad = true;
    }
  }
  m->view_version = version;
}

Ref<Node> grad_fn(const TensorBase& t) {
  if (t.impl()->is_view) refresh_view(t);
  Meta* m = try_meta(t);
  return m ? m->grad_fn.node : nullptr;
}

Edge gradient_edge(const TensorBase& t) {
  if (t.impl()->is_view) refresh_view(t);
  if (!t.requires_grad()) return {};
  Meta& m = meta_of(t);
  if (m.grad_fn.node) return m.grad_fn;
  if (m.accumulator && m.accumulator->fits_leaf()) return {Ref<Node>::share(m.accumulator), 0};
  auto node = Ref<Node>::adopt(new AccumulateGrad(t));
  return {std::move(node), 0};
}

void rebase_history(const TensorBase& t, Ref<Node> node) {
  Meta& m = meta_of(t);
  if (!m.base.defined()) {
    set_history(t, std::move(node), 0);
    return;
  }
  // The write goes through a view: the base's history becomes "the base, with this piece replaced".
  check_base(m);
  TensorBase base = m.base;
  auto slices = Ref<Node>::adopt(new CopySlices(base, ViewRecipe(t, m), std::move(node)));
  set_history(base, std::move(slices), 0);
  m.view_version = version_of(t) - 1;
  t.impl()->requires_grad = true;
  refresh_view(t);
}

}  // namespace tessera::autograd
