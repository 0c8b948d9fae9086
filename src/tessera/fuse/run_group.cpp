// Turns a group into a program and hands it to the backend.
#include <algorithm>



#include "tessera/driver/current.h"
#include "tessera/fuse/check.h"
#include "tessera/fuse/group.h"

namespace tessera::fuse {

namespace {

// Effective strides of an operand over the group's shape.
Dims strides_of(const PendingOperand& o, const Dims& shape) {
  return o.dense ? contiguous_strides(shape) : o.strides;
}

char* address_of(const PendingOperand& o) {
  return static_cast<char*>(o.storage->data) +
         o.offset * static_cast<int64_t>(itemsize(o.dtype));
}

}  // namespace

void GroupRunner::run_group(const Group& g) {
  std::vector<Instr> instrs(g.ops.size() * kMaxInstrsPerOp);
  std::vector<Imm> immediates(g.ops.size() * kMaxImmediatesPerOp);
  std::vector<RegClass> immediate_cls(immediates.size());
  ProgramBuilder builder{instrs.data(), immediates.data(), immediate_cls.data()};
  std::vector<const PendingOperand*> inputs;
  std::vector<uint16_t> value_of(g.ops.size(), 0);

  std::vector<TensorBase> reference;
  if (mode() == Mode::kCheck && g.ops.size() > 1) check_group(g, reference);

  auto position = [&](int32_t id) -> int {
    for (size_t n = 0; n < g.ops.size(); ++n)
      if (ops_[g.ops[n]].id == id) return static_cast<int>(n);
    return -1;
  };
  for (size_t n = 0; n < g.ops.size(); ++n) {
    const PendingOp& op = ops_[g.ops[n]];
    if (!live_[g.ops[n]]) continue;
    LoweredSource lowered[kMaxSources];
    for (int k = 0; k < op.num_sources; ++k) {
      LoweredSource& s = lowered[k];
      if (op.immediate[k]) {
        s.immediate = true;
        s.scalar = op.immediates[k];
        continue;
      }
      const PendingOperand& o = op.sources[k];
      s.dtype = o.dtype;
      if (int producer = o.value >= 0 ? position(o.value) : -1; producer >= 0) {
        s.source = {SourceKind::kValue, value_of[static_cast<size_t>(producer)]};
        continue;
      }
      auto it = std::find_if(inputs.begin(), inputs.end(), [&](const PendingOperand* have) {
        return same_place(*have, g.shape, o, g.shape);
      });
      s.source = {SourceKind::kInput, static_cast<uint16_t>(it - inputs.begin())};
      if (it == inputs.end()) inputs.push_back(&o);
    }
    value_of[n] = builder.lower(*op.body, op.cls, op.common, op.result, op.out.dtype, lowered,
                                op.num_sources, op.scalars, op.num_scalars);
  }

  // Memory for the results first: if that fails, nothing has run.
  std::vector<size_t> stored;
  for (size_t n = 0; n < g.ops.size(); ++n) {
    if (!g.store[n]) continue;
    Storage& s = *ops_[g.ops[n]].out.storage;
    if (!s.data) allocate_on(s, stream_.stream_);
    stored.push_back(n);
  }

  Dims sizes = g.shape;
  std::vector<Dims> strides;
  for (size_t n : stored) strides.push_back(strides_of(ops_[g.ops[n]].out, g.shape));
  for (const PendingOperand* o : inputs) strides.push_back(strides_of(*o, g.shape));
  merge_dims(sizes, strides);
  std::vector<Operand> in(inputs.size());
  for (size_t k = 0; k < inputs.size(); ++k)
    in[k] = {address_of(*inputs[k]), inputs[k]->dtype, strides[stored.size() + k].data()};
  std::vector<GroupOutput> out(stored.size());
  for (size_t k = 0; k < stored.size(); ++k) {
    const PendingOperand& o = ops_[g.ops[stored[k]]].out;
    out[k] = {{address_of(o), o.dtype, strides[k].data()}, value_of[stored[k]]};
  }
  GroupProgram program{sizes.ndim(),
                       sizes.data(),
                       g.numel,
                       static_cast<int>(in.size()),
                       in.data(),
                       builder.num_instrs,
                       instrs.data(),
                       static_cast<int>(out.size()),
                       out.data(),
                       builder.num_immediates,
                       immediates.data(),
                       immediate_cls.data()};
  Device device = stream_.device_;
  Exec exec = device.is_cpu() ? Exec{0, nullptr} : Exec{device.index, stream_.stream_};
  check(backend_of(device).run_group(exec, &program), "a fused group");
  stream_.explanation_ += describe(g);
  if (!reference.empty()) {
    for (size_t k = 0; k < stored.size(); ++k) {
      const PendingOp& op = ops_[g.ops[stored[k]]];
      compare_stored(device, exec, op, g.shape, reference[stored[k]], describe(g));
    }
  }
}

// Readable code, one line an operator.
std::string GroupRunner::describe(const Group& g) const {
  std::string text = cat("group over ", g.shape, " on ", stream_.device_, "\n");
  for (size_t n = 0; n < g.ops.size(); ++n) {
    const PendingOp& op = ops_[g.ops[n]];
    if (!live_[g.ops[n]]) continue;
    text += cat("  v", op.id, " = ", op.op->name, "(");
    for (int k = 0; k < op.num_sources; ++k) {
      if (k) text += ", ";
      const PendingOperand& o = op.sources[k];
      if (op.immediate[k]) text += cat(op.immediates[k].to_double());
      else if (o.value >= 0) text += cat("v", o.value);
      else text += cat("load ", dtype_name(o.dtype), o.dense ? "" : " strided");
    }
    for (int k = 0; k < op.num_scalars; ++k) text += cat(", ", op.scalars[k].to_double());
    text += cat(") : ", dtype_name(op.out.dtype), g.store[n] ? "  -> stored" : "", "\n");
  }
  return text;
}

}  // namespace tessera::fuse
