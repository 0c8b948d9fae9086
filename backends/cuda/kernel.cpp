#include "kernel.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

#include "background.h"
#include "compile.h"
#include "relaunch.h"

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
void log_wait(std::chrono::steady_clock::time_point begin, const char* how, const char* what) {
  static const char* path = std::getenv("TESSERA_COMPILE_LOG");
  if (!path || !*path) return;
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  if (std::FILE* f = std::fopen(path, "a")) {
    std::fprintf(f, "%.1f ms %s %s\n", ms, how, what);
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

namespace {

// Of a kernel that is being compiled while nothing is launched.
const Kernel kMissing{};

thread_local PutOff* t_put_off = nullptr;

using Clock = std::chrono::steady_clock;

Status load(Device& d, const Hash128& key, const std::vector<char>& image, const char* entry,
            const Kernel** out) {
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
  Table& t = table();
  std::unique_lock lock(t.mutex);
  t.kernels.emplace(key, k);
  *out = k;
  return ok();
}

// Longer than a small kernel takes, if there are cores for it. With less patience a loop of short
// steps would be over before its kernels are there.
constexpr std::chrono::milliseconds kPatience{40}, kForever{std::chrono::hours(1)};

// What another thread has made.
Status load_made(Device& d, const Hash128& key, const Compilation& made, const char* entry,
                 const char* what, const Kernel** out) {
  if (made.image.empty()) return fail(Code::kFailed, "%s: %s", what, made.error.c_str());
  return load(d, key, made.image, entry, out);
}

}  // namespace

PutOff::PutOff(bool allowed) {
  if (allowed) t_put_off = this;
}
PutOff::~PutOff() {
  if (t_put_off == this) t_put_off = nullptr;
}

Status ask_kernel(Device& d, const Hash128& key, std::string text, const char* entry,
                  const char* what, const Kernel** out, Effort effort) {
  const auto begin = Clock::now();
  if ((*out = look_up(key))) return ok();
  // Without the lock: who waits for one kernel is not to hold up who needs another.
  if (const std::unique_ptr<Compilation> made = take_compiled(key, kPatience)) {
    std::lock_guard building(table().building);
    if (!(*out = look_up(key))) TS_TRY(load_made(d, key, *made, entry, what, out));
    log_wait(begin, "loaded", what);
    return ok();
  }
  if (is_being_compiled(key)) {
    log_wait(begin, "later", what);
    return ok();
  }
  if (is_compiled(text, d.arch, effort)) {
    PutOff* const before = std::exchange(t_put_off, nullptr);
    Status s = build_kernel(d, key, text, entry, what, out, effort);
    t_put_off = before;
    return s;
  }
  compile_later(key, std::move(text), d.arch, effort);
  log_wait(begin, "later", what);
  return ok();
}

Status build_kernel(Device& d, const Hash128& key, const std::string& text, const char* entry,
                    const char* what, const Kernel** out, Effort effort) {
  if (t_put_off && !t_put_off->launched_) {
    TS_TRY(ask_kernel(d, key, text, entry, what, out, effort));
    if (*out) return ok();
    t_put_off->missing_ = true;
    *out = &kMissing;
    return ok();
  }
  std::lock_guard building(table().building);
  if ((*out = look_up(key))) return ok();
  const auto begin = Clock::now();
  const std::unique_ptr<Compilation> made = take_compiled(key, kForever);
  if (made) TS_TRY(load_made(d, key, *made, entry, what, out));
  int64_t cached_before = 0, cached = 0;
  count_compilations(nullptr, &cached_before);
  if (!made) {
    std::vector<char> image;
    std::string error;
    if (!compile_text(text, d.arch, &image, &error, effort))
      return fail(Code::kFailed, "%s: %s", what, error.c_str());
    Status loaded = load(d, key, image, entry, out);
    // A driver may refuse what came from a cache, such as a pack that a newer compiler made.
    if (!loaded.ok() && loaded.code != Code::kDeviceFault && loaded.code != Code::kOutOfMemory &&
        compile_fresh(text, d.arch, &image, &error, effort))
      loaded = load(d, key, image, entry, out);
    TS_TRY(loaded);
  }
  count_compilations(nullptr, &cached);
  log_wait(begin, cached == cached_before ? "compiled" : "loaded", what);
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
  if (t_put_off) {
    if (t_put_off->missing_) return ok();
    t_put_off->launched_ = true;
  }
  const int64_t number = g_launches.fetch_add(1, std::memory_order_relaxed);
  void* arguments[] = {const_cast<void*>(params)};
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = k.function;
  kernel.gridDimX = static_cast<unsigned>(grid.blocks);
  kernel.gridDimY = static_cast<unsigned>(grid.y);
  kernel.gridDimZ = static_cast<unsigned>(grid.z);
  kernel.blockDimX = static_cast<unsigned>(grid.threads);
  kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.sharedMemBytes = static_cast<unsigned>(grid.shared);
  kernel.kernelParams = arguments;
  return check(d, launch_in_some_way(d, stream, kernel, number), what);
}

}  // namespace tessera::cuda
