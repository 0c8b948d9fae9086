// index_select and index_add.
#include <algorithm>
#include <cstring>

#include "convert.h"
#include "convert_scalar.h"
#include "kernels.h"
#include "strided.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

int64_t index_at(const KernelTensor& index, int64_t i) {
  int64_t at = index.ndim > 0 ? i * index.strides[0] : 0;
  return index.dtype == DType::kInt32 ? static_cast<const int32_t*>(index.data)[at]
                                      : static_cast<const int64_t*>(index.data)[at];
}

Status check_indices(const char* name, const KernelTensor& index, int dim, int64_t size) {
  if (index.dtype != DType::kInt64 && index.dtype != DType::kInt32)
    return fail(Code::kUnsupported, "%s(): index must be int32 or int64, not %s", name,
                dtype_name(index.dtype));
  for (int64_t i = 0; i < index.numel; ++i) {
    int64_t v = index_at(index, i);
    if (v < 0 || v >= size)
      return fail(Code::kInvalid, "%s(): index %ld is out of range for dimension %d of size %ld",
                  name, static_cast<long>(v), dim, static_cast<long>(size));
  }
  return {};
}

// A tensor as [outer, size of dim, inner]; a 0-d tensor has one element along its only dimension.
struct Split {
  const KernelTensor& t;
  int dim;
  int64_t size, stride, inner, outer;
  int inner_ndim;
  const int64_t *inner_sizes, *inner_strides;
  bool inner_dense;
  int64_t item;

  Split(const KernelTensor& tensor, int d) : t(tensor), dim(d) {
    item = static_cast<int64_t>(itemsize(t.dtype));
    size = t.ndim > 0 ? t.sizes[dim] : 1;
    stride = t.ndim > 0 ? t.strides[dim] : 0;
    inner_ndim = t.ndim > 0 ? t.ndim - dim - 1 : 0;
    inner_sizes = t.sizes + dim + 1;
    inner_strides = t.strides + dim + 1;
    inner = outer = 1;
    inner_dense = true;
    for (int i = inner_ndim - 1; i >= 0; --i) {
      if (inner_sizes[i] != 1 && inner_strides[i] != inner) inner_dense = false;
      inner *= inner_sizes[i];
    }
    for (int i = 0; i < dim && i < t.ndim; ++i) outer *= t.sizes[i];
  }
  char* at(int64_t o, int64_t k) const {
    int64_t coords[kMaxDims], offset = k * stride;
    int before = t.ndim > 0 ? dim : 0;
    unravel(o, before, t.sizes, coords);
    for (int i = 0; i < before; ++i) offset += coords[i] * t.strides[i];
    return static_cast<char*>(t.data) + offset * item;
  }
  // Elements [first, first + n) of the inner part that begins at p.
  void gather(void* dst, const char* p, int64_t first, int64_t n) const {
    if (inner_dense) {
      std::memcpy(dst, p + first * item, static_cast<size_t>(n * item));
      return;
    }
    int64_t coords[kMaxDims];
    unravel(first, inner_ndim, inner_sizes, coords);
    gather_run(dst, p, inner_ndim, inner_sizes, inner_strides, coords, n,
               static_cast<size_t>(item));
  }
  void scatter(char* p, const void* src, int64_t first, int64_t n) const {
    int64_t coords[kMaxDims];
    unravel(first, inner_ndim, inner_sizes, coords);
    scatter_run(p, src, inner_ndim, inner_sizes, inner_strides, coords, n,
                static_cast<size_t>(item));
  }
};

constexpr int64_t kTile = 512;

// out += round(alpha * source), rounded, over one tile in registers of class T.
template <class T>
void add_tile(T* out, const T* source, T alpha, DType dtype, int64_t n, T* product) {
  if constexpr (std::is_same_v<T, bool>) {
    for (int64_t i = 0; i < n; ++i) out[i] = out[i] | (source[i] & alpha);
  } else {
    using U = std::conditional_t<std::is_same_v<T, int64_t>, uint64_t, T>;
    for (int64_t i = 0; i < n; ++i)
      product[i] = static_cast<T>(static_cast<U>(source[i]) * static_cast<U>(alpha));
    ConvertFn round = converts().round[static_cast<int>(dtype)];
    if (round) round(product, product, n);
    for (int64_t i = 0; i < n; ++i)
      out[i] = static_cast<T>(static_cast<U>(out[i]) + static_cast<U>(product[i]));
  }
}

template <class T>
Status index_add_as(const KernelArgs& args, const Split& out, const Split& source, T alpha) {
  const KernelTensor& index = args.inputs[0];
  const DType dtype = out.t.dtype;
  const ConvertFn load = converts().load[static_cast<int>(dtype)];
  const ConvertFn store = converts().store[static_cast<int>(dtype)];
  const int64_t tiles = (out.inner + kTile - 1) / kTile;
  // One thread has all additions into an element, in the order of the index.
  const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, index.numel * kTile));
  parallel_for(0, out.outer * tiles, grain, [&](int64_t b, int64_t e) {
    alignas(64) T into[kTile], from[kTile], product[kTile];
    alignas(64) char raw[kTile * 8];
    for (int64_t t = b; t < e; ++t) {
      const int64_t o = t / tiles, first = t % tiles * kTile;
      const int64_t n = std::min(kTile, out.inner - first);
      for (int64_t i = 0; i < index.numel; ++i) {
        char* p = out.at(o, index_at(index, i));
        source.gather(raw, source.at(o, i), first, n);
        load(from, raw, n);
        out.gather(raw, p, first, n);
        load(into, raw, n);
        add_tile<T>(into, from, alpha, dtype, n, product);
        store(raw, into, n);
        out.scatter(p, raw, first, n);
      }
    }
  });
  return {};
}

}  // namespace

Status index_select(const KernelArgs& args) {
  const KernelTensor& index = args.inputs[1];
  const int dim = static_cast<int>(args.ints[0]);
  Split x(args.inputs[0], dim);
  Status s = check_indices("index_select", index, dim, x.size);
  if (!s.ok() || args.outputs[0].numel == 0) return s;
  char* out = static_cast<char*>(args.outputs[0].data);
  const int64_t row = x.inner * x.item;
  const int64_t grain = std::max<int64_t>(1, 32 * 1024 / row);
  parallel_for(0, x.outer * index.numel, grain, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i)
      x.gather(out + i * row, x.at(i / index.numel, index_at(index, i % index.numel)), 0, x.inner);
  });
  return {};
}

Status index_add(const KernelArgs& args) {
  const KernelTensor& index = args.inputs[0];
  const int dim = static_cast<int>(args.ints[0]);
  Split out(args.outputs[0], dim), source(args.inputs[1], dim);
  Status s = check_indices("index_add", index, dim, out.size);
  if (!s.ok() || args.inputs[1].numel == 0) return s;
  if (args.inputs[1].dtype != args.outputs[0].dtype)
    return fail(Code::kUnsupported, "index_add(): self is %s and source is %s",
                dtype_name(args.outputs[0].dtype), dtype_name(args.inputs[1].dtype));
  const double alpha = args.doubles[0];
  switch (reg_class(out.t.dtype)) {
    case RegClass::kF32:
      return index_add_as<float>(args, out, source, static_cast<float>(alpha));
    case RegClass::kF64:
      return index_add_as<double>(args, out, source, alpha);
    case RegClass::kI64:
      return index_add_as<int64_t>(args, out, source, float_to_int(alpha));
    case RegClass::kC64:
    case RegClass::kC128:
      return fail(Code::kUnsupported, "index_add(): not implemented for complex numbers");
    case RegClass::kB8:
      break;
  }
  return index_add_as<bool>(args, out, source, alpha != 0);
}

TS_KERNEL("index_select", index_select)
TS_KERNEL("index_add", index_add)

}  // namespace tessera::cpu
