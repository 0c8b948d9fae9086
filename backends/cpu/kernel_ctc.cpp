// The connectionist temporal classification loss: sums over alignments of a target with blanks
// between its labels, forwards (alpha) and backwards (beta), as logarithms.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels.h"
#include "scratch.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

// One sequence of the batch.
template <class T>
struct Sequence {
  static constexpr T kNever = -std::numeric_limits<T>::infinity();
  const T* log_probs;  // of its first step
  int64_t step;        // from one step to the next
  const int64_t* target;
  int64_t blank, steps, length;

  int64_t states() const { return 2 * length + 1; }
  // Blanks stand before, between and behind the labels.
  int64_t label(int64_t s) const { return s % 2 == 0 ? blank : target[s / 2]; }
  T log_prob(int64_t t, int64_t s) const { return log_probs[t * step + label(s)]; }
  // May a path go from state s - 2 to s? Not over a blank between equal labels.
  bool skips(int64_t s) const { return s % 2 == 1 && s > 1 && target[s / 2] != target[s / 2 - 1]; }
};

template <class T>
T log_sum(T a, T b, T c) {
  const T top = std::max(a, std::max(b, c));
  if (top == Sequence<T>::kNever) return top;
  return std::log(std::exp(a - top) + std::exp(b - top) + std::exp(c - top)) + top;
}

template <class T>
T forward(const Sequence<T>& q, T* alpha, int64_t width) {
  constexpr T kNever = Sequence<T>::kNever;
  const int64_t states = q.states();
  if (q.steps == 0) return q.length == 0 ? T(0) : -kNever;
  std::fill_n(alpha, width, kNever);
  alpha[0] = q.log_prob(0, 0);
  if (states > 1) alpha[1] = q.log_prob(0, 1);
  for (int64_t t = 1; t < q.steps; ++t) {
    const T* before = alpha + (t - 1) * width;
    T* now = alpha + t * width;
    std::fill_n(now, width, kNever);
    for (int64_t s = 0; s < states; ++s)
      now[s] =
          log_sum(before[s], s > 0 ? before[s - 1] : kNever, q.skips(s) ? before[s - 2] : kNever) +
          q.log_prob(t, s);
  }
  const T* last = alpha + (q.steps - 1) * width;
  return -log_sum(last[states - 1], states > 1 ? last[states - 2] : kNever, kNever);
}

// grad[t][c] = (p - sum over the states of c of exp(alpha + beta) / (p * likelihood)) * g.
template <class T>
void backward(const Sequence<T>& q, const T* alpha, int64_t width, int64_t classes, T loss, T g,
              T* grad, T* beta, T* sums) {
  constexpr T kNever = Sequence<T>::kNever;
  const int64_t states = q.states();
  T *now = beta, *after = beta + width;
  for (int64_t t = q.steps - 1; t >= 0; --t) {
    std::fill_n(sums, classes, kNever);
    for (int64_t s = states - 1; s >= 0; --s) {
      if (t == q.steps - 1) {
        now[s] = s >= states - 2 ? q.log_prob(t, s) : kNever;
      } else {
        now[s] = log_sum(after[s], s + 1 < states ? after[s + 1] : kNever,
                         s + 2 < states && q.skips(s + 2) ? after[s + 2] : kNever) +
                 q.log_prob(t, s);
      }
      T& sum = sums[q.label(s)];
      sum = log_sum(sum, alpha[t * width + s] + now[s], kNever);
    }
    for (int64_t c = 0; c < classes; ++c) {
      const T lp = q.log_probs[t * q.step + c];
      grad[t * q.step + c] = (std::exp(lp) - std::exp(sums[c] + loss - lp)) * g;
    }
    std::swap(now, after);
  }
}

// ints: blank, zero_infinity, lengths of the inputs, lengths of the targets.
template <class T>
struct Batch {
  const KernelTensor &log_probs, &targets;
  const int64_t* ints;
  int64_t steps, batch, classes;
  const int64_t *input_lengths, *target_lengths;

  Batch(const KernelTensor& probs, const KernelTensor& labels, const int64_t* numbers)
      : log_probs(probs), targets(labels), ints(numbers) {
    steps = probs.sizes[0];
    batch = probs.sizes[1];
    classes = probs.sizes[2];
    input_lengths = ints + 2;
    target_lengths = ints + 2 + batch;
  }
  Sequence<T> sequence(int64_t b) const {
    const int64_t* labels = static_cast<const int64_t*>(targets.data);
    if (targets.ndim == 2)
      labels += b * targets.sizes[1];
    else
      for (int64_t i = 0; i < b; ++i) labels += target_lengths[i];
    return {static_cast<const T*>(log_probs.data) + b * classes,
            batch * classes,
            labels,
            ints[0],
            input_lengths[b],
            target_lengths[b]};
  }
  Status check() const {
    for (int64_t b = 0; b < batch; ++b) {
      const Sequence<T> q = sequence(b);
      for (int64_t i = 0; i < q.length; ++i)
        if (q.target[i] < 0 || q.target[i] >= classes)
          return fail(Code::kInvalid, "ctc_loss(): target %ld is not a class below %ld",
                      static_cast<long>(q.target[i]), static_cast<long>(classes));
    }
    return {};
  }
};

template <class T>
Status forward_as(const KernelArgs& args) {
  const Batch<T> all(args.inputs[0], args.inputs[1], args.ints);
  if (Status s = all.check(); !s.ok()) return s;
  T* losses = static_cast<T*>(args.outputs[0].data);
  T* alphas = static_cast<T*>(args.outputs[1].data);
  const int64_t width = args.outputs[1].sizes[2];
  parallel_for(0, all.batch, 1, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b)
      losses[b] = forward(all.sequence(b), alphas + b * all.steps * width, width);
  });
  return {};
}

template <class T>
Status backward_as(const KernelArgs& args) {
  const Batch<T> all(args.inputs[1], args.inputs[2], args.ints);
  if (Status s = all.check(); !s.ok()) return s;
  const T* g = static_cast<const T*>(args.inputs[0].data);
  const T* losses = static_cast<const T*>(args.inputs[3].data);
  const T* alphas = static_cast<const T*>(args.inputs[4].data);
  T* grads = static_cast<T*>(args.outputs[0].data);
  const int64_t width = args.inputs[4].sizes[2];
  const bool zero_infinity = args.ints[1] != 0;
  std::fill_n(grads, args.outputs[0].numel, T(0));
  OutOfScratch failure;
  parallel_for(0, all.batch, 1, [&](int64_t first, int64_t last) {
    Scratch scratch(static_cast<size_t>(2 * width + all.classes) * sizeof(T), failure);
    if (!scratch.get()) return;
    T* beta = static_cast<T*>(scratch.get());
    for (int64_t b = first; b < last; ++b) {
      if (zero_infinity && std::isinf(losses[b])) continue;
      backward(all.sequence(b), alphas + b * all.steps * width, width, all.classes, losses[b], g[b],
               grads + b * all.classes, beta, beta + 2 * width);
    }
  });
  return failure.status("ctc_loss()");
}

}  // namespace

Status ctc_loss(const KernelArgs& args) {
  return args.inputs[0].dtype == DType::kFloat64 ? forward_as<double>(args)
                                                 : forward_as<float>(args);
}
Status ctc_loss_backward(const KernelArgs& args) {
  return args.inputs[0].dtype == DType::kFloat64 ? backward_as<double>(args)
                                                 : backward_as<float>(args);
}

TS_KERNEL("ctc_loss", ctc_loss)
TS_KERNEL("ctc_loss_backward", ctc_loss_backward)

}  // namespace tessera::cpu
