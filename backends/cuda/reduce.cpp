#include "reduce.h"

#include "codegen.h"
#include "interpret.h"

namespace tessera::cuda {
namespace {

// Its kernel where that is compiled, else the one of any form where that is; null: neither.
Status kernel_meanwhile(Device& d, const ReducePass& p, const Hash128& key, const Kernel** k) {
  if (!never_compiles()) {
    TS_TRY(ask_kernel(d, key, reduce_text(p), kReduceEntry, p.body->name, k, Effort::kFull));
    if (*k) return ok();
  }
  const Hash128 general = general_reduce_key(p, static_cast<uint64_t>(d.ordinal));
  if ((*k = find_kernel(general))) return ok();
  const std::string text = general_reduce_text(p);
  if (!never_compiles() && !is_compiled(text, d.arch, Effort::kFull)) return ok();
  return build_kernel(d, general, text, kGeneralReduceEntry, kGeneralReduceEntry, k, Effort::kFull);
}

Status find_kernel_of(Device& d, CUstream stream, const ReducePass& p, const Joins& joins,
                      const Kernel** k) {
  Hasher h = reduce_key(p, static_cast<uint64_t>(d.ordinal));
  const bool company = joins.before() || joins.after();
  if (company) joins.add_to(h, p.vec);
  const Hash128 key = h.finish();
  *k = find_kernel(key);
  if (!*k && !company && interprets(d, stream)) TS_TRY(kernel_meanwhile(d, p, key, k));
  if (*k) return ok();
  return get_kernel(d, key, kReduceEntry, p.body->name, k,
                    [&] { return company ? reduce_text(p, joins.text(p.vec)) : reduce_text(p); });
}

Status launch_pass(Device& d, CUstream stream, const ReducePass& p, const Kernel& k, const void* in,
                   void* out, const Joins& joins) {
  uint64_t words[kMaxParamWords];
  reduce_params(p, in, out, words);
  if (!joins.put(words, kReduceWords) || (p.columns && (joins.before() || joins.after())))
    return fail(Code::kUnsupported, "%s(): too much joins it", p.body->name);
  Grid grid{p.blocks(), kReduceThreads, p.columns ? p.splits : 1};
  return launch(d, stream, k, grid, words, "launching a reduction");
}

}  // namespace

Status PreparedReduction::prepare(Device& d, CUstream stream) {
  if (r_.kept_numel == 0) return ok();
  if (!plan_reduce(r_, &first_))
    return fail(Code::kUnsupported, "%s over more than %d separate dimensions", r_.body->name,
                kReduceMaxDims);
  if (first_.splits == 1) return find_kernel_of(d, stream, first_, joins_, &kernels_[0]);
  second_ = second_pass(first_);
  TS_TRY(find_kernel_of(d, stream, first_, joins_.only_before(), &kernels_[0]));
  return find_kernel_of(d, stream, second_, joins_.only_after(), &kernels_[1]);
}

Status PreparedReduction::run(Device& d, CUstream stream) const {
  if (r_.kept_numel == 0) return ok();
  if (first_.splits == 1)
    return launch_pass(d, stream, first_, *kernels_[0], r_.in, r_.out, joins_);
  Scratch partials(d, stream);
  TS_TRY(partials.take(static_cast<size_t>(first_.splits * first_.kept_numel) * reg_size(r_.cls)));
  void* between = reinterpret_cast<void*>(partials.address());
  TS_TRY(launch_pass(d, stream, first_, *kernels_[0], r_.in, between, joins_.only_before()));
  return launch_pass(d, stream, second_, *kernels_[1], between, r_.out, joins_.only_after());
}

Status run_reduce_on(Device& d, CUstream stream, const ReduceProgram& r, const Joins& joins) {
  PreparedReduction reduction(r, joins);
  TS_TRY(reduction.prepare(d, stream));
  return reduction.run(d, stream);
}

}  // namespace tessera::cuda
