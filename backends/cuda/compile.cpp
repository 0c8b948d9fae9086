#include "compile.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "disk_cache.h"
#include "nvrtc_api.h"

namespace tessera::cuda {
namespace {

std::atomic<int64_t> g_compiled{0}, g_from_cache{0};

// The newest architecture NVRTC knows that is not newer than the device's. Where it is older, PTX
// is made instead, which the driver translates.
int supported_arch(const NvrtcApi& api, int arch) {
  int count = 0;
  if (api.nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count <= 0) return arch;
  std::vector<int> archs(count);
  if (api.nvrtcGetSupportedArchs(archs.data()) != NVRTC_SUCCESS) return arch;
  int best = 0;
  for (int a : archs)
    if (a <= arch) best = std::max(best, a);
  return best;
}

std::string log_of(const NvrtcApi& api, nvrtcProgram program) {
  size_t size = 0;
  api.nvrtcGetProgramLogSize(program, &size);
  std::string log(size, '\0');
  if (size) api.nvrtcGetProgramLog(program, log.data());
  return log.substr(0, 3000);
}

}  // namespace

namespace {

// Texts are kept where $TESSERA_KEEP_KERNELS says: to be read, or to be compiled elsewhere.
void keep_text(const std::string& text, const Hash128& name) {
  static const char* folder = std::getenv("TESSERA_KEEP_KERNELS");
  if (!folder || !*folder) return;
  char path[4096];
  std::snprintf(path, sizeof path, "%s/%016llx%016llx.cu", folder,
                static_cast<unsigned long long>(name.hi), static_cast<unsigned long long>(name.lo));
  if (std::FILE* f = std::fopen(path, "w")) {
    std::fwrite(text.data(), 1, text.size(), f);
    std::fclose(f);
  }
}

}  // namespace

bool compile_text(const std::string& text, int arch, std::vector<char>* image, std::string* error,
                  Effort effort) {
  std::string why;
  const NvrtcApi* api = nvrtc_api(&why);
  if (!api) {
    *error = "kernels cannot be compiled: " + why + "; pip install \"tessera[cuda]\" brings it";
    return false;
  }
  int target = supported_arch(*api, arch);
  if (target == 0) {
    *error = "NVRTC " + std::to_string(api->major) + "." + std::to_string(api->minor) +
             " does not compile for compute capability " + std::to_string(arch / 10) + "." +
             std::to_string(arch % 10) + "; an older CUDA does: pip install \"tessera[cuda12]\"";
    return false;
  }
  bool machine_code = target == arch;
  std::string gpu = (machine_code ? "--gpu-architecture=sm_" : "--gpu-architecture=compute_") +
                    std::to_string(target);
  // Nothing is contracted or approximated: a fused group gives the bits of its operators one by
  // one.
  std::vector<const char*> options = {gpu.c_str(),        "--fmad=false",      "--prec-div=true",
                                      "--prec-sqrt=true", "--ftz=false",       "--std=c++17",
                                      "-default-device",  "--disable-warnings"};
  if (api->major >= 13) {  // older ones do not know these
    options.push_back("--minimal");
    if (effort == Effort::kQuick) options.push_back("--Ofast-compile=min");
  }
  Hasher h(1);
  for (const char* option : options) h.add(std::string_view(option));
  h.add(static_cast<uint64_t>(api->major) << 32 | static_cast<uint64_t>(api->minor));
  h.add(std::string_view(text));
  Hash128 name = h.finish();
  keep_text(text, name);
  if (read_cached(name, image)) {
    ++g_compiled;
    ++g_from_cache;
    return true;
  }
  nvrtcProgram program;
  nvrtcResult r =
      api->nvrtcCreateProgram(&program, text.c_str(), "tessera.cu", 0, nullptr, nullptr);
  if (r == NVRTC_SUCCESS) {
    r = api->nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data());
    size_t size = 0;
    if (r == NVRTC_SUCCESS)
      r = machine_code ? api->nvrtcGetCUBINSize(program, &size)
                       : api->nvrtcGetPTXSize(program, &size);
    if (r == NVRTC_SUCCESS) {
      image->resize(size);
      r = machine_code ? api->nvrtcGetCUBIN(program, image->data())
                       : api->nvrtcGetPTX(program, image->data());
    }
    if (r != NVRTC_SUCCESS) *error = log_of(*api, program);
    api->nvrtcDestroyProgram(&program);
  }
  if (r != NVRTC_SUCCESS) {
    *error = std::string("NVRTC: ") + api->nvrtcGetErrorString(r) + "\n" + *error;
    return false;
  }
  write_cached(name, *image);
  ++g_compiled;
  return true;
}

void count_compilations(int64_t* compiled, int64_t* from_cache) {
  if (compiled) *compiled = g_compiled.load();
  if (from_cache) *from_cache = g_from_cache.load();
}

}  // namespace tessera::cuda
