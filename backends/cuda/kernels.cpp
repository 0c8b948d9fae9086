#include "kernels.h"

#include <string_view>
#include <unordered_map>
#include <vector>

namespace tessera::cuda {
namespace {

// Filled when the library is loaded, read-only afterwards. Never destroyed: threads may launch
// kernels while the process exits.
std::unordered_map<std::string_view, KernelFn>& kernels() {
  static auto& all = *new std::unordered_map<std::string_view, KernelFn>;
  return all;
}
std::unordered_map<std::string_view, JoinedKernel>& joined_kernels() {
  static auto& all = *new std::unordered_map<std::string_view, JoinedKernel>;
  return all;
}
std::vector<StreamEndFn>& stream_ends() {
  static auto& all = *new std::vector<StreamEndFn>;
  return all;
}

}  // namespace

RegisterStreamEnd::RegisterStreamEnd(StreamEndFn fn) { stream_ends().push_back(fn); }
void end_stream(Device& d, CUstream stream) {
  for (StreamEndFn fn : stream_ends()) fn(d, stream);
}

RegisterKernel::RegisterKernel(const char* name, KernelFn fn) { kernels().emplace(name, fn); }

KernelFn find_named_kernel(const char* name) {
  auto it = kernels().find(name);
  return it == kernels().end() ? nullptr : it->second;
}

RegisterJoined::RegisterJoined(const char* name, JoinedFn fn,
                               bool (*takes)(int64_t rows, int64_t n)) {
  joined_kernels().emplace(name, JoinedKernel{fn, takes});
}

const JoinedKernel* find_joined_kernel(const char* name) {
  auto it = joined_kernels().find(name);
  return it == joined_kernels().end() ? nullptr : &it->second;
}

Status refuse_complex(const KernelArgs& args, const char* name) {
  for (int i = 0; i < args.num_outputs; ++i)
    if (is_complex(args.outputs[i].dtype))
      return fail(Code::kUnsupported, "%s of complex numbers is not implemented for CUDA", name);
  return ok();
}

}  // namespace tessera::cuda
