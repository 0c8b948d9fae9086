// "var_mean": the variance and the mean along dimensions.
//   outputs  variance and mean, dense, the kept dimensions in order (ones are allowed anywhere)
//   inputs   float or double of any width and layout
//   ints     the dimensions reduced
//   doubles  what is subtracted from the number of elements in the divisor
#include <algorithm>
#include <cmath>

#include "convert.h"
#include "kernels.h"
#include "reduce_moments.h"
#include "reduce_tree.h"
#include "tessera/ops/reduce_loops.h"

namespace tessera::cpu {

namespace {

struct Finish {
  const KernelArgs& args;
  double divisor;
  bool empty;
};

void store_as(const KernelTensor& to, const double* values, int64_t n, int64_t at, int64_t step,
              char* tile) {
  const ConvertTable& c = converts();
  const RegClass cls = reg_class(to.dtype);
  const void* from = values;
  if (cls != RegClass::kF64) {
    c.convert[static_cast<int>(RegClass::kF64)][static_cast<int>(cls)](tile, values, n);
    from = tile;
  }
  store_results(to.data, to.dtype, from, n, at, step);
}

void finish(const void* ctx, void* acc, int64_t n, int64_t at, int64_t step, char* tile) {
  const Finish& f = *static_cast<const Finish*>(ctx);
  double *mean = static_cast<double*>(acc), *m2 = mean + n;
  for (int64_t i = 0; i < n; ++i) m2[i] = loops::one_nan(m2[i] / f.divisor);
  for (int64_t i = 0; i < n; ++i) mean[i] = loops::one_nan(mean[i]);
  if (f.empty) std::fill_n(mean, 2 * n, std::nan(""));
  store_as(f.args.outputs[0], m2, n, at, step, tile);
  store_as(f.args.outputs[1], mean, n, at, step, tile);
}

Status var_mean(const KernelArgs& args) {
  const KernelTensor& x = args.inputs[0];
  const RegClass cls = reg_class(x.dtype);
  const ReduceBody::Loops* loops = moments_loops(cls);
  if (!loops) return fail(Code::kUnsupported, "var(): not implemented for %s", dtype_name(x.dtype));
  int64_t sizes[2][kMaxDims], strides[2][kMaxDims], count = 1;
  int n[2] = {0, 0};
  for (int d = 0; d < x.ndim; ++d) {
    const bool reduced = std::count(args.ints, args.ints + args.num_ints, d) > 0;
    if (reduced) count *= x.sizes[d];
    sizes[reduced][n[reduced]] = x.sizes[d];
    strides[reduced][n[reduced]++] = x.strides[d];
  }
  Finish ctx{args, std::max(0.0, static_cast<double>(count) - args.doubles[0]), count == 0};
  Reduction r{.in = x.data,
              .in_dtype = x.dtype,
              .cls = cls,
              .kept_ndim = n[0],
              .kept_sizes = sizes[0],
              .kept_strides = strides[0],
              .reduced_ndim = n[1],
              .reduced_sizes = sizes[1],
              .reduced_strides = strides[1],
              .loops = loops,
              .acc_bytes = 16,
              .acc_parts = 2,
              .finish = finish,
              .ctx = &ctx};
  return run_reduction(r, "var");
}

}  // namespace

TS_KERNEL("var_mean", var_mean)

}  // namespace tessera::cpu
