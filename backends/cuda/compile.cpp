#include "compile.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdio>
#include <cstdlib>

#include "disk_cache.h"
#include "nvrtc_api.h"
#include "pack.h"

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

struct Target {
  Target(const NvrtcApi& api, int wanted)
      : arch(supported_arch(api, wanted)),
        machine_code(arch == wanted),
        option((machine_code ? "--gpu-architecture=sm_" : "--gpu-architecture=compute_") +
               std::to_string(arch)) {}
  int arch;  // 0: none that would do
  bool machine_code;
  std::string option;
};

std::string log_of(const NvrtcApi& api, nvrtcProgram program) {
  size_t size = 0;
  api.nvrtcGetProgramLogSize(program, &size);
  std::string log(size, '\0');
  if (size) api.nvrtcGetProgramLog(program, log.data());
  return log.substr(0, 3000);
}

// Texts are kept to be read, or to be compiled elsewhere.
void keep_text(const std::string& text, Effort effort) {
  static const char* folder = std::getenv("TESSERA_KEEP_KERNELS");
  if (!folder || !*folder) return;
  const Hash128 name = pack_name(text, 0, effort);
  char hash[40], path[4096];
  std::snprintf(hash, sizeof hash, "%016llx%016llx", static_cast<unsigned long long>(name.hi),
                static_cast<unsigned long long>(name.lo));
  std::snprintf(path, sizeof path, "%s/%s.%s.%s.cu", folder, text_kind(text).c_str(),
                effort == Effort::kQuick ? "quick" : "full", hash);
  if (std::FILE* f = std::fopen(path, "w")) {
    std::fwrite(text.data(), 1, text.size(), f);
    std::fclose(f);
  }
}

// Nothing is contracted or approximated: a fused group gives the bits of its operators one by one.
constexpr const char* kOptions[] = {"--fmad=false",      "--prec-div=true", "--prec-sqrt=true",
                                    "--ftz=false",       "--std=c++17",     "-default-device",
                                    "--disable-warnings"};

std::vector<const char*> options_for(const NvrtcApi& api, const std::string& gpu, Effort effort) {
  std::vector<const char*> options(std::begin(kOptions), std::end(kOptions));
  options.insert(options.begin(), gpu.c_str());
  if (api.major >= 13) {  // older ones do not know these
    options.push_back("--minimal");
    if (effort == Effort::kQuick) options.push_back("--Ofast-compile=min");
  }
  return options;
}

Hash128 cache_name(const NvrtcApi& api, const std::vector<const char*>& options,
                   const std::string& text) {
  Hasher h(1);
  for (const char* option : options) h.add(std::string_view(option));
  h.add(static_cast<uint64_t>(api.major) << 32 | static_cast<uint64_t>(api.minor));
  h.add(std::string_view(text));
  return h.finish();
}

bool run_compiler(const NvrtcApi& api, const std::string& text,
                  const std::vector<const char*>& options, bool machine_code,
                  std::vector<char>* image, std::string* error) {
  nvrtcProgram program;
  nvrtcResult r = api.nvrtcCreateProgram(&program, text.c_str(), "tessera.cu", 0, nullptr, nullptr);
  if (r == NVRTC_SUCCESS) {
    r = api.nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data());
    size_t size = 0;
    if (r == NVRTC_SUCCESS)
      r = machine_code ? api.nvrtcGetCUBINSize(program, &size)
                       : api.nvrtcGetPTXSize(program, &size);
    if (r == NVRTC_SUCCESS) {
      image->resize(size);
      r = machine_code ? api.nvrtcGetCUBIN(program, image->data())
                       : api.nvrtcGetPTX(program, image->data());
    }
    if (r != NVRTC_SUCCESS) *error = log_of(api, program);
    api.nvrtcDestroyProgram(&program);
  }
  if (r == NVRTC_SUCCESS) return true;
  *error = std::string("NVRTC: ") + api.nvrtcGetErrorString(r) + "\n" + *error;
  return false;
}

// What a newer compiler made cannot be loaded by an older driver. `image` may be null.
bool read_packed(const std::string& text, int arch, Effort effort, std::vector<char>* image) {
  const PackFile* pack = installed_pack();
  if (!pack) return false;
  const int driver = cuda_driver_version();
  if (driver != 0 && driver / 1000 < pack->toolkit() / 1000) return false;
  for (int a : pack->archs_for(arch))
    if (pack->find(pack_name(text, a, effort), image)) return true;
  return false;
}

}  // namespace

Hash128 pack_name(const std::string& text, int arch, Effort effort) {
  Hasher h(3);
  h.add(static_cast<uint64_t>(arch) << 8 | static_cast<uint64_t>(effort));
  for (const char* option : kOptions) h.add(std::string_view(option));
  h.add(std::string_view(text));
  return h.finish();
}

std::string text_kind(const std::string& text) {
  std::string entry = "kernel";
  const size_t at = text.find("__global__");
  if (const size_t end = text.find("(const __grid_constant__", at); end != std::string::npos) {
    size_t begin = end;
    while (begin > at && (std::isalnum(text[begin - 1]) || text[begin - 1] == '_')) --begin;
    entry = text.substr(begin, end - begin);
  }
  const bool joined = text.find("#define BEFORE 1\n") != std::string::npos ||
                      text.find("#define AFTER 1\n") != std::string::npos;
  return joined ? entry + "+joined" : entry;
}

Effort effort_of_file(const std::string& name) {
  return name.find(".quick.") != std::string::npos ? Effort::kQuick : Effort::kFull;
}

bool compile_fresh(const std::string& text, int arch, std::vector<char>* image, std::string* error,
                   Effort effort) {
  const NvrtcApi* api = nvrtc_api(error);
  if (!api) return false;
  const Target target(*api, arch);
  if (target.arch != arch) {
    *error = "this NVRTC does not compile for sm_" + std::to_string(arch);
    return false;
  }
  return run_compiler(*api, text, options_for(*api, target.option, effort), true, image, error);
}

bool compile_text(const std::string& text, int arch, std::vector<char>* image, std::string* error,
                  Effort effort) {
  keep_text(text, effort);
  if (read_packed(text, arch, effort, image)) {
    ++g_compiled;
    ++g_from_cache;
    return true;
  }
  std::string why;
  const NvrtcApi* api = nvrtc_api(&why);
  if (!api) {
    *error = "kernels cannot be compiled: " + why + "; pip install \"tessera[cuda]\" brings it";
    return false;
  }
  const Target target(*api, arch);
  if (target.arch == 0) {
    *error = "NVRTC " + std::to_string(api->major) + "." + std::to_string(api->minor) +
             " does not compile for compute capability " + std::to_string(arch / 10) + "." +
             std::to_string(arch % 10) + "; an older CUDA does: pip install \"tessera[cuda12]\"";
    return false;
  }
  const std::vector<const char*> options = options_for(*api, target.option, effort);
  const Hash128 name = cache_name(*api, options, text);
  if (read_cached(name, image)) {
    ++g_compiled;
    ++g_from_cache;
    return true;
  }
  if (!run_compiler(*api, text, options, target.machine_code, image, error)) return false;
  write_cached(name, *image);
  ++g_compiled;
  return true;
}

bool is_compiled(const std::string& text, int arch, Effort effort) {
  if (read_packed(text, arch, effort, nullptr)) return true;
  const NvrtcApi* api = nvrtc_api(nullptr);
  if (!api) return false;
  const Target target(*api, arch);
  return has_cached(cache_name(*api, options_for(*api, target.option, effort), text));
}

void count_compilations(int64_t* compiled, int64_t* from_cache) {
  if (compiled) *compiled = g_compiled.load();
  if (from_cache) *from_cache = g_from_cache.load();
}

}  // namespace tessera::cuda
