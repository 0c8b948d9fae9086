// index_select and index_add. Wrong indices are reported through the device's error slot, so that
// neither waits for the device.
#include <algorithm>

#include "kernel.h"
#include "kernel_texts.h"
#include "kernels.h"

namespace tessera::cuda {
namespace {

// The dimensions of out (index_select) or source (index_add), neighbours joined where both operands
// allow it; never across the indexed one.
struct Walk {
  int nd = 0, at = 0;
  int64_t sizes[kMaxDims], from[kMaxDims], to[kMaxDims];

  void add(int64_t size, int64_t f, int64_t t, bool indexed) {
    bool join = nd > 0 && !indexed && nd - 1 != at_or_none_ && from[nd - 1] == f * size &&
                to[nd - 1] == t * size;
    if (size == 1 && !indexed) return;
    if (join) {
      sizes[nd - 1] *= size;
      from[nd - 1] = f;
      to[nd - 1] = t;
      return;
    }
    if (indexed) at = at_or_none_ = nd;
    sizes[nd] = size;
    from[nd] = f;
    to[nd++] = t;
  }

 private:
  int at_or_none_ = -1;
};

Status check_index(const char* name, const KernelTensor& index) {
  if (index.dtype != DType::kInt64 && index.dtype != DType::kInt32)
    return fail(Code::kUnsupported, "%s(): index must be int32 or int64, not %s", name,
                dtype_name(index.dtype));
  return ok();
}

void fill_words(const Device& d, const Walk& w, const KernelTensor& index, uint64_t* words) {
  words[3] = reinterpret_cast<uintptr_t>(index.data);
  words[4] = static_cast<uint64_t>(index.ndim > 0 ? index.strides[0] : 0);
  words[6] = static_cast<uint64_t>(w.at);
  words[8] = d.slot_on_device;
  for (int i = 0; i < w.nd; ++i) {
    words[12 + i] = static_cast<uint64_t>(w.sizes[i]);
    words[12 + kKernelDims + i] = static_cast<uint64_t>(w.from[i]);
    words[12 + 2 * kKernelDims + i] = static_cast<uint64_t>(w.to[i]);
  }
}

// Makes the elements 16 bytes wide where runs of the last dimension allow it.
int widen(Walk* w, int bytes, uint64_t addresses, int64_t* numel) {
  int last = w->nd - 1;
  if (last <= w->at || w->from[last] != 1 || w->to[last] != 1 || addresses % 16 != 0) return bytes;
  int64_t per = 16 / bytes;
  if (w->sizes[last] % per != 0) return bytes;
  for (int i = 0; i < last; ++i)
    if (w->from[i] % per != 0 || w->to[i] % per != 0) return bytes;
  for (int i = 0; i < last; ++i) {
    w->from[i] /= per;
    w->to[i] /= per;
  }
  w->sizes[last] /= per;
  *numel /= per;
  return 16;
}

}  // namespace

Status run_index_select(Device& d, CUstream stream, const KernelArgs& args) {
  if (args.num_inputs != 2 || args.num_outputs != 1 || args.num_ints < 1)
    return fail(Code::kInvalid, "index_select(): wrong number of arguments");
  const KernelTensor &self = args.inputs[0], &index = args.inputs[1], &out = args.outputs[0];
  TS_TRY(check_index("index_select", index));
  if (out.numel == 0) return ok();
  int dim = static_cast<int>(args.ints[0]);
  Walk w;
  int64_t dense[kMaxDims], run = 1;
  for (int i = out.ndim - 1; i >= 0; --i) {
    dense[i] = run;
    run *= out.sizes[i];
  }
  for (int i = 0; i < out.ndim; ++i) w.add(out.sizes[i], self.strides[i], dense[i], i == dim);
  if (out.ndim == 0) w.add(1, 0, 0, true);
  if (w.nd > kKernelDims)
    return fail(Code::kUnsupported, "index_select(): more than %d dimensions", kKernelDims);
  int64_t numel = out.numel;
  uint64_t from = reinterpret_cast<uintptr_t>(self.data),
           to = reinterpret_cast<uintptr_t>(out.data);
  int bytes = widen(&w, static_cast<int>(itemsize(self.dtype)), from | to, &numel);
  uint64_t words[kIndexWords] = {};
  fill_words(d, w, index, words);
  words[0] = static_cast<uint64_t>(numel);
  words[1] = to;
  words[2] = from;
  words[5] = static_cast<uint64_t>(self.ndim > 0 ? self.sizes[dim] : 1);
  words[7] = static_cast<uint64_t>(dim);
  Hasher h(static_cast<uint64_t>(d.ordinal) << 8 | 4);
  h.add(static_cast<uint64_t>(bytes) | static_cast<uint64_t>(index.dtype) << 8 |
        static_cast<uint64_t>(w.nd) << 16);
  const Kernel* k = nullptr;
  TS_TRY(get_kernel(d, h.finish(), "index_select", "index_select", &k,
                    [&] { return index_select_text(bytes, index.dtype, w.nd); }));
  return launch(d, stream, *k, {fill_blocks(d, numel), 256}, words, "launching index_select");
}

Status run_index_add(Device& d, CUstream stream, const KernelArgs& args) {
  TS_TRY(refuse_complex(args, "index_add"));
  if (args.num_inputs != 2 || args.num_outputs != 1 || args.num_ints < 1 || args.num_doubles < 1)
    return fail(Code::kInvalid, "index_add(): wrong number of arguments");
  const KernelTensor &index = args.inputs[0], &source = args.inputs[1], &out = args.outputs[0];
  TS_TRY(check_index("index_add", index));
  if (is_complex(source.dtype))
    return fail(Code::kUnsupported, "index_add(): self is %s and source is %s",
                dtype_name(out.dtype), dtype_name(source.dtype));
  if (source.numel == 0) return ok();
  int dim = static_cast<int>(args.ints[0]);
  Walk w;
  for (int i = 0; i < source.ndim; ++i)
    w.add(source.sizes[i], source.strides[i], out.ndim > 0 ? out.strides[i] : 0, i == dim);
  if (source.ndim == 0) w.add(1, 0, 0, true);
  if (w.nd > kKernelDims)
    return fail(Code::kUnsupported, "index_add(): more than %d dimensions", kKernelDims);
  uint64_t words[kIndexWords] = {};
  fill_words(d, w, index, words);
  words[0] = static_cast<uint64_t>(source.numel);
  words[1] = reinterpret_cast<uintptr_t>(out.data);
  words[2] = reinterpret_cast<uintptr_t>(source.data);
  words[5] = static_cast<uint64_t>(out.ndim > 0 ? out.sizes[dim] : 1);
  words[7] = static_cast<uint64_t>(dim);
  __builtin_memcpy(&words[9], &args.doubles[0], sizeof(double));
  Hasher h(static_cast<uint64_t>(d.ordinal) << 8 | 5);
  h.add(static_cast<uint64_t>(out.dtype) | static_cast<uint64_t>(index.dtype) << 8 |
        static_cast<uint64_t>(w.nd) << 16 | static_cast<uint64_t>(source.dtype) << 24);
  const Kernel* k = nullptr;
  TS_TRY(get_kernel(d, h.finish(), "index_add", "index_add", &k,
                    [&] { return index_add_text(out.dtype, source.dtype, index.dtype, w.nd); }));
  return launch(d, stream, *k, {fill_blocks(d, source.numel), 256}, words, "launching index_add");
}

TS_CUDA_KERNEL("index_select", run_index_select)
TS_CUDA_KERNEL("index_add", run_index_add)

}  // namespace tessera::cuda
