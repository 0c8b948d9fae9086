#include "indexed.h"

#include <algorithm>

namespace tessera::cuda {
namespace {

// Four points a thread: their indices are loaded, then what they name, then all is stored.
constexpr auto kMoveText = join(kIndexedText, R"(
struct Params { Space space; UNIT* values; UNIT* tensor; };
extern "C" __global__ void __launch_bounds__(256) index_move(const __grid_constant__ Params p) {
  const int64_t n = p.space.n, step = (int64_t)gridDim.x * 1024;
  for (int64_t first = (int64_t)blockIdx.x * 1024 + threadIdx.x; first < n; first += step) {
    Place x[4];
    bool right[4];
    #pragma unroll
    for (int u = 0; u < 4; ++u) {
      right[u] = first + u * 256 < n;
      if (right[u]) x[u] = locate(p.space, (I)(first + u * 256));
    }
    UNIT v[4];
    #pragma unroll
    for (int u = 0; u < 4; ++u) {
      if (right[u]) right[u] = follow(p.space, x[u]);
      if (right[u]) v[u] = WRITE ? p.values[x[u].values] : p.tensor[x[u].tensor];
    }
    #pragma unroll
    for (int u = 0; u < 4; ++u)
      if (right[u]) (WRITE ? p.tensor[x[u].tensor] : p.values[x[u].values]) = v[u];
  }
})");
constexpr TextKernel kMove{"index_move", kMoveText.text};

constexpr auto kAtomicHead = join(kIndexedText, kCombineText);
constexpr auto kAtomicText = join(kAtomicHead.text, R"(
typedef T::S S; typedef T::A A;
// The word that the element lies in, or is, exchanged for one with the result in it.
template <class Word> TS_FN void exchange(S* at, A value) {
  const unsigned long long address = (unsigned long long)at;
  Word* word = (Word*)(address & ~(unsigned long long)(sizeof(Word) - 1));
  const unsigned shift = sizeof(S) < 4 ? (unsigned)(address & 3) * 8 : 0;
  const Word mask = sizeof(S) == 1 ? (Word)0xffu : sizeof(S) == 2 ? (Word)0xffffu : (Word)~(Word)0;
  Word old = *(volatile Word*)word, seen;
  do {
    seen = old;
    typedef std::conditional_t<sizeof(S) == 1, unsigned char,
            std::conditional_t<sizeof(S) == 2, unsigned short, Word>> Bits;
    const S now = std::bit_cast<S>((Bits)(seen >> shift & mask));
    const Bits sum = std::bit_cast<Bits>(T::st(combined(T::ld(now), value)));
    const Word next = (seen & ~(mask << shift)) | (Word)sum << shift;
    if (next == seen) return;
    old = atomicCAS(word, seen, next);
  } while (old != seen);
}
template <class X, class V> TS_FN void combine_at(X* at, V value) {
  if constexpr (is_complex_v<X> && COMBINE == 1) {
    atomicAdd(&at->re, value.re);
    atomicAdd(&at->im, value.im);
  } else if constexpr (COMBINE == 1 && std::is_same_v<X, int64_t>) {
    atomicAdd((unsigned long long*)at, (unsigned long long)value);
  } else if constexpr (COMBINE == 1 && sizeof(X) >= 4) {
    atomicAdd(at, (X)value);
  } else {
    exchange<std::conditional_t<sizeof(X) == 8, unsigned long long, unsigned>>(at, value);
  }
}
struct Params { Space space; const S* values; S* tensor; };
extern "C" __global__ void __launch_bounds__(256) index_combine(const __grid_constant__ Params p) {
  const int64_t n = p.space.n, step = (int64_t)gridDim.x * (256 * U);
  for (int64_t first = (int64_t)blockIdx.x * (256 * U) + threadIdx.x; first < n; first += step) {
    Place x[U];
    bool right[U];
    #pragma unroll
    for (int u = 0; u < U; ++u) {
      right[u] = first + u * 256 < n;
      if (right[u]) x[u] = locate(p.space, (I)(first + u * 256));
    }
    A v[U];
    #pragma unroll
    for (int u = 0; u < U; ++u) {
      if (right[u]) right[u] = follow(p.space, x[u]);
      if (right[u]) v[u] = T::ld(p.values[x[u].values]);
    }
    #pragma unroll
    for (int u = 0; u < U; ++u)
      if (right[u]) combine_at(p.tensor + x[u].tensor, v[u]);
  }
})");
constexpr TextKernel kAtomic{"index_combine", kAtomicText.text};

Status check_dtype(DType t) {
  if (t == DType::kInt64 || t == DType::kInt32) return ok();
  return fail(Code::kUnsupported, "an index must be int32 or int64, not %s", dtype_name(t));
}

bool takes_negative(DataError e) { return e == DataError::kIndex || e == DataError::kTake; }

}  // namespace

Status Indexed::add_index(const KernelTensor& index, int64_t size, int64_t stride, int64_t dim) {
  TS_TRY(check_dtype(index.dtype));
  if (count_ > 0 && index.dtype != index_dtype_)
    return fail(Code::kUnsupported, "indices of several dtypes are not implemented for CUDA");
  if (count_ == kMaxIndices)
    return fail(Code::kUnsupported, "more than %d index tensors are not implemented for CUDA",
                kMaxIndices);
  index_dtype_ = index.dtype;
  of_[count_++] = {index.data, size, stride, dim};
  return ok();
}

Status Indexed::make(Indexed* to, const KernelTensor& tensor, int before, int count,
                     const KernelTensor* indices, const KernelTensor& values, DataError error,
                     const int64_t* dims) {
  to->tensor_ = tensor.data;
  to->values_ = values.data;
  to->dtype_ = tensor.dtype;
  to->error_ = code_of(error);
  to->negative_ = takes_negative(error);
  to->numel_ = values.numel;
  for (int j = 0; j < count; ++j)
    TS_TRY(
        to->add_index(indices[j], tensor.sizes[before + j], tensor.strides[before + j], dims[j]));
  // A vector of one element may come as an index without dimensions.
  const int points = values.ndim - (tensor.ndim - count);
  for (int i = 0; i < values.ndim; ++i) {
    Dim& dim = to->dims_[to->nd_++] = {};
    dim.size = values.sizes[i];
    dim.values = values.strides[i];
    if (i < before) {
      dim.tensor = tensor.strides[i];
    } else if (i >= before + points) {
      dim.tensor = tensor.strides[i - points + count];
    } else {
      for (int j = 0; j < count; ++j)
        if (indices[j].ndim == points) dim.index[j] = indices[j].strides[i - before];
    }
  }
  return ok();
}

Status Indexed::make_each(Indexed* to, const KernelTensor& tensor, const KernelTensor& index,
                          const KernelTensor& values, int at) {
  to->tensor_ = tensor.data;
  to->values_ = values.data;
  to->dtype_ = tensor.dtype;
  to->error_ = code_of(DataError::kGather);
  to->numel_ = index.numel;
  TS_TRY(to->add_index(index, tensor.sizes[at], tensor.strides[at], at));
  for (int i = 0; i < index.ndim; ++i) {
    Dim& dim = to->dims_[to->nd_++] = {};
    dim.size = index.sizes[i];
    dim.values = values.strides[i];
    dim.tensor = i == at ? 0 : tensor.strides[i];
    dim.index[0] = index.strides[i];
  }
  return ok();
}

Status Indexed::move(Device& d, CUstream stream, bool write) const {
  if (numel_ == 0) return ok();
  return count_ == 1 ? move_walk<3>(d, stream, write)
                     : move_walk<2 + kMaxIndices>(d, stream, write);
}

template <int W>
Status Indexed::move_walk(Device& d, CUstream stream, bool write) const {
  struct {
    IndexedSpace<W> space;
    void *values, *tensor;
  } p{{d.slot_on_device, numel_, error_, {}, {}}, values_, tensor_};
  Walk<W>& w = p.space.walk;
  for (int i = 0; i < nd_; ++i) {
    int64_t s[W] = {dims_[i].values, dims_[i].tensor};
    for (int k = 0; k < count_; ++k) s[2 + k] = dims_[i].index[k];
    TS_TRY(w.add(dims_[i].size, s));
  }
  for (int k = 0; k < count_; ++k) p.space.of[k] = of_[k];
  // Rows that lie in one piece are moved by the widest unit that all addresses are multiples of.
  int64_t unit = static_cast<int64_t>(itemsize(dtype_));
  const int last = static_cast<int>(w.nd) - 1;
  bool runs = last >= 0 && w.strides[0][last] == 1 && w.strides[1][last] == 1;
  for (int k = 0; runs && k < count_; ++k) runs = w.strides[2 + k][last] == 0;
  if (runs) {
    uint64_t all = static_cast<uint64_t>(w.sizes[last]);
    for (int i = 0; i < last; ++i)
      all |= static_cast<uint64_t>(w.strides[0][i]) | static_cast<uint64_t>(w.strides[1][i]);
    for (int k = 0; k < count_; ++k) all |= static_cast<uint64_t>(of_[k].stride);
    all = all * static_cast<uint64_t>(unit) | reinterpret_cast<uintptr_t>(values_) |
          reinterpret_cast<uintptr_t>(tensor_);
    const int64_t fits = static_cast<int64_t>(all & (~all + 1));
    const int64_t wide = fits < 16 ? fits : 16, per = wide / unit;
    if (per > 1) {
      for (int i = 0; i < last; ++i) w.strides[0][i] /= per, w.strides[1][i] /= per;
      for (int k = 0; k < count_; ++k) p.space.of[k].stride /= per;
      w.sizes[last] /= per;
      p.space.n /= per;
      unit = wide;
    }
  }
  const int64_t blocks = std::min<int64_t>((p.space.n + 1023) / 1024, INT32_MAX);
  return launch_text(
      d, stream, kMove,
      {def_bytes("UNIT", unit), def("INDEX", index_dtype_), def("W", W), def("INDICES", count_),
       def("ND", w.nd <= 3 ? w.nd : 0), def("NARROW", p.space.narrow(count_)),
       def("NEGATIVE", negative_), def("WRITE", write)},
      {blocks, 256}, &p);
}

Status Indexed::combine_atomically(Device& d, CUstream stream, Combine how) const {
  return count_ == 1 ? combine_walk<3>(d, stream, how)
                     : combine_walk<2 + kMaxIndices>(d, stream, how);
}

template <int W>
Status Indexed::combine_walk(Device& d, CUstream stream, Combine how) const {
  struct {
    IndexedSpace<W> space;
    const void* values;
    void* tensor;
  } p{{d.slot_on_device, numel_, error_, {}, {}}, values_, tensor_};
  for (int i = 0; i < nd_; ++i) {
    int64_t s[W] = {dims_[i].values, dims_[i].tensor};
    for (int k = 0; k < count_; ++k) s[2 + k] = dims_[i].index[k];
    TS_TRY(p.space.walk.add(dims_[i].size, s));
  }
  for (int k = 0; k < count_; ++k) p.space.of[k] = of_[k];
  const int64_t nd = p.space.walk.nd;
  // Exchanges are long: several a thread would only be more text.
  const int64_t each = how == Combine::kAdd && itemsize(dtype_) >= 4 ? 4 : 1;
  const int64_t blocks = std::min<int64_t>((numel_ + 256 * each - 1) / (256 * each), INT32_MAX);
  return launch_text(
      d, stream, kAtomic,
      {def("T", dtype_), def("COMBINE", static_cast<int64_t>(how)), def("U", each),
       def("INDEX", index_dtype_), def("W", W), def("INDICES", count_), def("ND", nd <= 3 ? nd : 0),
       def("NARROW", p.space.narrow(count_)), def("NEGATIVE", negative_)},
      {blocks, 256}, &p);
}

Status Indexed::combine(Device& d, CUstream stream, Combine how, bool in_order) const {
  if (numel_ == 0) return ok();
  const bool extreme = how == Combine::kMin || how == Combine::kMax;
  if (extreme && is_complex(dtype_))
    return fail(Code::kUnsupported, "complex numbers have no order");
  // One value for all is the last one, whatever the order.
  bool one_value = true;
  for (int i = 0; i < nd_; ++i) one_value &= dims_[i].size == 1 || dims_[i].values == 0;
  if (how == Combine::kAssign && (!in_order || one_value)) return write(d, stream);
  // The order of integers does not matter.
  const bool any_order = is_integral(dtype_, true) && how != Combine::kAssign;
  // No atomic operation is that wide.
  const bool must = dtype_ == DType::kComplex128 && how == Combine::kMul;
  // Of many values in long rows, bringing the rows' numbers into order costs little, and then each
  // element is read and written once. Halves have atomic operations only by exchange of words.
  const int64_t rows = points(), row = rows > 0 ? numel_ / rows : 0;
  const bool pays = row >= 32 && numel_ >= (itemsize(dtype_) == 2 ? 1 << 16 : 1 << 22);
  if (must || (!any_order && (in_order || pays))) return combine_in_order(d, stream, how);
  return combine_atomically(d, stream, how);
}

int64_t Indexed::points() const {
  int64_t n = 1;
  for (int i = 0; i < nd_; ++i)
    if (!dims_[i].free(count_)) n *= dims_[i].size;
  return n;
}

}  // namespace tessera::cuda
