// The grammar of schema lines.
//
//   schema  := [ module '.' ] name '(' args ')' '->' results
//   module  := linalg | fft | special | nn.functional | ...: where Python has it
//   arg     := type name [ '=' default ]     after '*' only by keyword
//   type    := Tensor | Tensor|Scalar | Scalar | int | float | bool | int[] | int[1] | int...
//            | float[] | Tensor[] | Tensor?[] | dtype | device | str | memory_format | layout
//            | Generator, each with '?' when None is allowed
//   results := Tensor | (Tensor, Tensor) | (Tensor values, Tensor indices) | Tensor[]
//            | bool | int | float | Scalar
// int[N] takes a single int too, int... the list spread out. Named results are a named tuple in
// Python; bool, int, float and Scalar are the item of the 0-d tensor that the record returns.
// In C++ linalg.det is linalg_det; of nn.functional only the last name counts.
#pragma once
#include "tessera/ops/record.h"

namespace tessera {

// Fills name, args and results; a malformed schema is our bug and raises.
void parse_schema(std::string_view text, Op& op);

}  // namespace tessera
