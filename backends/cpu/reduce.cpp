#include "reduce.h"

#include "convert.h"
#include "kernels.h"
#include "reduce_tree.h"

namespace tessera::cpu {

namespace {

struct Finish {
  const ReduceProgram& p;
  const ReduceBody::Loops& loops;
  int64_t count;  // elements in each result
};

// Accumulators to results: finished, converted, stored.
void finish(const void* ctx, void* acc, int64_t n, int64_t at, int64_t step, char* tile) {
  const Finish& f = *static_cast<const Finish*>(ctx);
  f.loops.finish(acc, n, f.count);
  const ConvertTable& c = converts();
  const RegClass to = reg_class(f.p.out_dtype);
  const void* from = acc;
  if (to != f.p.cls) {
    c.conversion(f.p.cls, f.p.out_dtype)(tile, acc, n);
    from = tile;
  }
  store_results(f.p.out, f.p.out_dtype, from, n, at, step);
}

}  // namespace

Status run_reduce(Exec, const ReduceProgram* program) noexcept {
  return run_reduce(*program, nullptr, nullptr);
}

Status run_reduce(const ReduceProgram& p, void (*make)(const void*, int64_t, int64_t, void*),
                  const void* make_ctx) noexcept {
  const ReduceBody::Loops& loops = p.body->loops[g_isa][static_cast<int>(p.cls)];
  if (!loops.run)
    return fail(Code::kUnsupported, "%s(): not implemented for %s", p.body->name,
                dtype_name(p.out_dtype));
  Finish ctx{p, loops, p.reduced_numel};
  return run_reduction(
      {.in = p.in,
       .make = make,
       .make_ctx = make_ctx,
       .in_dtype = p.in_dtype,
       .cls = p.cls,
       .element_dtype = reg_class(p.out_dtype) == p.cls ? std::optional(p.out_dtype) : std::nullopt,
       .kept_ndim = p.kept_ndim,
       .kept_sizes = p.kept_sizes,
       .kept_strides = p.in_kept_strides,
       .reduced_ndim = p.reduced_ndim,
       .reduced_sizes = p.reduced_sizes,
       .reduced_strides = p.in_reduced_strides,
       .loops = &loops,
       .acc_bytes = reg_size(p.cls),
       .finish = finish,
       .ctx = &ctx},
      p.body->name);
}

}  // namespace tessera::cpu
