#include "tessera/ops/call.h"
namespace tessera {
static Outputs no(const Call& c) { raise(ErrorKind::kNotImplemented, c.op.name); }
TS_OP({ .schema = "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor", .run = no, .backward = [](Backward&) {} });
TS_OP({ .schema = "scatter(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", .run = no, .backward = [](Backward&) {} });
TS_OP({ .schema = "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", .run = no, .backward = [](Backward&) {} });
TS_OP({ .schema = "masked_fill(Tensor self, Tensor mask, Scalar value) -> Tensor", .run = no, .backward = [](Backward&) {} });
}
