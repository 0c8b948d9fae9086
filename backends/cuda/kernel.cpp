#include "kernel.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "compile.h"

namespace tessera::cuda {
namespace {

struct Table {
  std::shared_mutex mutex;
  std::mutex building;
  std::unordered_map<Hash128, const Kernel*, HashOfHash> kernels;
};
// Leaked: kernels live as long as the process.
Table& table() {
  static Table* t = new Table;
  return *t;
}

std::atomic<int64_t> g_built{0}, g_launches{0};

constexpr size_t kRecent = 256;
thread_local const Kernel* t_recent[kRecent];

const Kernel* look_up(const Hash128& key) {
  Table& t = table();
  std::shared_lock lock(t.mutex);
  auto it = t.kernels.find(key);
  return it == t.kernels.end() ? nullptr : it->second;
}

// A line for each kernel that is made or loaded, where $TESSERA_COMPILE_LOG says: how long somebody
// waited, and for what.
void log_wait(std::chrono::steady_clock::time_point begin, bool compiled, const char* what) {
  static const char* path = std::getenv("TESSERA_COMPILE_LOG");
  if (!path || !*path) return;
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  if (std::FILE* f = std::fopen(path, "a")) {
    std::fprintf(f, "%.1f ms %s %s\n", ms, compiled ? "compiled" : "loaded", what);
    std::fclose(f);
  }
}

}  // namespace

const Kernel* find_kernel(const Hash128& key) {
  const Kernel*& recent = t_recent[key.lo % kRecent];
  if (recent && recent->key == key) return recent;
  const Kernel* k = look_up(key);
  if (k) recent = k;
  return k;
}

Status build_kernel(Device& d, const Hash128& key, const std::string& text, const char* entry,
                    const char* what, const Kernel** out, Effort effort) {
  Table& t = table();
  std::lock_guard building(t.building);
  if ((*out = look_up(key))) return ok();
  const auto begin = std::chrono::steady_clock::now();
  int64_t cached_before = 0, cached = 0;
  count_compilations(nullptr, &cached_before);
  std::vector<char> image;
  std::string error;
  if (!compile_text(text, d.arch, &image, &error, effort))
    return fail(Code::kFailed, "%s: %s", what, error.c_str());
  const DriverApi& cu = driver();
  CUmodule module;
  TS_TRY(check(d, cu.cuModuleLoadData(&module, image.data()), "loading a compiled kernel"));
  Kernel* k = new Kernel{key, nullptr};
  if (Status s = check(d, cu.cuModuleGetFunction(&k->function, module, entry), "finding a kernel");
      !s.ok()) {
    delete k;
    return s;
  }
  g_built.fetch_add(1, std::memory_order_relaxed);
  count_compilations(nullptr, &cached);
  log_wait(begin, cached == cached_before, what);
  std::unique_lock lock(t.mutex);
  t.kernels.emplace(key, k);
  *out = k;
  return ok();
}

bool makes_too_many_kernels() {
  static const int64_t budget = [] {
    const char* v = std::getenv("TESSERA_KERNEL_BUDGET");
    return v && *v ? std::atoll(v) : 1024;
  }();
  constexpr int64_t kLaunchesForOne = 16;
  return g_built.load(std::memory_order_relaxed) >
         budget + g_launches.load(std::memory_order_relaxed) / kLaunchesForOne;
}

Status launch(Device& d, CUstream stream, const Kernel& k, const Grid& grid, const void* params,
              const char* what) {
  g_launches.fetch_add(1, std::memory_order_relaxed);
  void* arguments[] = {const_cast<void*>(params)};
  return check(d,
               driver().cuLaunchKernel(
                   k.function, static_cast<unsigned>(grid.blocks), static_cast<unsigned>(grid.y),
                   static_cast<unsigned>(grid.z), static_cast<unsigned>(grid.threads), 1, 1,
                   static_cast<unsigned>(grid.shared), stream, arguments, nullptr),
               what);
}

}  // namespace tessera::cuda
