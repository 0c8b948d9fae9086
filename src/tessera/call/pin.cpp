#include "tessera/call/pin.h"

#include <cstring>

#include "tessera/autograd/node.h"
#include "tessera/base/blocking.h"
#include "tessera/fuse/stream.h"
#include "tessera/gen/copy.h"
#include "tessera/memory/pinned.h"

namespace tessera {

std::vector<TensorBase> pinned(std::span<const TensorBase> tensors) {
  autograd::GradMode off(false);
  std::vector<TensorBase> out(tensors.begin(), tensors.end());
  std::vector<TensorBase> from(out.size());  // what is to be copied: dense, up to date
  for (size_t i = 0; i < out.size(); ++i) {
    const TensorBase& t = tensors[i];
    TS_CHECK(t.device().is_cpu(), "cannot pin a tensor on ", t.device(),
             ": only dense CPU tensors can be pinned");
    if (memory::is_pinned(t.storage())) continue;
    from[i] = is_dense(t) ? t : op::_contiguous_copy(t);
    fuse::ensure_readable(from[i], fuse::Reason::kHostRead);
  }
  BlockingScope scope;  // pinned memory takes long to get, and copying does too
  for (size_t i = 0; i < out.size(); ++i) {
    const TensorBase& t = from[i];
    if (!t.defined()) continue;
    TensorBase copy = new_unallocated(t.sizes(), t.dtype(), Device{});
    set_geometry(copy, t.sizes(), t.strides(), 0);
    allocate_pinned(copy.storage());
    if (t.numel() > 0) std::memcpy(copy.raw(), t.raw(), t.nbytes());
    out[i] = std::move(copy);
  }
  return out;
}

}  // namespace tessera
