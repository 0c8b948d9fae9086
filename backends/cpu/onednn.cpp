// oneDNN, behind a library of our own that is opened at first use: nothing here needs it to be
// there.
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "../onednn/table.h"
#include "conv.h"
#include "library_call.h"
#include "tessera/base/library_path.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

const onednn::Table* open_table() {
  const char* asked = std::getenv("TESSERA_ONEDNN");
  if (asked && !std::strcmp(asked, "0")) return nullptr;
  // It lies beside this library.
  Dl_info info{};
  if (!dladdr(reinterpret_cast<const void*>(&open_table), &info) || !info.dli_fname ||
      !is_absolute_path(info.dli_fname))
    return nullptr;
  std::string path = info.dli_fname;
  path = path.substr(0, path.rfind('/') + 1) + "libtessera_onednn.so";
  void* lib = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!lib) return nullptr;
  library_was_opened();
  auto table = reinterpret_cast<const onednn::Table* (*)()>(dlsym(lib, "tessera_onednn_table"));
  const onednn::Table* t = table ? table() : nullptr;
  return t && t->version == onednn::kVersion ? t : nullptr;
}
const onednn::Table* opened() {
  static const onednn::Table* table = open_table();
  return table;
}

}  // namespace

const char* onednn_release() noexcept { return opened() ? opened()->release() : nullptr; }

bool conv_by_onednn(ConvKind kind, const ConvShape& s, const float* input, const float* weight,
                    const float* bias, const float* output, float* result) {
  // Tiny ones are done before it has started, and small ones before a second thread has: where
  // other programs want the cores too, waiting for it takes the scheduler's time slices.
  const int64_t products = s.n * s.o * s.out_points() * s.rows();
  if (products < 16 * 1024) return false;
  constexpr int64_t kForEachThread = 512 * 1024;
  const onednn::Table* table = opened();
  if (!table) return false;
  onednn::Conv c{};
  c.kind = static_cast<int>(kind);
  c.threads =
      in_parallel()
          ? 1
          : static_cast<int>(std::clamp<int64_t>(products / kForEachThread, 1, num_threads()));
  c.n = s.n;
  c.c = s.c;
  c.o = s.o;
  c.groups = s.groups;
  for (int d = 0; d < 3; ++d) {
    c.in[d] = s.in[d];
    c.out[d] = s.out[d];
    c.kernel[d] = s.kernel[d];
    c.stride[d] = s.stride[d];
    c.padding[d] = s.padding[d];
    c.dilation[d] = s.dilation[d];
  }
  c.has_bias = bias != nullptr;
  LibraryCall call;
  if (libraries_are_closed()) return false;  // libdnnl may have been torn down
  const onednn::Outcome outcome = table->conv(&c, input, weight, bias, output, result);
  static const bool first = (renew_library_end(), true);  // it makes static objects at first use
  if (outcome == onednn::Outcome::kNoMemory) throw std::bad_alloc();
  return first && outcome == onednn::Outcome::kDone;
}

}  // namespace tessera::cpu
