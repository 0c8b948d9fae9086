// Turns a group into a program and hands it to the backend.
#include <algorithm>
#include <span>

#include "tessera/driver/current.h"
#include "tessera/fuse/check.h"
#include "tessera/fuse/group.h"
#include "tessera/fuse/observed.h"
#include "tessera/fuse/rows.h"

namespace tessera::fuse {

char* address_of(const PendingOperand& o) {
  if (!o.storage->data) return nullptr;
  return static_cast<char*>(o.storage->data) + o.offset * static_cast<int64_t>(itemsize(o.dtype));
}

namespace {

// Effective strides of an operand over the group's shape.
void set_strides(Dims& to, const PendingOperand& o, const Dims& shape) {
  if (o.dense)
    to = contiguous_strides(shape);
  else
    to = o.strides;
}

}  // namespace

namespace {

// The operand whose order in memory most bytes of the group share: the iteration follows it. An
// operand that repeats elements says nothing.
size_t leading_operand(std::span<const Dims> strides, std::span<const size_t> item,
                       const Dims& sizes) {
  auto repeats = [&](const Dims& s) {
    for (int d = 0; d < sizes.ndim(); ++d)
      if (s[d] == 0 && sizes[d] != 1) return true;
    return false;
  };
  size_t best = 0, most = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    if (repeats(strides[i])) continue;
    size_t bytes = 0;
    for (size_t k = 0; k < strides.size(); ++k)
      if (strides[k] == strides[i]) bytes += item[k];
    if (bytes > most) {
      best = i;
      most = bytes;
    }
  }
  return best;
}

}  // namespace

// Out of memory is told with the line that wanted it.
void GroupRunner::allocate_result(const PendingOperand& o, const PendingOp& of) {
  if (o.storage->data) return;
  SourceRef::Deferred scope(of.source);
  try {
    allocate_on(*o.storage, stream_.stream_);
    if (o.storage->hidden) stream_.kept_bytes_ += o.storage->nbytes;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kOutOfMemory || !of.source) throw;
    raise(ErrorKind::kOutOfMemory, cat(e.what(), "\nThe memory was for the result of ", of.name(),
                                       ", deferred at ", of.source.text(), "."));
  }
}

namespace {

void set_program(Group& g) {
  Lowered& to = g.lowered;
  to.program = {to.sizes.ndim(),
                to.sizes.data(),
                g.numel,
                static_cast<int>(to.in.size()),
                to.in.data(),
                to.program.num_instrs,
                to.instrs.data(),
                static_cast<int>(to.out.size()),
                to.out.data(),
                to.program.num_immediates,
                to.immediates.data(),
                to.immediate_cls.data()};
}

}  // namespace

void GroupRunner::lower(Group& g, bool with_memory) {
  Lowered& to = g.lowered;
  const size_t n = g.ops.size();
  if (to.instrs.size() < n * kMaxInstrsPerOp) {
    to.instrs.resize(n * kMaxInstrsPerOp);
    to.immediates.resize(n * kMaxImmediatesPerOp);
    to.immediate_cls.resize(n * kMaxImmediatesPerOp);
  }
  ProgramBuilder builder{to.instrs.data(), to.immediates.data(), to.immediate_cls.data()};
  to.stored.clear();
  for (PendingOp* op : g.ops) {
    if (!op->live) continue;
    LoweredSource lowered[kMaxSources];
    for (int k = 0; k < op->num_sources; ++k) {
      LoweredSource& s = lowered[k];
      if (op->immediate[k]) {
        s.immediate = true;
        s.scalar = op->immediates[k];
        continue;
      }
      const PendingOperand& o = op->sources[k];
      s.dtype = o.dtype;
      s.wide = op->wide[k];
      if (in_register(o, op->group)) {
        s.source = {SourceKind::kValue, o.producer->value};
        continue;
      }
      size_t at = 0;
      while (!same_place(*g.inputs[at], *g.shape, o, *g.shape)) ++at;
      s.source = {SourceKind::kInput, static_cast<uint16_t>(at)};
    }
    op->value = builder.lower(*op->body, op->cls, op->common, op->result, op->out.dtype, lowered,
                              op->num_sources, op->scalars, op->num_scalars);
    if (!op->store) continue;
    // Memory for the results first: if that fails, nothing has run.
    if (with_memory) allocate_result(op->out, *op);
    to.stored.push_back(op);
  }
  to.program.num_instrs = builder.num_instrs;
  to.program.num_immediates = builder.num_immediates;
}

// Addresses, sizes and strides.
void GroupRunner::place(Group& g) {
  Lowered& to = g.lowered;
  to.in.resize(g.inputs.size());
  to.out.resize(to.stored.size());
  bool dense = true;
  for (size_t k = 0; k < g.inputs.size(); ++k) {
    to.in[k] = {address_of(*g.inputs[k]), g.inputs[k]->dtype, nullptr};
    dense &= g.inputs[k]->dense;
  }
  for (size_t k = 0; k < to.stored.size(); ++k) {
    const PendingOperand& o = to.stored[k]->out;
    to.out[k] = {{address_of(o), o.dtype, nullptr}, to.stored[k]->value};
    dense &= o.dense;
  }
  static constexpr int64_t kOne = 1;
  if (dense) {
    to.sizes = Dims{g.numel};
    for (Operand& o : to.in) o.strides = &kOne;
    for (GroupOutput& o : to.out) o.to.strides = &kOne;
  } else {
    to.sizes = *g.shape;
    const size_t stored = to.stored.size(), count = stored + g.inputs.size();
    if (to.strides.size() < count) to.strides.resize(count);
    size_t item[2 * kOperandCap];
    for (size_t k = 0; k < count; ++k) {
      const PendingOperand& o = k < stored ? to.stored[k]->out : *g.inputs[k - stored];
      set_strides(to.strides[k], o, to.sizes);
      item[k] = itemsize(o.dtype);
    }
    merge_dims(to.sizes, {to.strides.data(), count},
               leading_operand({to.strides.data(), count}, {item, count}, to.sizes));
    for (size_t k = 0; k < stored; ++k) to.out[k].to.strides = to.strides[k].data();
    for (size_t k = 0; k < g.inputs.size(); ++k) to.in[k].strides = to.strides[stored + k].data();
  }
  set_program(g);
}

// The same for one that joins a kernel: in two dimensions, rows and n.
void GroupRunner::place_rows(Group& g, const Rows& rows) {
  Lowered& to = g.lowered;
  const size_t stored = to.stored.size(), count = stored + g.inputs.size();
  to.in.resize(g.inputs.size());
  to.out.resize(stored);
  to.sizes = Dims{rows.rows, rows.n};
  if (to.strides.size() < count) to.strides.resize(count);
  for (size_t k = 0; k < count; ++k) {
    const PendingOperand& o = k < stored ? to.stored[k]->out : *g.inputs[k - stored];
    to.strides[k].resize(2);
    row_strides(o, *g.shape, rows.rows, rows.n, &to.strides[k][0], &to.strides[k][1]);
    const Operand at{address_of(o), o.dtype, to.strides[k].data()};
    if (k < stored)
      to.out[k] = {at, to.stored[k]->value};
    else
      to.in[k - stored] = at;
  }
  set_program(g);
}

// Groups that may run in any order. What has its memory runs also where another has not.
void GroupRunner::run_level(std::span<Group* const> groups) {
  run_pointwise(groups);
  run_kernels(groups);
}

void GroupRunner::run_pointwise(std::span<Group* const> groups) {
  std::vector<Group*> observed;
  if (profile::recording()) [[unlikely]]
    for (Group* g : groups)
      if (!g->kernel) observed.push_back(g);
  ObservedGroups scope(observed);
  size_t ready = 0;
  try {
    for (; ready < groups.size(); ++ready) {
      Group& g = *groups[ready];
      g.reference.clear();
      if (g.kernel) continue;
      if (g.ops.size() > 1 && checks()) check_group(g, g.reference);
      lower(g, true);
      place(g);
    }
  } catch (...) {
    run_lowered(groups.first(ready));
    throw;
  }
  run_lowered(groups);
}

void GroupRunner::run_lowered(std::span<Group* const> groups) {
  const Device device = stream_.device_;
  const Exec exec = device.is_cpu() ? Exec{0, nullptr} : Exec{device.index, stream_.stream_};
  const Backend& backend = backend_of(device);
  Status status{Code::kUnsupported, nullptr};
  programs_.clear();
  for (Group* g : groups)
    if (!g->kernel) programs_.push_back(&g->lowered.program);
  if (programs_.size() > 1 && backend.run_groups) {
    status = backend.run_groups(exec, programs_.data(), static_cast<int>(programs_.size()));
    if (status.code != Code::kUnsupported) check(status, "fused groups");
  }
  for (Group* g : groups) {
    if (g->kernel) continue;
    if (!status.ok()) {
      // Of several, each by itself as well.
      ObservedGroups scope(programs_.size() > 1 ? std::span<Group* const>(&g, 1)
                                                : std::span<Group* const>());
      Status one = backend.run_group(exec, &g->lowered.program);
      if (one.code == Code::kUnsupported && g->ops.size() > 1)
        run_one_by_one(*g);
      else
        check(one, "a fused group");
    }
    for (PendingOp* op : g->ops) op->done = true;
    Stats& stats = stream_.stats_;
    ++stats.groups;
    stats.fused_groups += g->live > 1;
    stats.largest_group = std::max<int64_t>(stats.largest_group, g->live);
  }
  for (Group* g : groups) {
    if (g->kernel) continue;
    explain(*g);
    if (g->reference.empty()) continue;
    for (size_t k = 0; k < g->ops.size(); ++k) {
      const PendingOp& op = *g->ops[k];
      if (op.store)
        compare_stored(device, exec, {op.out, *g->shape, op.name(), op.id}, g->reference[k],
                       [this] { return stream_.last_run_text(); });
    }
    g->reference.clear();
  }
}

void GroupRunner::explain(const Group& g, bool opens) {
  for (PendingOp* op : g.ops) {
    if (!op->live) continue;
    Stream::Line line{op->name(),           op->id, {}, 0, op->out.dtype, op->store, opens, g.numel,
                      std::move(op->source)};
    if (op->kernel) {
      const PendingKernel& k = *op->kernel;
      line.dtype = k.outputs[0].dtype;
      line.numel = 1;
      for (int64_t n : k.inputs[static_cast<size_t>(k.rows.in)].shape) line.numel *= n;
      for (const PendingOperand& o : k.inputs)
        if (line.num_sources < kMaxSources) line.sources[line.num_sources++] = o.value;
      line.stored = k.outputs[static_cast<size_t>(k.rows.out)].storage->data != nullptr;
    } else {
      line.num_sources = op->num_sources;
      line.stored &= op->out.storage->data != nullptr;
      for (int k = 0; k < op->num_sources; ++k)
        line.sources[k] = op->immediate[k] ? -2 : op->sources[k].value;
    }
    stream_.last_run_.push_back(std::move(line));
    opens = false;
  }
}

}  // namespace tessera::fuse
