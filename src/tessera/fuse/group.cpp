#include "tessera/fuse/group.h"

#include <algorithm>
#include <limits>

#include "tessera/memory/allocator.h"

namespace tessera::fuse {

namespace {
constexpr int kNone = std::numeric_limits<int>::max();
}

GroupRunner::Slot& GroupRunner::slot_of(Storage& s) {
  if (s.run != stream_.run_number_) {
    s.run = stream_.run_number_;
    s.slot = static_cast<uint32_t>(slots_.size());
    slots_.push_back(
        {nullptr, -1, -1, nullptr, nullptr, false, kNone, -1, kNone, false, false, -1, -1});
  }
  return slots_[s.slot];
}

// See Note [Grouping]. Writers of a storage are in groups that never fall, so the last one stands
// for all.
int GroupRunner::lowest_group(const PendingOp& op) {
  int lowest = 0;
  op.each_input([&](const PendingOperand& o, const Dims&) {  // reads after writes
    Slot& s = slot_of(*o.storage);
    if (!s.writer) return;
    bool in_register =
        !op.kernel && !s.writer->kernel && o.value == s.writer->id && op.shape == s.writer->shape;
    lowest = std::max(lowest, s.writer->group + !in_register);
  });
  if (op.kernel) return lowest;  // its results are fresh
  Slot& s = slot_of(*op.out.storage);
  if (s.writer) {  // writes after writes, and after reads of the last written value
    bool same = !s.writer->kernel && same_place(op.out, op.shape, s.writer->out, s.writer->shape);
    lowest = std::max({lowest, s.writer->group + !same,
                       s.register_readers >= 0 ? s.register_readers + !same : 0});
  }
  if (s.memory_readers >= 0) {  // writes after reads
    bool same = !s.mixed_places && same_place(op.out, op.shape, *s.memory_place, *s.memory_shape);
    lowest = std::max(lowest, s.memory_readers + !same);
  }
  return lowest;
}

void GroupRunner::note_in_slots(PendingOp& op) {
  op.each_input([&](const PendingOperand& o, const Dims& shape) {
    Slot& s = slot_of(*o.storage);
    // What a kernel reads may not be overwritten in its own group, wherever it lies.
    s.mixed_places |= op.kernel != nullptr;
    if (s.writer && o.value == s.writer->id && !op.kernel) {
      s.register_readers = std::max(s.register_readers, op.group);
      return;
    }
    s.memory_readers = std::max(s.memory_readers, op.group);
    if (!s.memory_place) {
      s.memory_place = &o;
      s.memory_shape = &shape;
    } else if (!same_place(*s.memory_place, *s.memory_shape, o, shape)) {
      s.mixed_places = true;
    }
  });
  // Readers of an older value in other places were waited for by this writer; those in its own
  // place may share its group, so the next writer has to look at them still.
  op.each_output([&](const PendingOperand& o, const Dims&) { slot_of(*o.storage).writer = &op; });
}

Group& GroupRunner::new_group() {
  if (num_groups_ == groups_.size()) groups_.emplace_back();
  Group& g = groups_[num_groups_];
  g.order = num_groups_++;
  g.ops.clear();
  g.inputs.clear();
  g.outputs = 0;
  g.kernel = nullptr;
  g.before = g.after = nullptr;
  g.joined = g.hands_on = false;
  return g;
}

// Is the operand the result of an operator of this group?
bool GroupRunner::in_register(const PendingOperand& o, int group) const {
  const PendingOp* producer = pending_producer(o);
  return producer && producer->selected && producer->group == group && !producer->kernel;
}

namespace {

// Position of the place among the group's inputs, or their number.
size_t find_input(const Group& g, const PendingOperand& o) {
  size_t at = 0;
  while (at < g.inputs.size() && !same_place(*g.inputs[at], *g.shape, o, *g.shape)) ++at;
  return at;
}

}  // namespace

bool GroupRunner::joins(const Group& g, size_t index, const PendingOp& op) const {
  if (g.kernel || g.numel != op.numel || !(*g.shape == op.shape)) return false;
  if (g.ops.size() >= static_cast<size_t>(kOpCap)) return false;
  size_t operands = g.inputs.size() + static_cast<size_t>(g.outputs) + 1;
  // What has nothing in common is a group of its own: groups alike then run in one launch, as the
  // steps of an optimizer do (see Note [Levels]).
  bool shares = false;
  for (int k = 0; k < op.num_sources; ++k) {
    if (op.immediate[k]) continue;
    bool known = in_register(op.sources[k], static_cast<int>(index)) ||
                 find_input(g, op.sources[k]) < g.inputs.size();
    shares |= known;
    operands += !known;
  }
  return shares && operands <= static_cast<size_t>(kOperandCap);
}

void GroupRunner::add_inputs(Group& g, const PendingOp& op) {
  for (int k = 0; k < op.num_sources; ++k) {
    if (op.immediate[k] || in_register(op.sources[k], op.group)) continue;
    if (find_input(g, op.sources[k]) == g.inputs.size()) g.inputs.push_back(&op.sources[k]);
  }
}

void GroupRunner::add_to(Group& g, PendingOp& op) {
  add_inputs(g, op);
  g.outputs += op.out.storage->owned_outside();
  g.ops.push_back(&op);
}

void GroupRunner::form_groups() {
  for (PendingOp* op : stream_.ops_) {
    if (!op->selected) continue;
    op->group = -1;
    if (op->kernel) {
      lowest_group(*op);  // makes the slots
      op->group = static_cast<int>(num_groups_);
      Group& made = new_group();
      made.kernel = op;
      made.ops.push_back(op);
      note_in_slots(*op);
      continue;
    }
    size_t g = static_cast<size_t>(lowest_group(*op));
    while (g < num_groups_ && !joins(groups_[g], g, *op)) ++g;
    if (g >= num_groups_) {
      g = num_groups_;
      Group& made = new_group();
      made.shape = &op->shape;
      made.numel = op->numel;
    }
    op->group = static_cast<int>(g);
    add_to(groups_[g], *op);
    note_in_slots(*op);
  }
}

void GroupRunner::touch(Storage& storage, int group) {
  Slot& s = slot_of(storage);
  s.first_touch = std::min(s.first_touch, group);
  s.last_touch = std::max(s.last_touch, group);
}

// All its results or none.
void GroupRunner::decide_kernel(PendingOp& op) {
  op.each_output([&](const PendingOperand& o, const Dims&) {
    const Slot& s = slot_of(*o.storage);
    op.live |= o.storage->owned_outside() || s.touched_by_pending || s.last_touch >= 0;
  });
  op.store = op.live;
  op.each_output([&](const PendingOperand& o, const Dims&) {
    Slot& s = slot_of(*o.storage);
    s.first_writer = std::min(s.first_writer, op.group);
    if (op.live) touch(*o.storage, op.group);
  });
  if (!op.live) return;
  op.each_input([&](const PendingOperand& o, const Dims&) {
    touch(*o.storage, op.group);
    PendingOp* w = pending_producer(o);
    if (w && w->selected) w->live = true;
  });
}

// A result goes to memory iff it is its group's last word on the storage and somebody looks there
// later: an owner outside, another group, or an operator that stays pending. Backwards in program
// order, so that every user of a value is decided before it.
void GroupRunner::decide_stores() {
  for (size_t i = stream_.ops_.size(); i-- > 0;) {
    PendingOp& op = *stream_.ops_[i];
    if (!op.selected) {
      auto wait = [this](const PendingOperand& o, const Dims&) {
        slot_of(*o.storage).touched_by_pending = true;
      };
      op.each_output(wait);
      op.each_input(wait);
      continue;
    }
    if (op.kernel) {
      decide_kernel(op);
      continue;
    }
    Slot& s = slot_of(*op.out.storage);
    bool last = s.first_writer != op.group;
    bool used = op.out.storage->owned_outside() || s.touched_by_pending ||
                (s.last_touch >= 0 && (s.first_touch != op.group || s.last_touch != op.group));
    op.store = last && used;
    op.live = op.live || op.store;
    s.first_writer = std::min(s.first_writer, op.group);
    if (!op.live) continue;
    touch(*op.out.storage, op.group);
    for (int k = 0; k < op.num_sources; ++k) {
      if (op.immediate[k]) continue;
      touch(*op.sources[k].storage, op.group);
      PendingOp* w = pending_producer(op.sources[k]);
      if (w && w->selected) w->live = true;
    }
  }
}

// See Note [Levels]. In order of groups, which is one that respects every edge.
void GroupRunner::find_levels() {
  order_.clear();
  auto each_part = [](Group& g, auto f) {
    if (g.before) f(*g.before);
    f(g);
    if (g.after) f(*g.after);
  };
  auto each_place = [](Group& g, auto read, auto written) {
    for (const PendingOperand* o : g.inputs) read(*o->storage);
    for (PendingOp* op : g.ops) {
      if (!op->live) continue;
      if (op->kernel)
        op->each_input([&](const PendingOperand& o, const Dims&) { read(*o.storage); });
      op->each_output([&](const PendingOperand& o, const Dims&) { written(*o.storage); });
    }
  };
  for (size_t n = 0; n < num_groups_; ++n) {
    Group& g = groups_[n];
    g.live = 0;
    for (PendingOp* op : g.ops) g.live += op->live;
  }
  for (size_t n = 0; n < num_groups_; ++n) {
    Group& g = groups_[n];
    if (g.live == 0 || g.joined) continue;
    int level = 0;
    each_part(g, [&](Group& part) {
      each_place(
          part, [&](Storage& s) { level = std::max(level, slot_of(s).write_level + 1); },
          [&](Storage& s) {
            level = std::max({level, slot_of(s).read_level + 1, slot_of(s).write_level + 1});
          });
    });
    each_part(g, [&](Group& part) {
      each_place(
          part, [&](Storage& s) { slot_of(s).read_level = std::max(slot_of(s).read_level, level); },
          [&](Storage& s) { slot_of(s).write_level = std::max(slot_of(s).write_level, level); });
    });
    g.level = level;
    order_.push_back(&g);
  }
  std::stable_sort(order_.begin(), order_.end(),
                   [](const Group* a, const Group* b) { return a->level < b->level; });
}

// An operator that nobody waits with is its own group, and stored: it would have been dropped else.
void GroupRunner::run_lone(PendingOp& op) {
  num_groups_ = 0;
  Group& g = new_group();
  g.shape = &op.shape;
  g.numel = op.numel;
  g.live = 1;
  op.group = 0;
  op.live = op.store = true;
  add_to(g, op);
  Group* only = &g;
  run_level({&only, 1});
}

void GroupRunner::decide_groups() {
  ++stream_.run_number_;
  slots_.clear();
  num_groups_ = 0;
  for (PendingOp* op : stream_.ops_) op->live = op->store = false;
  form_groups();
  decide_stores();
  join_kernels();
}

int64_t GroupRunner::bytes_to_store() {
  decide_groups();
  int64_t bytes = 0;
  auto add = [&](const PendingOperand& o) {
    Slot& s = slot_of(*o.storage);
    if (!o.storage->data && !s.counted)
      bytes += static_cast<int64_t>(memory::round_charge(o.storage->nbytes));
    s.counted = true;
  };
  auto add_stored = [&](const Group& g) {
    for (const PendingOp* op : g.ops)
      if (op->store) add(op->out);
  };
  for (size_t n = 0; n < num_groups_; ++n) {
    const Group& g = groups_[n];
    if (!g.kernel) {
      if (!g.joined) add_stored(g);
      continue;
    }
    if (!g.kernel->live) continue;
    const PendingKernel& call = *g.kernel->kernel;
    const bool joins = (g.before || g.after) && can_join(groups_[n]);
    for (size_t i = 0; i < call.outputs.size(); ++i)
      if (!joins || !g.after || !g.hands_on || i != static_cast<size_t>(call.rows.out))
        add(call.outputs[i]);
    if (g.before && !joins) add_stored(*g.before);
    if (g.after) add_stored(*g.after);
  }
  return bytes;
}

void GroupRunner::run() {
  if (PendingOp& first = *stream_.ops_[0]; stream_.ops_.size() == 1 && !first.kernel)
    return run_lone(first);
  decide_groups();
  find_levels();
  for (size_t begin = 0; begin < order_.size();) {
    size_t end = begin + 1;
    while (end < order_.size() && order_[end]->level == order_[begin]->level) ++end;
    run_level({order_.data() + begin, end - begin});
    begin = end;
  }
  for (size_t n = 0; n < num_groups_; ++n) {
    const Group& g = groups_[n];
    stream_.stats_.dropped += static_cast<int64_t>(g.ops.size()) - g.live;
    for (PendingOp* op : g.ops) op->done = true;
  }
}

}  // namespace tessera::fuse
