#include "group.h"

#include <algorithm>

#include "codegen.h"
#include "interpret.h"
#include "kernel.h"

namespace tessera::cuda {

bool is_refused(Device& d, CUstream stream, const GroupProgram& g) {
  const int bodies = num_bodies(g);
  if (bodies <= 1) return false;
  if (!interprets(d, stream, bodies)) return makes_too_many_kernels();
  return !can_interpret(g) && (makes_too_many_kernels() || !is_much(d, g.numel));
}

Status run_group_on(Device& d, CUstream stream, const GroupProgram& g, bool may_refuse) {
  if (g.numel == 0 || g.num_outputs == 0) return ok();
  GroupPlan plan;
  uint64_t words[kMaxParamWords];
  if (!plan_group(g, &plan) || group_params(g, plan, words) == 0)
    return fail(Code::kUnsupported,
                "a group of %d inputs and %d outputs in %d dimensions is too large", g.num_inputs,
                g.num_outputs, g.ndim);
  const Hash128 key = group_key(g, plan, static_cast<uint64_t>(d.ordinal));
  const int bodies = num_bodies(g);
  const Kernel* k = never_compiles(bodies) ? nullptr : find_kernel(key);
  if (!k && interprets(d, stream, bodies)) {
    const bool repeats = bodies <= 1 || !makes_too_many_kernels();
    if (repeats && !never_compiles(bodies))
      TS_TRY(ask_kernel(d, key, group_text(g, plan), kGroupEntry, name_of(g), &k, effort_of(plan)));
    if (!k)
      if (Status s = interpret_group(d, stream, g); s.code != Code::kUnsupported) return s;
  }
  if (!k && may_refuse && is_refused(d, stream, g))
    return fail(Code::kUnsupported, "its kernel is not there, and is not waited for");
  if (!k)
    TS_TRY(get_kernel(
        d, key, kGroupEntry, name_of(g), &k, [&] { return group_text(g, plan); }, effort_of(plan)));
  Grid grid{std::min<int64_t>(group_blocks(g, plan), INT32_MAX),
            plan.mode == GroupMode::kTile ? kTileThreads : kGroupThreads};
  return launch(d, stream, *k, grid, words, "launching a pointwise kernel");
}

Status convert_strided(Device& d, CUstream stream, int ndim, const int64_t* sizes,
                       const Operand& from, const Operand& to) {
  int64_t numel = 1;
  for (int i = 0; i < ndim; ++i) numel *= sizes[i];
  Instr convert{};
  convert.kind = Instr::Kind::kConvert;
  convert.cls = reg_class(from.dtype);
  convert.result_cls = reg_class(to.dtype);
  convert.round_to = to.dtype;
  convert.num_sources = 1;
  convert.sources[0] = {SourceKind::kInput, 0};
  GroupOutput out{to, 0};
  GroupProgram g{};
  g.ndim = ndim;
  g.sizes = sizes;
  g.numel = numel;
  g.num_inputs = 1;
  g.inputs = &from;
  g.num_instrs = 1;
  g.instrs = &convert;
  g.num_outputs = 1;
  g.outputs = &out;
  return run_group_on(d, stream, g, false);
}

Status copy_strided(Device& d, CUstream stream, void* dst, const void* src, DType dtype, int ndim,
                    const int64_t* sizes, const int64_t* strides) {
  int64_t dense[kMaxDims];
  int64_t numel = 1;
  for (int i = ndim - 1; i >= 0; --i) {
    dense[i] = numel;
    numel *= sizes[i];
  }
  return convert_strided(d, stream, ndim, sizes, {const_cast<void*>(src), dtype, strides},
                         {dst, dtype, dense});
}

}  // namespace tessera::cuda
