#include "cufft_api.h"

#include "driver_api.h"
#include "library_api.h"

namespace tessera::cuda {

const CufftApi* cufft_api(const char** why) {
  return opened_once<CufftApi>(why, [](auto& s) {
    std::vector<const char*> names = {"libcufft.so.12", "libcufft.so.11"};
    if (driver().version < 13000) names = {"libcufft.so.11", "libcufft.so.12"};
    void* library = open_library(names, &s.why);
    if (!library) return false;
    TS_CUFFT_FUNCTIONS(TS_FIND_FUNCTION)
    return true;
  });
}

}  // namespace tessera::cuda
