// What a tensor knows of its graph: leaf or result, view of what, gradient.
#include "tessera/autograd/copy_slices.h"
#include "tessera/autograd/node.h"
#include "tessera/ops/call.h"

namespace tessera::autograd {

namespace {
thread_local bool t_grad_enabled = true;
}

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

TensorBase replay(const std::vector<ViewStep>& steps, const TensorBase& base) {
  TensorBase t = base;
  for (const ViewStep& step : steps) {
    std::vector<Value> args = step.args;
    size_t list = 0;
    for (Value& v : args)
      if (v.tag == Value::Tag::kInts) v = Value(step.ints[list++]);
    args[static_cast<size_t>(step.op->self_index)] = Value(t);
    TensorBase next = dispatch(*step.op, args)[step.output];
    t = next;
  }
  return t;
}

static ViewStep view_step(const Op& op, Args args, int output) {
  ViewStep step{&op, output, {args.begin(), args.end()}, {}};
  for (Value& v : step.args) {
    if (v.tag == Value::Tag::kInts) {
      step.ints.emplace_back(v.ints);
      v.ints = {};
    }
    if (v.tag == Value::Tag::kTensor) v.tensor = nullptr;
  }
  return step;
}

void track_view(const TensorBase& view, const TensorBase& parent, const Op& op, Args args,
                int output) {
  Meta& m = meta_of(view);
  Meta* p = try_meta(parent);
  if (parent.impl()->is_view && p && p->base.defined()) {
    m.base = p->base;
    m.steps = p->steps;
    m.base_layout = p->base_layout;
  } else {
    m.base = parent;
    m.base_layout = {parent.sizes(), parent.strides()};
  }
  m.steps.push_back(view_step(op, args, output));
  m.view_version = version_of(view);
  view.impl()->is_view = true;
}

void note_inplace_view(const TensorBase& t, const Op& op, Args args, Ref<Node> node) {
  Meta* m = try_meta(t);
  if (m && m->base.defined()) {
    m->steps.push_back(view_step(op, args, 0));
    m->view_version = version_of(t);
  }
  if (node) set_history(t, std::move(node), 0);
}

void set_history(const TensorBase& t, Ref<Node> node, uint32_t output) {
  Meta& m = meta_of(t);
  m.grad_fn = {std::move(node), output};
  t.impl()->requires_grad = true;
}

// The steps of a view hold for the geometry that its base had.
static void check_base(const Meta& view) {
  TS_CHECK(view.base.sizes() == view.base_layout[0] && view.base.strides() == view.base_layout[1],
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
    TensorBase again = replay(m->steps, m->base);
    TS_CHECK(again.sizes() == t.sizes(), "a view of shape ", again.sizes(),
             " was used after it had been resized in place to ", t.sizes(),
             " and its base had been written: make the view again.");
    if (Meta* made = try_meta(again); made && made->grad_fn.node) {
      m->grad_fn = made->grad_fn;
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
  if (m.accumulator) return {Ref<Node>::share(m.accumulator), 0};
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
  auto slices = Ref<Node>::adopt(new CopySlices(base, m.steps, std::move(node)));
  set_history(base, std::move(slices), 0);
  m.grad_fn = {};
  m.view_version = version_of(t) - 1;
  t.impl()->requires_grad = true;
  refresh_view(t);
}

}  // namespace tessera::autograd
