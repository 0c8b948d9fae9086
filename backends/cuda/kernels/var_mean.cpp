// var_mean: the variance and the mean along dimensions, in one pass.
#include <algorithm>

#include "fold.h"
#include "row_var.h"

namespace tessera::cuda {
namespace {

// Of a thread's elements the mean and the squares around it, and then Chan's rule: nothing is lost
// where the mean is large beside the spread.
constexpr const char* kMoments = R"(
typedef T::A A;
struct State { A mean, m2, n; };
TS_FN State none() { return State{A(0), A(0), A(0)}; }
TS_FN State join(const State& a, const State& b) {
  if (b.n == A(0)) return a;
  if (a.n == A(0)) return b;
  State s;
  s.n = a.n + b.n;
  // Halves are the rule; a division takes as long as all the rest.
  const A share = a.n == b.n ? A(0.5) : b.n / s.n, d = b.mean - a.mean;
  s.mean = isfinite(d) ? a.mean + d * share : a.mean * (A(1) - share) + b.mean * share;
  s.m2 = a.m2 + b.m2 + d * d * (a.n * share);
  return s;
}
// All is counted from the line's first element, so that a mean that is large beside the spread costs
// it no digits.
TS_FN A pivot(const T::S* line, int64_t n) {
  const A first = n > 0 ? T::ld(line[0]) : A(0);
  return abs(first) < A(1e30) ? first : A(0);
}
TS_FN State of(const A (&v)[N], int count, int64_t, int64_t, A about) {
  A d[N], sum = A(0), m2 = A(0);
  #pragma unroll
  for (int i = 0; i < N; ++i) {
    d[i] = i < count ? v[i] - about : A(0);
    sum += d[i];
  }
  const A n = (A)count;
  A mean = count == N ? sum * A(1.0 / N) : sum / n;
  if (!isfinite(mean)) {  // the sum may have left the range where the mean does not
    const A part = A(1) / n;
    mean = A(0);
    #pragma unroll
    for (int i = 0; i < N; ++i) mean += d[i] * part;
  }
  #pragma unroll
  for (int i = 0; i < N; ++i) {
    const A apart = i < count ? d[i] - mean : A(0);
    m2 += apart * apart;
  }
  return State{mean, m2, n};
}
TS_FN void finish(const Params& p, int64_t line, const State& s) {
  const A nothing = std::numeric_limits<A>::quiet_NaN(), about = pivot(p.x + offset(p.kept, line), p.n);
  const A var = s.n == A(0) ? nothing : s.m2 / (A)p.number;
  const A mean = s.n == A(0) ? nothing : s.mean + about;
  ((O::S*)p.out[0])[line] = O::st((O::A)var);
  ((O::S*)p.out[1])[line] = O::st((O::A)mean);
}
)";

Status run_var_mean(Device& d, CUstream stream, const KernelArgs& args) {
  static const FoldOp& op = *new FoldOp(make_fold("var_mean", "var_mean_merge", kMoments));
  const KernelTensor& x = args.inputs[0];
  if (!is_floating(x.dtype))
    return fail(Code::kUnsupported, "var(): not implemented for %s", dtype_name(x.dtype));
  Status status;
  if (run_row_var(d, stream, args, &status)) return status;
  FoldParams p{};
  p.n = p.lines = 1;
  for (int i = 0; i < x.ndim; ++i) {
    const bool reduced = std::count(args.ints, args.ints + args.num_ints, i) > 0;
    (reduced ? p.n : p.lines) *= x.sizes[i];
    TS_TRY((reduced ? p.along : p.kept).add(x.sizes[i], {x.strides[i]}));
  }
  p.number = std::max(0.0, static_cast<double>(p.n) - args.doubles[0]);
  for (int i = 0; i < 2; ++i) p.out[i] = args.outputs[i].data;
  return run_fold(d, stream, op, x, p, args.outputs[0].dtype, 2);
}

TS_CUDA_KERNEL("var_mean", run_var_mean)

}  // namespace
}  // namespace tessera::cuda
