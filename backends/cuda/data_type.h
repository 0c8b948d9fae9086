// CUDA's names of dtypes, as its libraries take them.
#pragma once
#include <library_types.h>

#include "tessera/base/dtype.h"

namespace tessera::cuda {

// Of floating and complex dtypes.
inline cudaDataType_t data_type(DType t) {
  switch (t) {
    case DType::kFloat16:
      return CUDA_R_16F;
    case DType::kBFloat16:
      return CUDA_R_16BF;
    case DType::kFloat64:
      return CUDA_R_64F;
    case DType::kComplex64:
      return CUDA_C_32F;
    case DType::kComplex128:
      return CUDA_C_64F;
    default:
      return CUDA_R_32F;
  }
}

}  // namespace tessera::cuda
