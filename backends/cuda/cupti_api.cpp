#include "cupti_api.h"

#include <cstdlib>
#include <cstring>

#include "driver_api.h"
#include "library_api.h"

namespace tessera::cuda {

const CuptiApi* cupti_api(const char** why) {
  return opened_once<CuptiApi>(why, [](auto& s) {
    const char* wanted = std::getenv("TESSERA_CUPTI");
    if (wanted && !std::strcmp(wanted, "0")) {
      s.why = "TESSERA_CUPTI is 0";
      return false;
    }
    // What it is built on; a driver without it is none of NVIDIA's.
    void* own = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!own || !dlsym(own, "cuGetExportTable")) {
      s.why = "the driver has no cuGetExportTable";
      return false;
    }
    std::vector<const char*> names = {"libcupti.so.13", "libcupti.so.12"};
    if (driver().version < 13000) names = {"libcupti.so.12", "libcupti.so.13"};
    void* library = open_library(names, &s.why);
    if (!library) return false;
    CuptiApi& a = s.api;
    auto later = [&](const char* name, auto*& to) {
      to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(library, name));
    };
    later("cuptiActivityEnableDriverApi", a.enable_driver);
    return s.find(library, "cuptiActivityRegisterCallbacks", a.register_callbacks) &&
           s.find(library, "cuptiActivityEnable", a.enable) &&
           s.find(library, "cuptiActivityDisable", a.disable) &&
           s.find(library, "cuptiActivityFlushAll", a.flush) &&
           s.find(library, "cuptiActivityGetNextRecord", a.next_record) &&
           s.find(library, "cuptiGetTimestamp", a.timestamp) &&
           s.find(library, "cuptiSetThreadIdType", a.thread_ids) &&
           s.find(library, "cuptiGetCallbackName", a.function_name) &&
           s.find(library, "cuptiGetResultString", a.result_text);
  });
}

}  // namespace tessera::cuda
