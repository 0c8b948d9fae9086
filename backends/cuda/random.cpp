// Random numbers by the rule of tessera/ops/philox.h.
#include "kernel.h"
#include "kernel_texts.h"
#include "kernels.h"
#include "tessera/driver/random_args.h"

namespace tessera::cuda {
namespace {

uint64_t bits_of(double v) {
  uint64_t w;
  __builtin_memcpy(&w, &v, sizeof w);
  return w;
}

Status draw(Device& d, CUstream stream, const KernelArgs& args, Draw kind, const char* name,
            uint64_t first, uint64_t second, bool wide) {
  const KernelTensor& out = args.outputs[0];
  if (out.numel == 0) return ok();
  Hasher h(static_cast<uint64_t>(d.ordinal) << 8 | 6);
  h.add(static_cast<uint64_t>(kind) | static_cast<uint64_t>(out.dtype) << 8 | uint64_t{wide} << 16);
  const Kernel* k = nullptr;
  TS_TRY(get_kernel(d, h.finish(), "random", name, &k,
                    [&] { return random_text(kind, out.dtype, wide); }));
  uint64_t words[] = {reinterpret_cast<uintptr_t>(out.data),
                      static_cast<uint64_t>(out.numel),
                      static_cast<uint64_t>(args.ints[0]),
                      static_cast<uint64_t>(args.ints[1]),
                      first,
                      second,
                      reinterpret_cast<uintptr_t>(philox_state(args))};
  int64_t blocks = (out.numel + 3) / (wide ? 2 : 4);
  return launch(d, stream, *k, {fill_blocks(d, blocks), 256}, words, "launching a random kernel");
}

Status check_args(const KernelArgs& args, const char* name, int ints, int doubles, bool floating) {
  if (args.num_outputs != 1 || args.num_ints < ints || args.num_doubles < doubles)
    return fail(Code::kInvalid, "%s(): wrong number of arguments", name);
  if (floating && !is_floating(args.outputs[0].dtype))
    return fail(Code::kUnsupported, "%s(): not implemented for %s", name,
                dtype_name(args.outputs[0].dtype));
  return ok();
}

}  // namespace

Status run_uniform(Device& d, CUstream stream, const KernelArgs& args) {
  TS_TRY(refuse_complex(args, "uniform"));
  TS_TRY(check_args(args, "uniform_", 3, 2, true));
  return draw(d, stream, args, Draw::kUniform, "uniform", bits_of(args.doubles[0]),
              bits_of(args.doubles[1]), args.outputs[0].dtype == DType::kFloat64);
}

Status run_normal(Device& d, CUstream stream, const KernelArgs& args) {
  TS_TRY(refuse_complex(args, "normal"));
  TS_TRY(check_args(args, "normal_", 3, 2, true));
  return draw(d, stream, args, Draw::kNormal, "normal", bits_of(args.doubles[0]),
              bits_of(args.doubles[1]), args.outputs[0].dtype == DType::kFloat64);
}

Status run_bernoulli(Device& d, CUstream stream, const KernelArgs& args) {
  TS_TRY(refuse_complex(args, "bernoulli"));
  TS_TRY(check_args(args, "bernoulli", 3, 1, false));
  return draw(d, stream, args, Draw::kBernoulli, "bernoulli", bits_of(args.doubles[0]), 0, false);
}

Status run_random_int(Device& d, CUstream stream, const KernelArgs& args) {
  TS_TRY(refuse_complex(args, "random_int"));
  TS_TRY(check_args(args, "random_int", 5, 0, false));
  uint64_t low = static_cast<uint64_t>(args.ints[3]), high = static_cast<uint64_t>(args.ints[4]);
  if (high == low) return fail(Code::kInvalid, "random_int: the range is empty");
  return draw(d, stream, args, Draw::kRandomInt, "random_int", low, high,
              high - low >= uint64_t{1} << 32);
}

TS_CUDA_KERNEL("uniform", run_uniform)
TS_CUDA_KERNEL("normal", run_normal)
TS_CUDA_KERNEL("bernoulli", run_bernoulli)
TS_CUDA_KERNEL("random_int", run_random_int)

}  // namespace tessera::cuda
