// Turns a group into a program and hands it to the backend.
#include <algorithm>

#include "tessera/driver/current.h"
#include "tessera/fuse/check.h"
#include "tessera/fuse/group.h"

namespace tessera::fuse {

namespace {

char* address_of(const PendingOperand& o) {
  return static_cast<char*>(o.storage->data) + o.offset * static_cast<int64_t>(itemsize(o.dtype));
}

// Effective strides of an operand over the group's shape.
void set_strides(Dims& to, const PendingOperand& o, const Dims& shape) {
  if (o.dense)
    to = contiguous_strides(shape);
  else
    to = o.strides;
}

}  // namespace

void GroupRunner::run_group(const Group& g) {
  size_t n = g.ops.size();
  if (instrs_.size() < n * kMaxInstrsPerOp) {
    instrs_.resize(n * kMaxInstrsPerOp);
    immediates_.resize(n * kMaxImmediatesPerOp);
    immediate_cls_.resize(n * kMaxImmediatesPerOp);
  }
  ProgramBuilder builder{instrs_.data(), immediates_.data(), immediate_cls_.data()};
  stored_.clear();

  std::vector<TensorBase> reference;
  if (mode() == Mode::kCheck && n > 1) check_group(g, reference);

  bool dense = true;
  for (const PendingOperand* o : g.inputs) dense &= o->dense;
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
    if (!op->out.storage->data) allocate_on(*op->out.storage, stream_.stream_);
    stored_.push_back(op);
    dense &= op->out.dense;
  }

  in_.resize(g.inputs.size());
  out_.resize(stored_.size());
  for (size_t k = 0; k < g.inputs.size(); ++k)
    in_[k] = {address_of(*g.inputs[k]), g.inputs[k]->dtype, nullptr};
  for (size_t k = 0; k < stored_.size(); ++k)
    out_[k] = {{address_of(stored_[k]->out), stored_[k]->out.dtype, nullptr}, stored_[k]->value};

  static constexpr int64_t kOne = 1;
  Dims sizes;
  if (dense) {
    sizes = Dims{g.numel};
    for (Operand& o : in_) o.strides = &kOne;
    for (GroupOutput& o : out_) o.to.strides = &kOne;
  } else {
    sizes = *g.shape;
    size_t count = stored_.size() + g.inputs.size();
    if (strides_.size() < count) strides_.resize(count);
    for (size_t k = 0; k < stored_.size(); ++k) set_strides(strides_[k], stored_[k]->out, sizes);
    for (size_t k = 0; k < g.inputs.size(); ++k)
      set_strides(strides_[stored_.size() + k], *g.inputs[k], sizes);
    merge_dims(sizes, {strides_.data(), count});
    for (size_t k = 0; k < stored_.size(); ++k) out_[k].to.strides = strides_[k].data();
    for (size_t k = 0; k < g.inputs.size(); ++k)
      in_[k].strides = strides_[stored_.size() + k].data();
  }
  GroupProgram program{sizes.ndim(),
                       sizes.data(),
                       g.numel,
                       static_cast<int>(in_.size()),
                       in_.data(),
                       builder.num_instrs,
                       instrs_.data(),
                       static_cast<int>(out_.size()),
                       out_.data(),
                       builder.num_immediates,
                       immediates_.data(),
                       immediate_cls_.data()};
  Device device = stream_.device_;
  Exec exec = device.is_cpu() ? Exec{0, nullptr} : Exec{device.index, stream_.stream_};
  Status status = backend_of(device).run_group(exec, &program);
  if (status.code == Code::kUnsupported && n > 1)
    run_one_by_one(g);
  else
    check(status, "a fused group");
  explain(g);
  if (reference.empty()) return;
  for (size_t k = 0; k < g.ops.size(); ++k)
    if (g.ops[k]->store)
      compare_stored(device, exec, *g.ops[k], *g.shape, reference[k], stream_.last_run_text());
}

void GroupRunner::explain(const Group& g) {
  bool opens = true;
  for (PendingOp* op : g.ops) {
    if (!op->live) continue;
    Stream::Line line{op->op,    op->id, {},      op->num_sources,      op->out.dtype,
                      op->store, opens,  g.numel, std::move(op->source)};
    for (int k = 0; k < op->num_sources; ++k)
      line.sources[k] = op->immediate[k] ? -2 : op->sources[k].value;
    stream_.last_run_.push_back(std::move(line));
    opens = false;
  }
}

}  // namespace tessera::fuse
