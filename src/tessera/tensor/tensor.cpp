#include "tessera/tensor/tensor.h"

#include <limits>

#include "tessera/tensor/batch_scope.h"

namespace tessera {

void (*release_python_object)(void*) = nullptr;
void (*release_pending_storage)(Storage*) = nullptr;

namespace {

bool row_major(const Dims& sizes, const Dims& strides) {
  int64_t expected = 1;
  for (int d = sizes.ndim() - 1; d >= 0; --d) {
    if (sizes[d] == 0) return true;
    if (sizes[d] == 1) continue;
    if (strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

size_t bytes_spanned(const Dims& sizes, const Dims& strides, DType dtype) {
  int64_t last = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return 0;
    last += (sizes[d] - 1) * strides[d];
  }
  return static_cast<size_t>(last + 1) * itemsize(dtype);
}

}  // namespace

TensorImpl::TensorImpl(Ref<Storage> s, DType t, Dims size, Dims stride, int64_t off)
    : storage(std::move(s)),
      offset(off),
      dtype(t),
      sizes(std::move(size)),
      strides(std::move(stride)) {
  numel = 1;
  for (int64_t n : sizes) numel *= n;
  contiguous = row_major(sizes, strides);
}

TensorImpl::~TensorImpl() {
  if (storage->pending.load(std::memory_order_acquire)) release_pending_storage(storage.release());
}

bool TensorImpl::own_python() const noexcept {
  uint32_t n = count_.load(std::memory_order_acquire);
  do {
    if (n == 1 || (n & kOwnsPython)) return false;
  } while (!count_.compare_exchange_weak(n, n | kOwnsPython, std::memory_order_acq_rel,
                                         std::memory_order_acquire));
  return true;
}

void TensorImpl::release_object() const noexcept { release_python_object(python); }

int64_t TensorBase::size(int64_t d) const {
  TS_CHECK_INDEX(dim() > 0, "Dimension specified as ", d, " but tensor has no dimensions");
  return impl_->sizes[wrap_dim(d, dim())];
}

Dims contiguous_strides(const Dims& sizes) {
  Dims strides(sizes.size());
  int64_t step = 1;
  for (int d = sizes.ndim() - 1; d >= 0; --d) {
    strides[d] = step;
    step *= std::max<int64_t>(sizes[d], 1);
  }
  return strides;
}

namespace {
[[noreturn, gnu::noinline]] void raise_bad_sizes(const Dims& sizes) {
  for (int64_t n : sizes)
    TS_CHECK(n >= 0, "Trying to create tensor with negative dimension ", n, ": ", sizes);
  raise(ErrorKind::kRuntime, cat("Storage size calculation overflowed with sizes=", sizes));
}
}  // namespace

int64_t checked_numel(const Dims& sizes, DType dtype) {
  int64_t numel = 1;
  int64_t span = 1;  // strides are built from sizes with zeros counted as ones
  for (int64_t n : sizes) {
    if (n < 0) [[unlikely]]
      raise_bad_sizes(sizes);
    bool overflow = __builtin_mul_overflow(span, std::max<int64_t>(n, 1), &span);
    int64_t bytes;
    overflow |= __builtin_mul_overflow(span, static_cast<int64_t>(itemsize(dtype)), &bytes);
    if (overflow) [[unlikely]]
      raise_bad_sizes(sizes);
    numel *= n;
  }
  return numel;
}

std::atomic<int> inference_modes{0};
namespace {
thread_local bool t_inference_mode = false;

TensorBase fresh(Ref<TensorImpl> impl) {
  if (inference_mode()) [[unlikely]]
    impl->inference = TensorImpl::Inference::kInference;
  return TensorBase(std::move(impl));
}
}  // namespace
bool thread_in_inference_mode() { return t_inference_mode; }
void set_inference_mode(bool on) {
  if (on != t_inference_mode) inference_modes.fetch_add(on ? 1 : -1, std::memory_order_relaxed);
  t_inference_mode = on;
}

TensorBase new_unallocated(const Dims& sizes, DType dtype, Device device) {
  int64_t numel = checked_numel(sizes, dtype);
  auto storage = Ref<Storage>::make(device, static_cast<size_t>(numel) * itemsize(dtype));
  note_new_storage(*storage);
  storage->made_for(sizes.data(), sizes.ndim(), dtype);
  return fresh(
      Ref<TensorImpl>::make(std::move(storage), dtype, sizes, contiguous_strides(sizes), 0));
}

TensorBase new_empty(const Dims& sizes, DType dtype, Device device) {
  TensorBase t = new_unallocated(sizes, dtype, device);
  allocate(t.storage());
  return t;
}

TensorBase new_empty_strided(const Dims& sizes, const Dims& strides, DType dtype, Device device) {
  checked_numel(sizes, dtype);
  auto storage = Ref<Storage>::make(device, bytes_spanned(sizes, strides, dtype));
  note_new_storage(*storage);
  storage->made_for(sizes.data(), sizes.ndim(), dtype);
  allocate(*storage);
  return fresh(Ref<TensorImpl>::make(std::move(storage), dtype, sizes, strides, 0));
}

TensorBase alias(const TensorBase& t, Dims sizes, Dims strides, int64_t offset) {
  return alias_as(t, t.dtype(), std::move(sizes), std::move(strides), offset);
}

TensorBase alias_as(const TensorBase& t, DType dtype, Dims sizes, Dims strides, int64_t offset) {
  auto impl =
      Ref<TensorImpl>::make(t.impl()->storage, dtype, std::move(sizes), std::move(strides), offset);
  impl->own_version = t.impl()->own_version;
  impl->inference = t.impl()->inference;
  return TensorBase(std::move(impl));
}

uint32_t version_of(const TensorBase& t) {
  if (const auto& own = t.impl()->own_version) return own->load(std::memory_order_relaxed);
  const Storage& s = t.storage();
  return s.version.load(std::memory_order_relaxed) - s.writes_apart.load(std::memory_order_relaxed);
}

void count_write(const TensorBase& t) {
  t.storage().version.fetch_add(1, std::memory_order_relaxed);
  const auto& own = t.impl()->own_version;
  if (!own) [[likely]]
    return;
  own->fetch_add(1, std::memory_order_relaxed);
  t.storage().writes_apart.fetch_add(1, std::memory_order_relaxed);
}

void detach_inference(const TensorBase& t) {
  if (t.impl()->inference == TensorImpl::Inference::kInference && !inference_mode())
    t.impl()->inference = TensorImpl::Inference::kDetached;
}

TensorBase counted_apart(TensorBase t) {
  t.impl()->own_version = std::make_shared<std::atomic<uint32_t>>(0);
  detach_inference(t);
  return t;
}

void set_geometry(const TensorBase& t, Dims sizes, Dims strides, int64_t offset) {
  TensorImpl& impl = *t.impl();
  impl.sizes = std::move(sizes);
  impl.strides = std::move(strides);
  impl.offset = offset;
  impl.numel = 1;
  for (int64_t n : impl.sizes) impl.numel *= n;
  impl.contiguous = row_major(impl.sizes, impl.strides);
}

int64_t bytes_reached(const Dims& sizes, const Dims& strides, int64_t offset, DType dtype) {
  int64_t last = offset, bytes;
  bool overflow = false, empty = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    TS_CHECK(sizes[d] >= 0, "Trying to create tensor with negative dimension ", sizes[d], ": ",
             sizes);
    TS_CHECK(
        strides[d] >= 0,
        "as_strided: Negative strides are not supported at the moment, got strides: ", strides);
    empty |= sizes[d] == 0;
    int64_t step;
    overflow |= __builtin_mul_overflow(std::max<int64_t>(sizes[d] - 1, 0), strides[d], &step);
    overflow |= __builtin_add_overflow(last, step, &last);
  }
  if (empty) return 0;
  overflow |= __builtin_add_overflow(last, 1, &last);
  overflow |= __builtin_mul_overflow(last, static_cast<int64_t>(itemsize(dtype)), &bytes);
  TS_CHECK(!overflow, "Storage size calculation overflowed with sizes=", sizes,
           " and strides=", strides);
  return bytes;
}

void check_in_storage(const Storage& storage, const Dims& sizes, const Dims& strides,
                      int64_t offset, DType dtype) {
  TS_CHECK(sizes.size() == strides.size(), "mismatch in length of strides and shape");
  TS_CHECK(offset >= 0, "Tensor: invalid storage offset ", offset);
  int64_t reached = bytes_reached(sizes, strides, offset, dtype);
  TS_CHECK(reached <= static_cast<int64_t>(storage.nbytes), "setStorage: sizes ", sizes,
           ", strides ", strides, ", storage offset ", offset, ", and itemsize ", itemsize(dtype),
           " requiring a storage size of ", reached, " are out of bounds for storage of size ",
           storage.nbytes);
}

Dims strides_in(const Dims& sizes, MemoryFormat format) {
  if (format == MemoryFormat::kContiguous) return contiguous_strides(sizes);
  size_t want = format == MemoryFormat::kChannelsLast ? 4 : 5;
  TS_CHECK(sizes.size() == want, "required rank ", want, " tensor to use channels_last",
           want == 5 ? "_3d" : "", " format");
  // The channels move from dimension 1 to the innermost place.
  Dims strides(sizes.size());
  int64_t step = 1;
  strides[1] = step;
  step *= std::max<int64_t>(sizes[1], 1);
  for (size_t d = sizes.size() - 1; d >= 2; --d) {
    strides[d] = step;
    step *= std::max<int64_t>(sizes[d], 1);
  }
  strides[0] = step;
  return strides;
}

bool is_contiguous_in(const TensorBase& t, MemoryFormat format) {
  if (format == MemoryFormat::kContiguous) return t.is_contiguous();
  size_t want = format == MemoryFormat::kChannelsLast ? 4 : 5;
  if (t.sizes().size() != want) return false;
  Dims strides = strides_in(t.sizes(), format);
  for (size_t d = 0; d < want; ++d) {
    if (t.sizes()[d] == 0) return true;
    if (t.sizes()[d] != 1 && t.strides()[d] != strides[d]) return false;
  }
  return true;
}

// Are the strides in the order of channels-last, sizes of one and steps over gaps allowed?
static bool ordered_channels_last(const Dims& sizes, const Dims& strides) {
  if (sizes.size() != 4 && sizes.size() != 5) return false;
  if (strides[1] == 0) return false;
  int64_t least = 0;
  auto next = [&](size_t d) {
    if (sizes[d] == 0 || strides[d] < least) return false;
    if (d == 0 && least == strides[1]) return false;  // row-major would do as well
    least = strides[d] * std::max<int64_t>(sizes[d], 1);
    return true;
  };
  if (!next(1)) return false;
  for (size_t d = sizes.size() - 1; d >= 2; --d)
    if (!next(d)) return false;
  return next(0);
}

MemoryFormat suggested_format(const TensorBase& t) {
  if (!ordered_channels_last(t.sizes(), t.strides())) return MemoryFormat::kContiguous;
  return t.dim() == 4 ? MemoryFormat::kChannelsLast : MemoryFormat::kChannelsLast3d;
}

bool is_dense(const TensorBase& t) {
  if (t.is_contiguous()) return true;
  int64_t last = 0;
  for (int d = 0; d < t.dim(); ++d) {
    if (t.strides()[d] < 0) return false;
    last += (t.sizes()[d] - 1) * t.strides()[d];
  }
  return last + 1 == t.numel() && !has_internal_overlap(t.sizes(), t.strides());
}

Dims preserved_strides(const TensorBase& t) {
  if (is_dense(t)) return t.strides();
  const TensorBase* one[] = {&t};
  return preserved_strides(one, t.sizes());
}

Dims preserved_strides(std::span<const TensorBase* const> of, const Dims& shape) {
  // A repeated dimension (of stride 0) says nothing of its place.
  auto stride = [&](const TensorBase& t, int64_t d) {
    const int64_t own = d - (shape.ndim() - t.dim());
    if (own < 0) return int64_t{0};
    const auto at = static_cast<size_t>(own);
    return t.sizes()[at] == shape[static_cast<size_t>(d)] ? t.strides()[at] : 0;
  };
  auto steps_further = [&](int64_t a, int64_t b) {
    for (const TensorBase* t : of) {
      const int64_t x = stride(*t, a), y = stride(*t, b);
      if (x == 0 || y == 0) continue;
      if (x != y) return x > y ? 1 : -1;
      if (shape[static_cast<size_t>(a)] > shape[static_cast<size_t>(b)]) return 1;
    }
    return 0;
  };
  // Dimensions from the innermost out. One of which nothing is told stays where it is.
  Dims order;
  for (int d = shape.ndim() - 1; d >= 0; --d) order.push_back(d);
  for (size_t i = 1; i < order.size(); ++i) {
    size_t at = i;
    for (size_t k = i; k-- > 0;) {
      int further = steps_further(order[k], order[at]);
      if (further < 0) break;
      if (further == 0) continue;
      std::swap(order[k], order[at]);
      at = k;
    }
  }
  Dims out(shape.size());
  int64_t step = 1;
  for (int64_t d : order) {
    out[static_cast<size_t>(d)] = step;
    step *= std::max<int64_t>(shape[static_cast<size_t>(d)], 1);
  }
  return out;
}

TensorBase from_blob(void* data, const Dims& sizes, const Dims& strides, DType dtype, Device device,
                     void* owner, void (*release)(void*)) {
  auto made = Ref<Storage>::make(device, bytes_spanned(sizes, strides, dtype));
  note_new_storage(*made);
  TensorBase t = fresh(Ref<TensorImpl>::make(std::move(made), dtype, sizes, strides, 0));
  // Last: where an exception is thrown the owner stays the caller's.
  Storage& storage = t.storage();
  storage.data = data;
  storage.owner = owner;
  storage.release = release;
  storage.exposed.store(true, std::memory_order_relaxed);
  storage.resizable = false;
  return t;
}

int wrap_dim(int64_t d, int ndim) {
  int n = std::max(ndim, 1);  // a 0-d tensor has the dimensions 0 and -1
  TS_CHECK_INDEX(d >= -n && d < n, "Dimension out of range (expected to be in range of [", -n, ", ",
                 n - 1, "], but got ", d, ")");
  return static_cast<int>(d < 0 ? d + n : d);
}

Dims broadcast_shapes(const Dims& a, const Dims& b) {
  size_t n = std::max(a.size(), b.size());
  Dims out(n);
  for (size_t i = 0; i < n; ++i) {
    int64_t x = i < n - a.size() ? 1 : a[i - (n - a.size())];
    int64_t y = i < n - b.size() ? 1 : b[i - (n - b.size())];
    TS_CHECK(x == y || x == 1 || y == 1, "The size of tensor a (", x,
             ") must match the size of tensor b (", y, ") at non-singleton dimension ", i);
    out[i] = x == 1 ? y : x;
  }
  return out;
}

Dims broadcast_strides(const Dims& sizes, const Dims& strides, const Dims& to) {
  Dims out(to.size());
  size_t lead = to.size() - sizes.size();
  for (size_t i = 0; i < sizes.size(); ++i)
    out[lead + i] = sizes[i] == 1 && to[lead + i] != 1 ? 0 : strides[i];
  return out;
}

bool has_internal_overlap(const Dims& sizes, const Dims& strides) {
  // Sort dimensions by stride; each must step over all that the smaller ones span. A geometry that
  // fails this could still be free of overlap, and no view operator of ours makes such a one.
  Dims order;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return false;
    if (sizes[d] > 1) order.push_back(static_cast<int64_t>(d));
  }
  std::sort(order.begin(), order.end(),
            [&](int64_t x, int64_t y) { return strides[x] < strides[y]; });
  int64_t span = 0;
  for (int64_t d : order) {
    if (strides[d] <= span) return true;
    span += (sizes[d] - 1) * strides[d];
  }
  return false;
}

}  // namespace tessera
