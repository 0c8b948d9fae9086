#include "reduce.h"

#include "codegen.h"
#include "kernel.h"
#include "reduce_text.h"

namespace tessera::cuda {
namespace {

Status run_pass(Device& d, CUstream stream, const ReducePass& p, const void* in, void* out,
                const Joins& joins) {
  Hasher h = reduce_key(p, static_cast<uint64_t>(d.ordinal));
  const bool company = joins.before() || joins.after();
  if (company) joins.add_to(h, p.vec);
  const Kernel* k = nullptr;
  TS_TRY(get_kernel(d, h.finish(), kReduceEntry, p.body->name, &k,
                    [&] { return company ? reduce_text(p, joins.text(p.vec)) : reduce_text(p); }));
  uint64_t words[kMaxParamWords];
  reduce_params(p, in, out, words);
  if (!joins.put(words, kReduceWords) || (company && p.columns))
    return fail(Code::kUnsupported, "%s(): too much joins it", p.body->name);
  Grid grid{p.blocks(), kReduceThreads, p.columns ? p.splits : 1};
  return launch(d, stream, *k, grid, words, "launching a reduction");
}

}  // namespace

Status run_reduce_on(Device& d, CUstream stream, const ReduceProgram& r, const Joins& joins) {
  if (r.kept_numel == 0) return ok();
  ReducePass first;
  if (!plan_reduce(r, &first))
    return fail(Code::kUnsupported, "%s over more than %d separate dimensions", r.body->name,
                kReduceMaxDims);
  if (first.splits == 1) return run_pass(d, stream, first, r.in, r.out, joins);
  Scratch partials(d, stream);
  TS_TRY(partials.take(static_cast<size_t>(first.splits * first.kept_numel) * reg_size(r.cls)));
  void* between = reinterpret_cast<void*>(partials.address());
  TS_TRY(run_pass(d, stream, first, r.in, between, joins.only_before()));
  return run_pass(d, stream, second_pass(first), between, r.out, joins.only_after());
}

}  // namespace tessera::cuda
