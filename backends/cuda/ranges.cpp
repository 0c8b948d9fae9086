// arange.
#include "kernel.h"
#include "kernel_texts.h"
#include "kernels.h"

namespace tessera::cuda {
namespace {

uint64_t bits_of(double v) {
  uint64_t w;
  __builtin_memcpy(&w, &v, sizeof w);
  return w;
}

}  // namespace

Status run_arange(Device& d, CUstream stream, const KernelArgs& args) {
  TS_TRY(refuse_complex(args, "arange"));
  const KernelTensor& out = args.outputs[0];
  if (args.num_outputs != 1 || args.num_ints < 2 || args.num_doubles < 2)
    return fail(Code::kInvalid, "arange(): wrong number of arguments");
  if (is_complex(out.dtype))
    return fail(Code::kUnsupported, "arange(): not implemented for %s", dtype_name(out.dtype));
  if (out.numel == 0) return ok();
  Hasher h(static_cast<uint64_t>(d.ordinal) << 8 | 11);
  h.add(static_cast<uint64_t>(out.dtype));
  const Kernel* k = nullptr;
  TS_TRY(get_kernel(d, h.finish(), "arange", "arange", &k, [&] { return arange_text(out.dtype); }));
  bool whole = is_integral(out.dtype, true);
  uint64_t words[kRangeWords] = {
      reinterpret_cast<uintptr_t>(out.data), static_cast<uint64_t>(out.numel),
      whole ? static_cast<uint64_t>(args.ints[0]) : bits_of(args.doubles[0]),
      whole ? static_cast<uint64_t>(args.ints[1]) : bits_of(args.doubles[1])};
  return launch(d, stream, *k, {fill_blocks(d, out.numel), 256}, words, "launching arange");
}

TS_CUDA_KERNEL("arange", run_arange)

}  // namespace tessera::cuda
