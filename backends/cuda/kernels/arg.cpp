// arg_max and arg_min: the largest or smallest element along a dimension and where it is. A NaN
// wins over every number, the first of equals over the others.
#include "fold.h"

namespace tessera::cuda {
namespace {

constexpr const char* kArg = R"(
typedef T::A A;
struct State { A v; int64_t at; };
TS_FN State none() { return State{A(0), -1}; }
TS_FN bool beats(A x, A best) {
  const bool more = OPTION ? x > best : x < best;
  return more || (x != x && best == best);
}
TS_FN State join(const State& a, const State& b) {
  if (b.at < 0) return a;
  if (a.at < 0) return b;
  const bool second = beats(b.v, a.v) || (!beats(a.v, b.v) && b.at < a.at);
  return second ? b : a;
}
TS_FN A pivot(const T::S*, int64_t) { return A(0); }
TS_FN State of(const A (&v)[N], int count, int64_t first, int64_t step, A) {
  A best = v[0];
  int at = 0;
  #pragma unroll
  for (int i = 1; i < N; ++i)
    if (i < count && beats(v[i], best)) { best = v[i]; at = i; }
  return State{best, first + at / kRun * step + at % kRun};
}
TS_FN void finish(const Params& p, int64_t line, const State& s) {
  if constexpr (OUTPUTS > 1) ((O::S*)p.out[0])[line] = O::st(s.v);
  ((int64_t*)p.out[1])[line] = s.at;
}
)";

template <bool kMax>
Status run_arg(Device& d, CUstream stream, const KernelArgs& args) {
  static const FoldOp& op = *new FoldOp(make_fold("arg_extreme", "arg_extreme_merge", kArg));
  const KernelTensor& x = args.inputs[0];
  if (is_complex(x.dtype))
    return fail(Code::kUnsupported, "%s(): not implemented for %s", kMax ? "max" : "min",
                dtype_name(x.dtype));
  const int dim = static_cast<int>(args.ints[0]);
  FoldParams p{};
  p.n = x.ndim > 0 ? x.sizes[dim] : 1;
  p.lines = args.outputs[0].numel;
  for (int i = 0; i < x.ndim; ++i)
    TS_TRY((i == dim ? p.along : p.kept).add(x.sizes[i], {x.strides[i]}));
  if (args.num_outputs > 1) p.out[0] = args.outputs[0].data;
  p.out[1] = args.outputs[args.num_outputs - 1].data;
  return run_fold(d, stream, op, x, p, x.dtype, args.num_outputs, kMax);
}

TS_CUDA_KERNEL("arg_max", run_arg<true>)
TS_CUDA_KERNEL("arg_min", run_arg<false>)

}  // namespace
}  // namespace tessera::cuda
