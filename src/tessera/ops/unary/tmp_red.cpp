#include "tessera/ops/call.h"
namespace tessera {
static Outputs no(const Call& c) { raise(ErrorKind::kNotImplemented, c.op.name); }
TS_OP({ .schema = "conj(Tensor self) -> Tensor", .run = [](const Call& c) -> Outputs { return c.tensor(0); }, });
TS_OP({ .schema = "real(Tensor self) -> Tensor", .run = no, .backward = [](Backward&) {} });
TS_OP({ .schema = "log(Tensor self) -> Tensor", .run = no, .backward = [](Backward&) {} });
TS_OP({ .schema = "abs(Tensor self) -> Tensor", .run = no, .backward = [](Backward&) {} });
TS_OP({ .schema = "sgn(Tensor self) -> Tensor", .run = no, .backward = [](Backward&) {} });
TS_OP({ .schema = "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor", .run = no, .backward = [](Backward&) {} });
}
