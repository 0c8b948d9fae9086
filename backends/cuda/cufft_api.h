// libcufft as a struct of function pointers, opened at the first Fourier transform.
#pragma once
#include <cufftXt.h>

// One a line, which the formatter does not leave so.
// clang-format off
#define TS_CUFFT_FUNCTIONS(X) \
  X(cufftCreate)              \
  X(cufftDestroy)             \
  X(cufftSetAutoAllocation)   \
  X(cufftSetStream)           \
  X(cufftSetWorkArea)         \
  X(cufftXtMakePlanMany)      \
  X(cufftXtExec)
// clang-format on

namespace tessera::cuda {

struct CufftApi {
#define TS_CUFFT_MEMBER(f) decltype(&::f) f;
  TS_CUFFT_FUNCTIONS(TS_CUFFT_MEMBER)
#undef TS_CUFFT_MEMBER
};

// Null if it cannot be opened; *why says the reason.
const CufftApi* cufft_api(const char** why);

}  // namespace tessera::cuda
