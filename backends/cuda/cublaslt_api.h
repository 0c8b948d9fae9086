// libcublasLt as a struct of function pointers, opened at the first matrix product.
#pragma once
#include <cublasLt.h>

#include <string>

// One a line, which the formatter does not leave so.
// clang-format off
#define TS_CUBLASLT_FUNCTIONS(X)          \
  X(cublasLtCreate)                       \
  X(cublasLtMatmul)                       \
  X(cublasLtMatmulDescCreate)             \
  X(cublasLtMatmulDescDestroy)            \
  X(cublasLtMatmulDescSetAttribute)       \
  X(cublasLtMatrixLayoutCreate)           \
  X(cublasLtMatrixLayoutDestroy)          \
  X(cublasLtMatrixLayoutSetAttribute)     \
  X(cublasLtMatmulPreferenceCreate)       \
  X(cublasLtMatmulPreferenceDestroy)      \
  X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatmulAlgoGetHeuristic)       \
  X(cublasLtGetStatusString)
// clang-format on

namespace tessera::cuda {

struct CublasLtApi {
#define TS_CUBLASLT_MEMBER(f) decltype(&::f) f;
  TS_CUBLASLT_FUNCTIONS(TS_CUBLASLT_MEMBER)
#undef TS_CUBLASLT_MEMBER
};

// Null if it cannot be opened; *why says the reason.
const CublasLtApi* cublaslt_api(const char** why);

}  // namespace tessera::cuda
