// Sixteen uniform numbers in [0, 1) to sixteen normal ones, in place, as PyTorch does.
#pragma once
#include "convert_scalar.h"

namespace tessera::cpu {

void normal_fill_16(float* data, double mean, double std);
void normal_fill_16(double* data, double mean, double std);
void normal_fill_16(Half* data, double mean, double std);
void normal_fill_16(BFloat* data, double mean, double std);

}  // namespace tessera::cpu
