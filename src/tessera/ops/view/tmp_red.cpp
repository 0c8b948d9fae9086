#include "tessera/ops/call.h"
namespace tessera {
static Outputs no(const Call& c) { raise(ErrorKind::kNotImplemented, c.op.name); }
TS_OP({ .schema = "cat(Tensor[] tensors, int dim=0) -> Tensor", .run = no, .backward = [](Backward&) {} });
}
