#include "reduce.h"

#include "kernel.h"
#include "reduce_text.h"

namespace tessera::cuda {
namespace {

Status run_pass(Device& d, CUstream stream, const ReducePass& p, const void* in, void* out) {
  const Kernel* k = nullptr;
  TS_TRY(get_kernel(d, reduce_key(p, static_cast<uint64_t>(d.ordinal)), kReduceEntry, p.body->name,
                    &k, [&] { return reduce_text(p); }));
  uint64_t words[kReduceWords];
  reduce_params(p, in, out, words);
  Grid grid{p.blocks(), kReduceThreads, p.columns ? p.splits : 1};
  return launch(d, stream, *k, grid, words, "launching a reduction");
}

}  // namespace

Status run_reduce_on(Device& d, CUstream stream, const ReduceProgram& r) {
  if (r.kept_numel == 0) return ok();
  ReducePass first;
  if (!plan_reduce(r, &first))
    return fail(Code::kUnsupported, "%s over more than %d separate dimensions", r.body->name,
                kReduceMaxDims);
  if (first.splits == 1) return run_pass(d, stream, first, r.in, r.out);
  Scratch partials(d, stream);
  TS_TRY(partials.take(static_cast<size_t>(first.splits * first.kept_numel) * reg_size(r.cls)));
  void* between = reinterpret_cast<void*>(partials.address());
  TS_TRY(run_pass(d, stream, first, r.in, between));
  return run_pass(d, stream, second_pass(first), between, r.out);
}

}  // namespace tessera::cuda
