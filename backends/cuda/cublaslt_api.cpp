#include "cublaslt_api.h"

#include "driver_api.h"
#include "library_api.h"

namespace tessera::cuda {

const CublasLtApi* cublaslt_api(const char** why) {
  return opened_once<CublasLtApi>(why, [](auto& s) {
    std::vector<const char*> names = {"libcublasLt.so.13", "libcublasLt.so.12"};
    if (driver().version < 13000) names = {"libcublasLt.so.12", "libcublasLt.so.13"};
    void* library = open_library(names, &s.why);
    if (!library) return false;
    TS_CUBLASLT_FUNCTIONS(TS_FIND_FUNCTION)
    return true;
  });
}

}  // namespace tessera::cuda
