// The grammar of schema lines.
//
//   schema  := name [ '.' overload ] '(' args ')' '->' results
//   arg     := type name [ '=' default ]     after '*' only by keyword
//   type    := Tensor | Tensor|Scalar | Scalar | int | float | bool | int[] | int[1] | int...
//            | Tensor[] | dtype | device | str, each with '?' when None is allowed
//   results := Tensor | (Tensor, Tensor)
#pragma once
#include "tessera/ops/record.h"

namespace tessera {

// Fills name, args and results; a malformed schema is our bug and raises.
void parse_schema(std::string_view text, Op& op);

}  // namespace tessera
