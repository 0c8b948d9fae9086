#include "cudnn_api.h"

#include "library_api.h"

namespace tessera::cuda {

const CudnnApi* cudnn_api(const char** why) {
  return opened_once<CudnnApi>(why, [](auto& s) {
    void* library = open_library({"libcudnn.so.9"}, &s.why);
    if (!library) return false;
    TS_CUDNN_FUNCTIONS(TS_FIND_FUNCTION)
    return true;
  });
}

}  // namespace tessera::cuda
