// What the records of embeddings share.
#pragma once
#include "tessera/ops/call.h"

namespace tessera {

// Raises unless these are numbers of rows.
void check_row_numbers(const TensorBase& indices, const char* function);
// Scales the rows named by indices whose norm is above the largest one, in place and without
// autograd.
void renorm_rows(const TensorBase& weight, const TensorBase& indices, double max_norm,
                 double norm_type);

}  // namespace tessera
