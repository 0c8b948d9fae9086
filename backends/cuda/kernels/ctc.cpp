// The connectionist temporal classification loss: sums over alignments of a target with blanks
// between its labels, forwards (alpha) and backwards (beta), as logarithms. A block has a sequence,
// its threads the states of one step; for the gradient a block has a step.
#include <algorithm>

#include "../kernels.h"
#include "../text.h"
#include "join.h"

namespace tessera::cuda {
namespace {

constexpr int kSequences = 120;  // of a launch: their lengths travel in its parameters

constexpr char kShared[] = R"(
typedef T::A A;
struct Sequence { int64_t target, steps, length; };
struct Params {
  const A* log_probs; const int64_t* targets; A* loss; A* alpha; A* beta; const A* g; A* grad;
  ErrorSlot* slot; int64_t steps, batch, classes, width, blank, first; Sequence of[120];
};
struct Path {
  const A* log_probs; const int64_t* target; int64_t step, blank, steps, length, classes;
  ErrorSlot* slot;
  TS_MEMBER int64_t states() const { return 2 * length + 1; }
  // A label that is no class is reported, and counts as a blank.
  TS_MEMBER int64_t label_at(int64_t i) const {
    const int64_t c = target[i];
    if (c >= 0 && c < classes) return c;
    report(slot, (int)ERROR, c, classes, 0);
    return blank;
  }
  TS_MEMBER int64_t label(int64_t s) const { return s % 2 == 0 ? blank : label_at(s / 2); }
  TS_MEMBER A log_prob(int64_t t, int64_t s) const { return log_probs[t * step + label(s)]; }
  // May a path go from state s - 2 to s? Not over a blank between equal labels.
  TS_MEMBER bool skips(int64_t s) const {
    return s % 2 == 1 && s > 1 && target[s / 2] != target[s / 2 - 1];
  }
};
TS_FN Path path_of(const Params& p, int64_t k) {
  Path q;
  q.log_probs = p.log_probs + (p.first + k) * p.classes;
  q.target = p.targets + p.of[k].target;
  q.step = p.batch * p.classes;
  q.blank = p.blank;
  q.steps = p.of[k].steps;
  q.length = p.of[k].length;
  q.classes = p.classes;
  q.slot = p.slot;
  return q;
}
TS_FN A never() { return -std::numeric_limits<A>::infinity(); }
TS_FN A log_sum(A a, A b, A c) {
  A top = b < c ? c : b;
  top = a < top ? top : a;
  if (top == never()) return top;
  return log(exp(a - top) + exp(b - top) + exp(c - top)) + top;
}
)";

// Steps follow each other: with a state a thread (ONE) a step is kept in shared memory, and the
// probabilities of the next are loaded while it is computed.
constexpr auto kAlphaText = join(kShared, R"(
extern "C" __global__ void __launch_bounds__(1024) ctc_alpha(const __grid_constant__ Params p) {
  const Path q = path_of(p, blockIdx.x);
  A* alpha = p.alpha + (p.first + blockIdx.x) * p.steps * p.width;
  A* loss = p.loss + p.first + blockIdx.x;
  const int64_t states = q.states();
  if (q.steps == 0) {
    if (threadIdx.x == 0) *loss = q.length == 0 ? A(0) : -never();
    return;
  }
  if constexpr (ONE) {
    __shared__ A rows[2][1026];  // two that never are in front of the states
    const int s = threadIdx.x;
    const bool there = s < states, skips = there && q.skips(s);
    const A* from = q.log_probs + (there ? q.label(s) : q.blank);
    if (s < 2) rows[0][s] = rows[1][s] = never();
    A next = from[0];
    for (int64_t t = 0; t < q.steps; ++t) {
      const A lp = next;
      if (t + 1 < q.steps) next = from[(t + 1) * q.step];
      const A* before = rows[(t + 1) % 2] + s;
      A now = never();
      if (t == 0) { if (there && s < 2) now = lp; }
      else if (there) now = log_sum(before[2], before[1], skips ? before[0] : never()) + lp;
      rows[t % 2][s + 2] = now;
      if (s < p.width) alpha[t * p.width + s] = now;
      __syncthreads();
    }
  } else {
    for (int64_t s = threadIdx.x; s < p.width; s += blockDim.x)
      alpha[s] = s < 2 && s < states ? q.log_prob(0, s) : never();
    __syncthreads();
    for (int64_t t = 1; t < q.steps; ++t) {
      const A* before = alpha + (t - 1) * p.width;
      A* now = alpha + t * p.width;
      for (int64_t s = threadIdx.x; s < p.width; s += blockDim.x)
        now[s] = s >= states ? never()
            : log_sum(before[s], s > 0 ? before[s - 1] : never(), q.skips(s) ? before[s - 2] : never()) +
                  q.log_prob(t, s);
      __syncthreads();
    }
  }
  if (threadIdx.x != 0) return;
  const A* last = alpha + (q.steps - 1) * p.width;
  *loss = -log_sum(last[states - 1], states > 1 ? last[states - 2] : never(), never());
})");
constexpr TextKernel kAlpha{"ctc_alpha", kAlphaText.text};

constexpr auto kBetaText = join(kShared, R"(
extern "C" __global__ void __launch_bounds__(1024) ctc_beta(const __grid_constant__ Params p) {
  const Path q = path_of(p, blockIdx.x);
  A* beta = p.beta + (int64_t)blockIdx.x * p.steps * p.width;
  const int64_t states = q.states();
  if constexpr (ONE) {
    __shared__ A rows[2][1026];  // two that never are behind the states
    const int s = threadIdx.x;
    const bool there = s < states, skips = s + 2 < states && q.skips(s + 2);
    const A* from = q.log_probs + (there ? q.label(s) : q.blank);
    if (s < 2) rows[0][blockDim.x + s] = rows[1][blockDim.x + s] = never();
    __syncthreads();
    A next = q.steps > 0 ? from[(q.steps - 1) * q.step] : A(0);
    for (int64_t t = q.steps - 1; t >= 0; --t) {
      const A lp = next;
      if (t > 0) next = from[(t - 1) * q.step];
      const A* after = rows[(t + 1) % 2] + s;
      A now = never();
      if (t == q.steps - 1) { if (there && s >= states - 2) now = lp; }
      else if (there) now = log_sum(after[0], after[1], skips ? after[2] : never()) + lp;
      rows[t % 2][s] = now;
      if (there) beta[t * p.width + s] = now;
      __syncthreads();
    }
  } else {
    for (int64_t t = q.steps - 1; t >= 0; --t) {
      A* now = beta + t * p.width;
      const A* after = now + p.width;
      for (int64_t s = threadIdx.x; s < states; s += blockDim.x) {
        if (t == q.steps - 1)
          now[s] = s >= states - 2 ? q.log_prob(t, s) : never();
        else
          now[s] = log_sum(after[s], s + 1 < states ? after[s + 1] : never(),
                           s + 2 < states && q.skips(s + 2) ? after[s + 2] : never()) + q.log_prob(t, s);
      }
      __syncthreads();
    }
  }
})");
constexpr TextKernel kBeta{"ctc_beta", kBetaText.text};

// grad[t][c] = (p - sum over the states of c of exp(alpha + beta) / (p * likelihood)) * g.
constexpr auto kGradText = join(kShared, R"(
TS_FN A gradient(A lp, A sum, A loss, A g) { return (exp(lp) - exp(sum + loss - lp)) * g; }
extern "C" __global__ void __launch_bounds__(256) ctc_grad(const __grid_constant__ Params p) {
  const int64_t k = blockIdx.y, b = p.first + k;
  const Path q = path_of(p, k);
  const A loss = p.loss[b], g = p.g[b];
  const bool none = ZERO_INFINITY && (loss == never() || loss == -never());
  __shared__ A parts[256];
  for (int64_t t = blockIdx.x; t < p.steps; t += gridDim.x) {
    A* grad = p.grad + (t * p.batch + b) * p.classes;
    const A* lp = q.log_probs + t * q.step;
    if (none || t >= q.steps) {
      for (int64_t c = threadIdx.x; c < p.classes; c += 256) grad[c] = A(0);
      continue;
    }
    const A* alpha = p.alpha + (b * p.steps + t) * p.width;
    const A* beta = p.beta + (k * p.steps + t) * p.width;
    for (int64_t c = threadIdx.x; c < p.classes; c += 256) grad[c] = gradient(lp[c], never(), loss, g);
    // States of the blank: all threads. Labels that are the blank, too, belong to it.
    A sum = never();
    for (int64_t s = threadIdx.x; s < q.states(); s += 256)
      if (q.label(s) == q.blank) sum = log_sum(sum, alpha[s] + beta[s], never());
    parts[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
      if (threadIdx.x < half)
        parts[threadIdx.x] = log_sum(parts[threadIdx.x], parts[threadIdx.x + half], never());
      __syncthreads();
    }
    if (threadIdx.x == 0) grad[q.blank] = gradient(lp[q.blank], parts[0], loss, g);
    // Other labels: the first state of each has its sum.
    for (int64_t i = threadIdx.x; i < q.length; i += 256) {
      const int64_t c = q.label_at(i);
      if (c == q.blank) continue;
      bool seen = false;
      for (int64_t j = 0; j < i && !seen; ++j) seen = q.target[j] == c;
      if (seen) continue;
      A x = never();
      for (int64_t j = q.length - 1; j >= i; --j)
        if (q.target[j] == c) x = log_sum(x, alpha[2 * j + 1] + beta[2 * j + 1], never());
      grad[c] = gradient(lp[c], x, loss, g);
    }
    __syncthreads();
  }
})");
constexpr TextKernel kGrad{"ctc_grad", kGradText.text};

struct Sequence {
  int64_t target, steps, length;
};
struct Params {
  const void *log_probs, *targets;
  void *loss, *alpha;
  CUdeviceptr beta;
  const void* g;
  void* grad;
  CUdeviceptr slot;
  int64_t steps, batch, classes, width, blank, first;
  Sequence of[kSequences];
};

// Calls f(params, n) for parts of the batch. ints: blank, zero_infinity, lengths of the inputs,
// lengths of the targets.
template <class F>
Status for_parts(Params& p, const KernelTensor& targets, const int64_t* ints, F&& f) {
  const int64_t *inputs = ints + 2, *lengths = inputs + p.batch;
  int64_t at = 0;
  for (p.first = 0; p.first < p.batch; p.first += kSequences) {
    const int64_t n = std::min<int64_t>(kSequences, p.batch - p.first);
    for (int64_t k = 0; k < n; ++k) {
      const int64_t b = p.first + k;
      p.of[k] = {targets.ndim == 2 ? b * targets.sizes[1] : at, inputs[b], lengths[b]};
      at += lengths[b];
    }
    TS_TRY(f(n));
  }
  return ok();
}

int threads_for(int64_t width) {
  return static_cast<int>(std::clamp<int64_t>((width + 31) / 32 * 32, 32, 1024));
}

Params params_of(Device& d, const KernelTensor& log_probs, const KernelTensor& targets,
                 int64_t width, int64_t blank) {
  Params p{};
  p.log_probs = log_probs.data;
  p.targets = targets.data;
  p.slot = d.slot_on_device;
  p.steps = log_probs.sizes[0];
  p.batch = log_probs.sizes[1];
  p.classes = log_probs.sizes[2];
  p.width = width;
  p.blank = blank;
  return p;
}

// inputs: log_probs, targets; outputs: losses, alphas.
Status run_ctc(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor &log_probs = args.inputs[0], &alpha = args.outputs[1];
  Params p = params_of(d, log_probs, args.inputs[1], alpha.sizes[2], args.ints[0]);
  p.loss = args.outputs[0].data;
  p.alpha = alpha.data;
  return for_parts(p, args.inputs[1], args.ints, [&](int64_t n) {
    return launch_text(d, stream, kAlpha,
                       {def("T", log_probs.dtype), def("ERROR", code_of(DataError::kCtcTarget)),
                        def("ONE", p.width <= 1024)},
                       {n, threads_for(p.width)}, &p);
  });
}

// inputs: gradient, log_probs, targets, losses, alphas.
Status run_ctc_backward(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor &log_probs = args.inputs[1], &alpha = args.inputs[4];
  Params p = params_of(d, log_probs, args.inputs[2], alpha.sizes[2], args.ints[0]);
  if (args.outputs[0].numel == 0) return ok();
  p.g = args.inputs[0].data;
  p.loss = args.inputs[3].data;
  p.alpha = alpha.data;
  p.grad = args.outputs[0].data;
  const int64_t at_once = std::min<int64_t>(p.batch, kSequences);
  Scratch beta(d, stream);
  TS_TRY(beta.take(static_cast<size_t>(at_once * p.steps * p.width) * itemsize(log_probs.dtype)));
  p.beta = beta.address();
  return for_parts(p, args.inputs[2], args.ints, [&](int64_t n) {
    const Def dtype = def("T", log_probs.dtype),
              error = def("ERROR", code_of(DataError::kCtcTarget));
    TS_TRY(launch_text(d, stream, kBeta, {dtype, error, def("ONE", p.width <= 1024)},
                       {n, threads_for(p.width)}, &p));
    return launch_text(d, stream, kGrad, {dtype, error, def("ZERO_INFINITY", args.ints[1] != 0)},
                       {std::min<int64_t>(p.steps, 1 << 20), 256, n}, &p);
  });
}

TS_CUDA_KERNEL("ctc_loss", run_ctc)
TS_CUDA_KERNEL("ctc_loss_backward", run_ctc_backward)

}  // namespace
}  // namespace tessera::cuda
