#include "tessera/face/tensor.h"

#include "tessera/call/overlap.h"
#include "tessera/face/set_data.h"
#include "tessera/memory/allocator.h"
#include "tessera/ops/index/layout.h"

namespace tessera {

Scalar Tensor::scalar() const {
  TS_CHECK(numel() == 1, "a Tensor with ", numel(), " elements cannot be converted to Scalar");
  Tensor host = detach().cpu();
  fuse::ensure_readable(host, fuse::Reason::kHostRead);
  return read_scalar(host);
}

const Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> at, Scalar value) const {
  check_fits(value, dtype());
  set_index(*this, {at.begin(), at.size()}, op::full({}, value, dtype(), device()));
  return *this;
}

void Tensor::record_stream(const cuda::Stream& stream) const {
  TS_CHECK(device().is_cuda(), "record_stream(): the tensor is on ", device(),
           "; memory of a stream is that of a cuda device");
  // Work that touches it runs on the stream it was called for, before another one may use it.
  fuse::ensure_writable(*this, fuse::Reason::kRecordStream);
  memory::record_stream(storage(), stream.handle());
}

void set_data(const TensorBase& t, const TensorBase& from) {
  if (t.is_same(from)) return;
  TensorImpl& impl = *t.impl();
  TS_CHECK(is_differentiable(from.dtype()) || !impl.requires_grad,
           "data set to a tensor that requires gradients must be floating point or complex dtype");
  Ref<Storage> before = std::exchange(impl.storage, from.impl()->storage);
  if (before->pending.load(std::memory_order_acquire)) release_pending_storage(before.release());
  impl.dtype = from.dtype();
  set_geometry(t, from.sizes(), from.strides(), from.storage_offset());
}

std::vector<Tensor> detail::as_list(std::vector<TensorBase> all) {
  std::vector<Tensor> out;
  for (TensorBase& t : all) out.emplace_back(std::move(t));
  return out;
}

// Note [Assignment to a temporary]
// `x[0] = y` writes into x. The write is lost if the temporary shares its memory with no other
// tensor: `x.index({mask}) = y` assigns to a copy. LibTorch says nothing then; Tessera raises.
void Tensor::write(const Value& values) const {
  TS_CHECK(defined(), "assignment to the elements of an undefined tensor");
  TS_CHECK(!values.is_none(), "assignment of an undefined tensor to the elements of a tensor");
  const Storage& s = storage();
  TS_CHECK(ref()->use_count() > 1 || s.exposed || s.use_count() - s.pending_refs > 1,
           "assignment to a temporary tensor that shares its memory with no other tensor has no "
           "effect. Assign to a view, or write x.index_put_(indices, values) where the indices are "
           "tensors");
  if (values.is_tensor()) {
    op::copy_(*this, *values.tensor);
  } else {
    check_fits(values.scalar, dtype());
    op::fill_(*this, values);
  }
}

Tensor Tensor::element(std::span<const int64_t> index) const {
  TS_CHECK_INDEX(static_cast<int>(index.size()) == dim(), "at(): ", index.size(),
                 " indices for a tensor of dimension ", dim());
  int64_t offset = storage_offset();
  for (size_t d = 0; d < index.size(); ++d) {
    int64_t n = sizes()[d], i = index[d];
    TS_CHECK_INDEX(i >= -n && i < n, "index ", i, " is out of bounds for dimension ", d,
                   " with size ", n);
    offset += (i < 0 ? i + n : i) * strides()[d];
  }
  return Tensor(alias(*this, Dims{}, Dims{}, offset));
}

}  // namespace tessera
