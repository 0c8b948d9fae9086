#include "tessera/parallel/reducer.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "tessera/autograd/callbacks.h"
#include "tessera/autograd/node.h"
#include "tessera/fuse/stream.h"
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"

namespace tessera::parallel {

using autograd::GradMode;
using distributed::ProcessGroup;

void (*while_waiting)() = nullptr;

namespace {

void wait(distributed::Work& work) {
  while (!work.wait_for(distributed::Milliseconds(200)))
    if (while_waiting) while_waiting();
}

TensorBase numbers(const std::vector<int>& values, Device device) {
  TensorBase host = new_empty({static_cast<int64_t>(values.size())}, DType::kInt32, Device{});
  std::memcpy(host.raw(), values.data(), values.size() * sizeof(int));
  return device.is_cpu() ? host : op::_to_device(host, device);
}

std::vector<int> values(const TensorBase& t) {
  TensorBase host = t.device().is_cpu() ? t : op::_to_device(t, Device{});
  fuse::ensure_readable(host, fuse::Reason::kHostRead);
  std::vector<int> out(static_cast<size_t>(host.numel()));
  std::memcpy(out.data(), host.raw(), out.size() * sizeof(int));
  return out;
}

}  // namespace

std::shared_ptr<Reducer> Reducer::make(std::vector<TensorBase> parameters,
                                       std::vector<std::string> names,
                                       std::shared_ptr<ProcessGroup> group,
                                       ReducerOptions options) {
  std::shared_ptr<Reducer> r(
      new Reducer(std::move(parameters), std::move(names), std::move(group), options));
  r->add_hooks();
  return r;
}

Reducer::Reducer(std::vector<TensorBase> parameters, std::vector<std::string> names,
                 std::shared_ptr<ProcessGroup> group, ReducerOptions options)
    : parameters_(std::move(parameters)),
      names_(std::move(names)),
      group_(std::move(group)),
      options_(options),
      place_(parameters_.size()),
      ready_(parameters_.size()),
      unused_(parameters_.size()),
      came_(parameters_.size()) {
  TS_ASSERT(names_.size() == parameters_.size());
  std::vector<int> order(parameters_.size());
  std::iota(order.rbegin(), order.rend(), 0);
  make_buckets(order);
}

void Reducer::make_buckets(const std::vector<int>& order) {
  buckets_.clear();
  for (std::vector<int>& members :
       assign_buckets(parameters_, order, options_.first_bucket_bytes, options_.bucket_bytes))
    buckets_.push_back(make_bucket(parameters_, std::move(members)));
  for (size_t b = 0; b < buckets_.size(); ++b)
    for (size_t m = 0; m < buckets_[b].members.size(); ++m)
      place_[static_cast<size_t>(buckets_[b].members[m])] = {static_cast<int>(b),
                                                             static_cast<int>(m)};
}

void Reducer::add_hooks() {
  std::weak_ptr<Reducer> weak = weak_from_this();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    uint32_t output;
    hooks_.push_back(autograd::new_hook_id());
    autograd::hooks_of(parameters_[i], &output)
        ->after.push_back({hooks_.back(), [weak, i](autograd::Grads&, const autograd::Grads&) {
                             if (auto self = weak.lock()) self->on_gradient(static_cast<int>(i));
                           }});
  }
}

Reducer::~Reducer() {
  for (size_t i = 0; i < hooks_.size(); ++i) {
    autograd::Meta* meta = autograd::try_meta(parameters_[i]);
    if (meta && meta->leaf_hooks) meta->leaf_hooks->remove(hooks_[i]);
  }
}

std::string Reducer::names_of(const std::vector<int>& which) const {
  constexpr size_t kShown = 20;
  std::string text;
  for (size_t i = 0; i < std::min(which.size(), kShown); ++i)
    text += cat(i ? ", " : "", names_[static_cast<size_t>(which[i])]);
  if (which.size() > kShown) text += cat(" and ", which.size() - kShown, " more");
  return text;
}

void Reducer::raise_unfinished() const {
  std::vector<int> missing;
  for (size_t i = 0; i < ready_.size(); ++i)
    if (!ready_[i]) missing.push_back(static_cast<int>(i));
  TS_CHECK(
      false,
      "Expected to have finished reduction in the prior iteration before starting a new one. This "
      "error indicates that your module has parameters that were not used in producing loss. "
      "Parameters which did not receive grad for rank ",
      group_->rank(), ": ", names_of(missing),
      options_.find_unused_parameters
          ? "\nThey were found in the graph of forward's outputs: make sure that all outputs "
            "participate in calculating loss."
          : "\nEither all of them should take part in the loss, or pass "
            "find_unused_parameters=True to DistributedDataParallel (static_graph=True where it "
            "is the same parameters every time), or requires_grad_(False) for those that are "
            "never trained.");
}

void Reducer::prepare_for_forward() {
  if (begun_ && next_bucket_ < buckets_.size()) {
    begun_ = false;
    raise_unfinished();
  }
  if (!ordered_ && !seen_.empty() && !options_.find_unused_parameters) order_as_seen();
}

// Rank 0's order for all: two ranks may have seen their gradients in different ones.
void Reducer::order_as_seen() {
  std::vector<bool> in(parameters_.size());
  for (int i : seen_) in[static_cast<size_t>(i)] = true;
  for (size_t i = parameters_.size(); i-- > 0;)
    if (!in[i]) seen_.push_back(static_cast<int>(i));
  TensorBase order = numbers(seen_, parameters_[0].device());
  wait(*group_->broadcast(order, 0));
  make_buckets(values(order));
  ordered_ = true;
}

void Reducer::begin_iteration() {
  for (Bucket& b : buckets_) {
    b.pending = static_cast<int>(b.members.size());
    if (b.work) wait(*b.work);  // of a backward that raised
    b.work.reset();
  }
  hook_results_.assign(buckets_.size(), nullptr);
  ready_.assign(parameters_.size(), false);
  came_.assign(parameters_.size(), 0);
  next_bucket_ = 0;
  overlapped_ = 0;
  begun_ = false;
  if (!ordered_) seen_.clear();
}

void Reducer::prepare_for_backward(const std::vector<TensorBase>& outputs) {
  begin_iteration();
  expecting_ = true;
  if (options_.static_graph) {
    for (size_t i = 0; i < comes_.size(); ++i) unused_[i] = comes_[i] == 0;
  } else if (options_.find_unused_parameters) {
    std::vector<bool> reached = reached_from(outputs);
    for (size_t i = 0; i < reached.size(); ++i) unused_[i] = !reached[i];
  }
}

std::vector<bool> Reducer::reached_from(const std::vector<TensorBase>& outputs) const {
  std::unordered_map<const void*, size_t> index;
  for (size_t i = 0; i < parameters_.size(); ++i) index[parameters_[i].impl()] = i;
  std::vector<bool> reached(parameters_.size());
  std::unordered_set<autograd::Node*> seen;
  std::vector<autograd::Node*> todo;
  std::vector<Ref<autograd::Node>> roots;  // those of leaves live no longer than this
  for (const TensorBase& t : outputs) {
    if (!t.defined() || !t.requires_grad()) continue;
    roots.push_back(autograd::gradient_edge(t).node);
    if (seen.insert(roots.back().get()).second) todo.push_back(roots.back().get());
  }
  while (!todo.empty()) {
    autograd::Node* node = todo.back();
    todo.pop_back();
    if (auto* leaf = dynamic_cast<autograd::AccumulateGrad*>(node)) {
      auto at = index.find(leaf->leaf().impl());
      if (at != index.end()) reached[at->second] = true;
    }
    for (const autograd::Edge& e : node->next)
      if (e.node && seen.insert(e.node.get()).second) todo.push_back(e.node.get());
  }
  return reached;
}

// ---- while backward runs ------------------------------------------------------------------------

void Reducer::on_gradient(int i) {
  if (!expecting_) return;
  const bool learns = options_.static_graph && comes_.empty();
  if (!begun_) {
    begun_ = true;
    if (learns)
      autograd::at_end_of_backward(
          [self = shared_from_this()] { self->finish_first_static_iteration(); });
    else
      for (size_t u = 0; u < unused_.size(); ++u)
        if (unused_[u]) gradient_is_ready(static_cast<int>(u));
  }
  const size_t at = static_cast<size_t>(i);
  ++came_[at];
  if (learns) {
    if (came_[at] == 1) seen_.push_back(i);
    return;
  }
  if (options_.static_graph) {
    TS_CHECK(came_[at] <= comes_[at], "static_graph=True was promised, but parameter ", names_[at],
             " got a gradient ", came_[at], " times in one backward, and ", comes_[at],
             " times in the first one (rank ", group_->rank(), ").");
    if (came_[at] < comes_[at]) return;
  }
  gradient_is_ready(i);
}

void Reducer::gradient_is_ready(int i) {
  const size_t at = static_cast<size_t>(i);
  TS_CHECK(!ready_[at], "Expected to mark a variable ready only once, but parameter ", names_[at],
           " got a gradient twice in one backward (rank ", group_->rank(),
           "): it is used outside of forward, or in several checkpoints that run their own "
           "backward. static_graph=True allows it where the graph does not change, and "
           "checkpoint(..., use_reentrant=False) avoids it.");
  ready_[at] = true;
  if (!ordered_ && !options_.static_graph) seen_.push_back(i);
  put_into_bucket(i);
  if (--buckets_[static_cast<size_t>(place_[at].first)].pending == 0) launch_full_buckets();
}

bool Reducer::is_view_of_bucket(const TensorBase& grad, int i) const {
  auto [b, m] = place_[static_cast<size_t>(i)];
  const TensorBase& view = buckets_[static_cast<size_t>(b)].views[static_cast<size_t>(m)];
  return &grad.storage() == &view.storage() && grad.storage_offset() == view.storage_offset() &&
         grad.sizes() == view.sizes() && grad.strides() == view.strides();
}

void Reducer::put_into_bucket(int i) {
  GradMode off(false);
  auto [b, m] = place_[static_cast<size_t>(i)];
  const TensorBase& view = buckets_[static_cast<size_t>(b)].views[static_cast<size_t>(m)];
  const TensorBase& grad = autograd::meta_of(parameters_[static_cast<size_t>(i)]).grad_slot();
  // Divided before it is added up, so that sums stay in the range of half floats.
  const double factor = comm_hook_ ? 1.0 : 1.0 / group_->size();
  if (!grad.defined()) {
    fill(view, Scalar(0.0));
  } else if (is_view_of_bucket(grad, i)) {
    if (factor != 1) op::mul_(view, Scalar(factor));
  } else {
    op::copy_(view, factor == 1 ? grad : op::mul(grad, Scalar(factor)));
  }
}

void Reducer::launch_full_buckets() {
  while (next_bucket_ < buckets_.size() && buckets_[next_bucket_].pending == 0)
    launch(next_bucket_++);
  if (next_bucket_ < buckets_.size()) return;
  autograd::at_end_of_backward([self = shared_from_this()] { self->finish(); });
}

void Reducer::launch(size_t b) {
  Bucket& bucket = buckets_[b];
  if (!std::all_of(ready_.begin(), ready_.end(), [](bool r) { return r; })) ++overlapped_;
  if (!comm_hook_) {
    bucket.work = group_->all_reduce(bucket.flat);
    return;
  }
  HookBucket given{static_cast<int>(b), b + 1 == buckets_.size(), bucket.flat, bucket.views, {}};
  for (int i : bucket.members) given.parameters.push_back(parameters_[static_cast<size_t>(i)]);
  hook_results_[b] = comm_hook_(given);
}

void Reducer::finish_first_static_iteration() {
  comes_ = came_;
  for (size_t i = 0; i < comes_.size(); ++i) {
    unused_[i] = comes_[i] == 0;
    gradient_is_ready(static_cast<int>(i));
  }
}

void Reducer::finish() {
  GradMode off(false);
  expecting_ = false;
  begun_ = false;
  // Parameters that this rank did not use may have been used elsewhere.
  std::vector<int>& used = used_somewhere_;
  if (options_.find_unused_parameters || (options_.static_graph && used.empty())) {
    used.resize(parameters_.size());
    for (size_t i = 0; i < used.size(); ++i) used[i] = !unused_[i];
    TensorBase counts = numbers(used, parameters_[0].device());
    wait(*group_->all_reduce(counts));
    used = values(counts);
  }
  for (size_t b = 0; b < buckets_.size(); ++b) {
    Bucket& bucket = buckets_[b];
    if (comm_hook_) {
      TensorBase result = hook_results_[b]();
      hook_results_[b] = nullptr;
      if (!result.is_same(bucket.flat)) op::copy_(bucket.flat, result);
    } else {
      wait(*bucket.work);
      bucket.work.reset();
    }
    for (size_t m = 0; m < bucket.members.size(); ++m) {
      const size_t i = static_cast<size_t>(bucket.members[m]);
      if (!used.empty() && used[i] == 0) continue;  // by nobody: its gradient stays as it is
      TensorBase& grad = autograd::meta_of(parameters_[i]).grad_slot();
      if (grad.defined() && is_view_of_bucket(grad, bucket.members[m])) continue;
      if (options_.gradient_as_bucket_view)
        grad = bucket.views[m];
      else if (grad.defined())
        op::copy_(grad, bucket.views[m]);
      else
        grad = op::clone(bucket.views[m]);
    }
  }
}

void Reducer::set_comm_hook(CommHook hook) {
  TS_CHECK(!comm_hook_,
           "register_comm_hook or register_builtin_comm_hook can only be called once.");
  comm_hook_ = std::move(hook);
}

std::vector<std::vector<int>> Reducer::bucket_members() const {
  std::vector<std::vector<int>> out;
  for (const Bucket& b : buckets_) out.push_back(b.members);
  return out;
}

}  // namespace tessera::parallel
