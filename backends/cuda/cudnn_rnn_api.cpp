#include "cudnn_rnn_api.h"

#include "library_api.h"

namespace tessera::cuda {

const CudnnRnnApi* cudnn_rnn_api(const char** why) {
  return opened_once<CudnnRnnApi>(why, [](auto& s) {
    void* library = open_library({"libcudnn.so.9"}, &s.why);
    if (!library) return false;
    TS_CUDNN_RNN_FUNCTIONS(TS_FIND_FUNCTION)
    return true;
  });
}

}  // namespace tessera::cuda
