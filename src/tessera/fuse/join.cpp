// Which pointwise groups run inside a kernel: see Note [Joining] in group.h.
#include <algorithm>

#include "tessera/driver/current.h"
#include "tessera/fuse/group.h"
#include "tessera/fuse/rows.h"

namespace tessera::fuse {

namespace {

bool any_live(const Group& g) {
  for (const PendingOp* op : g.ops)
    if (op->live) return true;
  return false;
}

// f(storage, written) for everything that the group's live operators touch.
template <class F>
void each_storage(const Group& g, F f) {
  for (const PendingOp* op : g.ops) {
    if (!op->live) continue;
    op->each_input([&](const PendingOperand& o, const Dims&) { f(*o.storage, false); });
    op->each_output([&](const PendingOperand& o, const Dims&) { f(*o.storage, true); });
  }
}

bool all_in_rows(const Group& g, int64_t rows, int64_t n) {
  int64_t down, along;
  for (const PendingOperand* o : g.inputs)
    if (!row_strides(*o, *g.shape, rows, n, &down, &along)) return false;
  for (const PendingOp* op : g.ops)
    if (op->store && !row_strides(op->out, *g.shape, rows, n, &down, &along)) return false;
  return true;
}

}  // namespace

// Does anybody but group `by`, once, look at what `besides` writes there?
bool GroupRunner::is_wanted(const Storage& storage, const Group& by, const Group& besides) {
  Storage& s = const_cast<Storage&>(storage);
  if (s.owned_outside() || slot_of(s).touched_by_pending) return true;
  int uses = 0;
  for (size_t n = 0; n < num_groups_; ++n) {
    const Group& g = groups_[n];
    if (&g == &besides) continue;
    for (const PendingOp* op : g.ops) {
      if (!op->live) continue;
      op->each_input([&](const PendingOperand& o, const Dims&) {
        uses += o.storage != &storage ? 0 : &g != &by ? 2 : op->kernel ? 1 : 0;
      });
      op->each_output([&](const PendingOperand& o, const Dims&) {
        if (o.storage == &storage) uses += 2;
      });
    }
  }
  return uses > 1;
}

// Does a group from `from` up to `to` touch what `moved` writes, or write what it reads?
bool GroupRunner::touched_between(const Group& moved, size_t from, size_t to) const {
  bool touched = false;
  auto meets = [&](const Group& other) {
    each_storage(other, [&](const Storage& theirs, bool they_write) {
      each_storage(moved, [&](const Storage& ours, bool we_write) {
        touched |= &theirs == &ours && (they_write || we_write);
      });
    });
  };
  for (size_t n = 0; n < num_groups_ && !touched; ++n) {
    const Group& g = groups_[n];
    if (&g == &moved || g.order < from || g.order >= to) continue;
    meets(g);
    if (g.before) meets(*g.before);
    if (g.after) meets(*g.after);
  }
  return touched;
}

Group* GroupRunner::producer_of(Group& k) {
  const PendingKernel& call = *k.kernel->kernel;
  const PendingKernel::Place& in = call.inputs[static_cast<size_t>(call.rows.in)];
  PendingOp* w = pending_producer(in);
  if (!w || !w->selected || w->kernel || !w->store || !in.dense || !w->out.dense) return nullptr;
  Group& g = groups_[static_cast<size_t>(w->group)];
  if (g.joined || w->numel != call.rows.rows * call.rows.n || is_wanted(*in.storage, k, g))
    return nullptr;
  // What the group also reads and writes for others is taken for its own here: seldom in the way.
  if (!all_in_rows(g, call.rows.rows, call.rows.n) || touched_between(g, g.order + 1, k.order))
    return nullptr;
  for (const PendingOp* op : g.ops)
    if (op->store && op != w) return split_off(g, *w);
  return &g;
}

void GroupRunner::collect_inputs(Group& g) {
  g.inputs.clear();
  for (PendingOp* op : g.ops)
    if (op->live) add_inputs(g, *op);
}

// A group of what makes `made`, if nothing else in its group needs any of that; else null.
Group* GroupRunner::split_off(Group& g, PendingOp& made) {
  std::vector<PendingOp*> taken{&made};
  auto is_taken = [&](const PendingOp* op) {
    return std::find(taken.begin(), taken.end(), op) != taken.end();
  };
  auto each_value = [&](const PendingOp& op, auto f) {
    for (int k = 0; k < op.num_sources; ++k)
      if (!op.immediate[k] && in_register(op.sources[k], op.group)) f(op.sources[k].producer);
  };
  for (size_t i = 0; i < taken.size(); ++i) {
    if (taken[i]->store && taken[i] != &made) return nullptr;
    each_value(*taken[i], [&](PendingOp* p) {
      if (!is_taken(p)) taken.push_back(p);
    });
  }
  // The others run before it: what they write must not be what it reads.
  bool shared = false;
  for (PendingOp* op : g.ops) {
    if (!op->live || is_taken(op)) continue;
    each_value(*op, [&](PendingOp* p) { shared |= is_taken(p); });
    for (PendingOp* other : taken)
      other->each_input(
          [&](const PendingOperand& o, const Dims&) { shared |= o.storage == op->out.storage; });
  }
  if (shared) return nullptr;
  const size_t order = g.order;
  const int group = static_cast<int>(num_groups_);
  Group& part = new_group();
  part.order = order;
  part.shape = g.shape;
  part.numel = g.numel;
  for (PendingOp* op : g.ops)  // in program order
    if (is_taken(op)) part.ops.push_back(op);
  std::erase_if(g.ops, is_taken);
  for (PendingOp* op : part.ops) op->group = group;
  collect_inputs(part);
  collect_inputs(g);
  return &part;
}

Group* GroupRunner::consumer_of(Group& k) {
  const PendingKernel& call = *k.kernel->kernel;
  const PendingKernel::Place& y = call.outputs[static_cast<size_t>(call.rows.out)];
  if (!y.dense) return nullptr;
  Group* g = nullptr;
  size_t place = 0;
  for (size_t n = 0; n < num_groups_ && !g; ++n) {
    Group& other = groups_[n];
    if (other.order <= k.order || other.kernel || !any_live(other)) continue;
    for (size_t i = 0; i < other.inputs.size(); ++i)
      if (same_place(*other.inputs[i], *other.shape, y, y.shape)) {
        g = &other;
        place = i;
      }
  }
  if (!g || g->joined) return nullptr;
  if (!all_in_rows(*g, call.rows.rows, rows_after(call))) return nullptr;
  // The kernel's operands are as its group found them, but for the one that is handed on.
  bool mixed = false;
  each_storage(*g, [&](const Storage& ours, bool we_write) {
    auto meets = [&](const Group& part) {
      each_storage(part, [&](const Storage& theirs, bool they_write) {
        mixed |= &ours == &theirs && (we_write || (they_write && &ours != y.storage));
      });
    };
    meets(k);
    if (k.before) meets(*k.before);
  });
  for (size_t i = 0; i < g->inputs.size(); ++i)
    mixed |= i != place && g->inputs[i]->storage == y.storage;
  if (mixed || touched_between(*g, k.order + 1, g->order)) return nullptr;
  std::swap(g->inputs[0], g->inputs[place]);
  return g;
}

void GroupRunner::join_kernels() {
  if (!backend_of(stream_.device_).can_join) return;
  for (bool before : {true, false}) {
    for (size_t n = 0; n < num_groups_; ++n) {
      Group& k = groups_[n];
      if (!k.kernel || !k.kernel->live || k.kernel->kernel->rows.rows == 0) continue;
      Group* found = before ? producer_of(k) : consumer_of(k);
      if (!found) continue;
      found->joined = true;
      (before ? k.before : k.after) = found;
      if (before) continue;
      const PendingKernel& call = *k.kernel->kernel;
      k.hands_on = !is_wanted(*call.outputs[static_cast<size_t>(call.rows.out)].storage, *found, k);
    }
  }
}

}  // namespace tessera::fuse
