#include "tessera/ops/call.h"
namespace tessera {
static Outputs no(const Call& c) { raise(ErrorKind::kNotImplemented, c.op.name); }
TS_OP({ .schema = "maximum(Tensor self, Tensor other) -> Tensor", .run = no, .backward = [](Backward&) {} });
TS_OP({ .schema = "minimum(Tensor self, Tensor other) -> Tensor", .run = no, .backward = [](Backward&) {} });
TS_OP({ .schema = "pow(Tensor self, Tensor|Scalar exponent) -> Tensor", .run = no, .backward = [](Backward&) {} });
}
