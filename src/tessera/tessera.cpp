#include "tessera/tessera.h"

#include "tessera/call/overlap.h"

namespace tessera {

double Tensor::item() const {
  TS_CHECK(numel() == 1, "a Tensor with ", numel(), " elements cannot be converted to Scalar");
  Tensor host = detach().cpu();
  fuse::ensure_readable(host, fuse::Reason::kHostRead);
  return read_scalar(host).to_double();
}

}  // namespace tessera
