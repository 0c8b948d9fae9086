// softmax and log_softmax over one dimension.
#include <algorithm>

#include "codegen.h"
#include "kernel.h"
#include "kernel_texts.h"
#include "kernels.h"

namespace tessera::cuda {
namespace {

// How the threads share a row of n elements.
void choose_threads(SoftmaxText* s, int64_t n) {
  int64_t need = (n + s->vec - 1) / s->vec;
  int64_t most = s->vec == 8 ? 4 : 8;
  s->threads = 32;
  while (s->threads < 1024 && need > int64_t{s->threads} * 4)
    s->threads = s->threads == 32 ? 128 : s->threads * 2;
  if (need > s->threads * most) {
    s->vectors = 0;
    s->vec = 1;
    s->vector_loads = false;
    return;
  }
  s->vectors = 1;
  while (int64_t{s->vectors} * s->threads < need) s->vectors *= 2;
}

Status run(Device& d, CUstream stream, const KernelArgs& args, bool log,
           const Joins* joins = nullptr) {
  const char* name = log ? "log_softmax" : "softmax";
  if (args.num_inputs != 1 || args.num_outputs != 1 || args.num_ints < 1)
    return fail(Code::kInvalid, "%s(): wrong number of arguments", name);
  const KernelTensor &x = args.inputs[0], &y = args.outputs[0];
  if (!is_floating(x.dtype) || x.dtype != y.dtype)
    return fail(Code::kUnsupported, "%s(): not implemented for %s", name, dtype_name(x.dtype));
  if (x.ndim > kKernelDims)
    return fail(Code::kUnsupported, "%s(): more than %d dimensions", name, kKernelDims);
  if (x.numel == 0) return ok();
  int dim = static_cast<int>(args.ints[0]);
  int64_t n = x.ndim > 0 ? x.sizes[dim] : 1, stride = x.ndim > 0 ? x.strides[dim] : 1;
  int64_t inner = 1;
  for (int i = dim + 1; i < x.ndim; ++i) inner *= x.sizes[i];
  int64_t rows = x.numel / n;

  uint64_t words[kMaxParamWords] = {};
  int nd = 0;
  bool multiples = true;
  int vec = std::min<int>(static_cast<int>(16 / itemsize(x.dtype)), 8);
  for (int i = 0; i < x.ndim; ++i) {
    if (i == dim || x.sizes[i] == 1) continue;
    uint64_t size = static_cast<uint64_t>(x.sizes[i]), step = static_cast<uint64_t>(x.strides[i]);
    multiples &= x.strides[i] % vec == 0;
    if (nd > 0 && words[8 + kKernelDims + nd - 1] == size * step) {
      words[8 + nd - 1] *= size;
      words[8 + kKernelDims + nd - 1] = step;
    } else {
      words[8 + nd] = size;
      words[8 + kKernelDims + nd++] = step;
    }
  }
  uint64_t head[] = {reinterpret_cast<uintptr_t>(x.data),
                     reinterpret_cast<uintptr_t>(y.data),
                     static_cast<uint64_t>(rows),
                     static_cast<uint64_t>(n),
                     static_cast<uint64_t>(stride),
                     static_cast<uint64_t>(inner),
                     static_cast<uint64_t>(nd)};
  std::copy(std::begin(head), std::end(head), words);

  SoftmaxText s{x.dtype, log, inner > 1, 256, 1, 0, false};
  if (!s.columns) {
    bool aligned = (head[0] | head[1]) % 16 == 0;
    s.vector_loads = stride == 1 && aligned && multiples && n % vec == 0;
    s.vec = s.vector_loads ? vec : 1;
    choose_threads(&s, n);
  }
  Hasher h(static_cast<uint64_t>(d.ordinal) << 8 | 3);
  h.add(static_cast<uint64_t>(s.dtype) | uint64_t{s.log} << 8 | uint64_t{s.columns} << 9 |
        uint64_t{s.vector_loads} << 10 | static_cast<uint64_t>(s.vec) << 16 |
        static_cast<uint64_t>(s.vectors) << 24 | static_cast<uint64_t>(s.threads) << 32);
  if (joins) {
    joins->add_to(h, s.vec);
    if (s.columns || !joins->put(words, kSoftmaxWords))
      return fail(Code::kUnsupported, "%s(): too much joins it", name);
  }
  const Kernel* k = nullptr;
  TS_TRY(get_kernel(
      d, h.finish(), "softmax", name, &k,
      [&] { return joins ? softmax_text(s, joins->text(s.vec)) : softmax_text(s); },
      Effort::kQuick));
  Grid grid{fill_blocks(d, rows), 256};
  if (!s.columns) {
    int per_block = s.threads == 32 ? 8 : 1;
    grid = {(rows + per_block - 1) / per_block, s.threads * per_block};
  }
  return launch(d, stream, *k, grid, words, "launching softmax");
}

}  // namespace

Status run_softmax(Device& d, CUstream stream, const KernelArgs& args) {
  TS_TRY(refuse_complex(args, "softmax"));
  return run(d, stream, args, false);
}
Status run_log_softmax(Device& d, CUstream stream, const KernelArgs& args) {
  TS_TRY(refuse_complex(args, "log_softmax"));
  return run(d, stream, args, true);
}

namespace {

template <bool kLog>
Status run_joined(Device& d, CUstream stream, const KernelArgs& args, const Joins& joins) {
  return run(d, stream, args, kLog, &joins);
}

}  // namespace

TS_CUDA_JOINED("softmax", run_joined<false>)
TS_CUDA_JOINED("log_softmax", run_joined<true>)
TS_CUDA_KERNEL("softmax", run_softmax)
TS_CUDA_KERNEL("log_softmax", run_log_softmax)

}  // namespace tessera::cuda
