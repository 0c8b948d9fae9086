// The tensor: a strided view over a storage. TensorBase is a handle that the core passes around;
// the C++ face's Tensor (tessera/tessera.h) derives from it and adds the operators as methods.
#pragma once
#include <atomic>
#include <memory>
#include <optional>

#include "tessera/base/device.h"
#include "tessera/base/dims.h"
#include "tessera/base/dtype.h"
#include "tessera/base/ref.h"
#include "tessera/tensor/storage.h"

namespace tessera {

// What autograd keeps for a tensor that takes part; made by autograd/, opaque here.
struct AutogradMeta {
  virtual ~AutogradMeta() = default;
  // Of a view: has its base come to require a gradient by a write since the view was made?
  virtual bool base_requires_grad() const = 0;
};

class TensorImpl final : public RefCounted {
 public:
  TensorImpl(Ref<Storage> storage, DType dtype, Dims sizes, Dims strides, int64_t offset);
  ~TensorImpl();

  Ref<Storage> storage;
  int64_t offset;  // in elements
  int64_t numel;
  DType dtype;
  bool contiguous;             // row-major without gaps
  bool requires_grad = false;  // a leaf that wants one, or a result with a grad_fn
  bool is_view = false;        // made by a view operator
  // Made in inference mode, or a view of such a tensor: see Note [Inference tensors].
  enum class Inference : uint8_t { kNone, kInference, kDetached };
  Inference inference = Inference::kNone;
  void* python = nullptr;  // the one Python object of this tensor, if there is one
  Dims sizes;
  Dims strides;
  std::unique_ptr<AutogradMeta> autograd;
  // Of one whose writes are counted apart, shared with its views; null for most.
  std::shared_ptr<std::atomic<uint32_t>> own_version;

  Device device() const { return storage->device; }

  // Note [Ownership bit]
  // The Python object owns a reference to the tensor. When the highest bit of the count is set, the
  // tensor also owns a reference to the object. The unref() that leaves only the object's reference
  // clears the bit in the same atomic step, so exactly one thread releases the object.
  // See python/src/tensor_object.h.
  bool unref() const noexcept {
    uint32_t n = count_.load(std::memory_order_acquire);
    do {
      if (n == 1) return true;
    } while (!count_.compare_exchange_weak(n, n == (kOwnsPython | 2) ? 1 : n - 1,
                                           std::memory_order_acq_rel, std::memory_order_acquire));
    if (n == (kOwnsPython | 2)) [[unlikely]]
      release_object();
    return false;
  }
  uint32_t use_count() const noexcept { return RefCounted::use_count() & ~kOwnsPython; }
  // Returns true if there is one reference, apart from that of an object that the tensor owns.
  bool is_held_once() const noexcept {
    uint32_t n = RefCounted::use_count();
    return n == 1 || n == (kOwnsPython | 2);
  }
  // Sets the bit and takes over a reference to the object. Returns false, and changes nothing, if
  // the bit is set or the calling object holds the only reference to the tensor.
  bool own_python() const noexcept;
  // Clears the bit. Returns true if it was set: the reference to the object is then the caller's.
  bool disown_python() const noexcept {
    return (RefCounted::use_count() & kOwnsPython) &&
           (count_.fetch_and(~kOwnsPython, std::memory_order_acq_rel) & kOwnsPython);
  }

 private:
  static constexpr uint32_t kOwnsPython = uint32_t{1} << 31;
  void release_object() const noexcept;
};

// Note [Inference tensors]
// A tensor made in inference mode, and each view of it, can be neither written in place outside the
// mode nor saved for backward. One detached outside the mode may be written. `inference_mode` is a
// state of the thread; the counter lets threads skip the thread-local variable while none has it.
extern std::atomic<int> inference_modes;  // number of threads in the mode
bool thread_in_inference_mode();
inline bool inference_mode() {
  return inference_modes.load(std::memory_order_relaxed) != 0 && thread_in_inference_mode();
}
void set_inference_mode(bool on);

// Releases a reference to a Python object, from any thread.
extern void (*release_python_object)(void* object);
// Takes over one outside reference to a storage that has pending work (fuse/ sets it): the count
// has to fall under the stream's lock, because what the stream keeps depends on it.
extern void (*release_pending_storage)(Storage* storage);

class TensorBase {
 public:
  TensorBase() = default;
  explicit TensorBase(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}
  TensorBase(const TensorBase&) = default;
  TensorBase(TensorBase&&) noexcept = default;
  // Assignment rebinds a name. A temporary has none: face/tensor.h writes through it instead.
  TensorBase& operator=(const TensorBase&) & = default;
  TensorBase& operator=(TensorBase&&) & noexcept = default;
  ~TensorBase() = default;

  bool defined() const { return static_cast<bool>(impl_); }
  explicit operator bool() const = delete;
  TensorImpl* impl() const { return impl_.get(); }
  const Ref<TensorImpl>& ref() const { return impl_; }

  int dim() const { return impl_->sizes.ndim(); }
  const Dims& sizes() const { return impl_->sizes; }
  const Dims& strides() const { return impl_->strides; }
  int64_t size(int64_t d) const;
  int64_t numel() const { return impl_->numel; }
  DType dtype() const { return impl_->dtype; }
  Device device() const { return impl_->device(); }
  int64_t storage_offset() const { return impl_->offset; }
  Storage& storage() const { return *impl_->storage; }
  bool is_contiguous() const { return impl_->contiguous; }
  bool requires_grad() const {
    return impl_->requires_grad ||
           (impl_->is_view && impl_->autograd && impl_->autograd->base_requires_grad());
  }
  bool is_same(const TensorBase& o) const { return impl_.get() == o.impl_.get(); }
  size_t nbytes() const { return static_cast<size_t>(numel()) * itemsize(dtype()); }

  // Address of the first element once memory is there; the caller has made pending work run.
  char* raw() const {
    return static_cast<char*>(impl_->storage->data) +
           impl_->offset * static_cast<int64_t>(itemsize(impl_->dtype));
  }

 private:
  Ref<TensorImpl> impl_;
};

Dims contiguous_strides(const Dims& sizes);
// The product of sizes; raises when it or the byte size leaves 64 bits.
int64_t checked_numel(const Dims& sizes, DType dtype);

// A tensor with a storage of its own and no memory yet.
TensorBase new_unallocated(const Dims& sizes, DType dtype, Device device);
// ... with memory of undefined content.
TensorBase new_empty(const Dims& sizes, DType dtype, Device device);
TensorBase new_empty_strided(const Dims& sizes, const Dims& strides, DType dtype, Device device);
// A view of the same storage; no autograd.
TensorBase alias(const TensorBase& t, Dims sizes, Dims strides, int64_t offset);

// How often it was written in place, through any tensor over its memory: what autograd saved is of
// one version. `x.data` is apart: what is written through it, or through views of it, x does not
// count, and the other way round.
uint32_t version_of(const TensorBase& t);
void count_write(const TensorBase& t);
TensorBase counted_apart(TensorBase t);
// Lets a view that detach() or `.data` has just made be written outside inference mode.
void detach_inference(const TensorBase& t);
// ... that reads its bytes as another dtype; `offset` counts elements of it.
TensorBase alias_as(const TensorBase& t, DType dtype, Dims sizes, Dims strides, int64_t offset);

// The tensor itself, seen another way over the same storage.
void set_geometry(const TensorBase& t, Dims sizes, Dims strides, int64_t offset);
// Bytes of a storage that a geometry reaches; raises for negative sizes and strides, and where it
// leaves 64 bits.
int64_t bytes_reached(const Dims& sizes, const Dims& strides, int64_t offset, DType dtype);
// Raises, as PyTorch does, where a geometry reaches beyond the storage.
void check_in_storage(const Storage& storage, const Dims& sizes, const Dims& strides,
                      int64_t offset, DType dtype);

// PyTorch's memory formats: an order of strides.
enum class MemoryFormat : int64_t { kContiguous, kPreserve, kChannelsLast, kChannelsLast3d };
// Raises where the number of dimensions does not fit the format. kPreserve is not one of them.
Dims strides_in(const Dims& sizes, MemoryFormat format);
bool is_contiguous_in(const TensorBase& t, MemoryFormat format);
// The format whose order of strides the tensor has: what results that are laid out anew take from
// it. Row-major where several would do.
MemoryFormat suggested_format(const TensorBase& t);
// Do its elements fill a piece of memory without gaps and without sharing a place?
bool is_dense(const TensorBase& t);
// Strides of a fresh tensor of the same shape: those of `t` where it is dense, else without gaps in
// their order.
Dims preserved_strides(const TensorBase& t);
// ... of a fresh tensor of a shape to which all of these are broadcast: in the order of the strides
// of the first; what it does not tell, because it is repeated there, the next ones do.
Dims preserved_strides(std::span<const TensorBase* const> of, const Dims& shape);
// A tensor over foreign memory: exposed for life and not resizable.
TensorBase from_blob(void* data, const Dims& sizes, const Dims& strides, DType dtype, Device device,
                     void* owner, void (*release)(void*));

// "x[i] means dimension i": negative dimensions count from the end; raises IndexError.
int wrap_dim(int64_t d, int ndim);
// PyTorch's broadcast of two shapes; raises with its wording.
Dims broadcast_shapes(const Dims& a, const Dims& b);
// Strides of `t` over a broadcast shape.
Dims broadcast_strides(const Dims& sizes, const Dims& strides, const Dims& to);

// Does some element of this geometry lie in the place of another one?
bool has_internal_overlap(const Dims& sizes, const Dims& strides);

}  // namespace tessera
