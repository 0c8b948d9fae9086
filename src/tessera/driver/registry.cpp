// Backends by name: linked in and registered, or loaded from a library beside the core.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <thread>

#include "tessera/base/error.h"
#include "tessera/base/fork.h"
#include "tessera/base/library_path.h"
#include "tessera/driver/about.h"
#include "tessera/driver/backend.h"
#include "tessera/driver/cpu.h"
#include "tessera/driver/ending.h"
#include "tessera/driver/gpus.h"
#include "tessera/driver/watch.h"

namespace tessera {

namespace detail {
constinit std::atomic<const Backend*> cpu_table{nullptr};
}

namespace {

struct Entry {
  std::string name;
  const Backend* backend = nullptr;
  std::string why;  // of a library that did not load: tried once, remembered
  const char* (*about)() = nullptr;
  GpusEntry gpus = nullptr;
};

// Can be locked again by the thread that holds it. A forked child can unlock it, unlike a
// std::recursive_mutex, whose owner is the number of a thread: the child's thread has another one.
class RecursiveMutex {
 public:
  void lock() {
    if (owner_.load(std::memory_order_relaxed) != std::this_thread::get_id()) {
      mutex_.lock();
      owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    }
    ++depth_;
  }
  void unlock() {
    if (--depth_ > 0) return;
    owner_.store({}, std::memory_order_relaxed);
    mutex_.unlock();
  }

 private:
  Mutex mutex_;
  std::atomic<std::thread::id> owner_{};
  int depth_ = 0;
};

struct Registry {
  // A library's initialisers may register themselves while it is being opened.
  RecursiveMutex mutex;
  // Newest first. Entries never change or move: they are read without the lock.
  std::deque<Entry> entries;
};

// Never destroyed: threads may look backends up while the process exits.
Registry& registry() {
  static Registry* r = new Registry;
  return *r;
}
RecursiveMutex& lock_of_registry() { return registry().mutex; }
const HeldDuringFork<ForkStage::kBackends, lock_of_registry> g_at_fork;

const Entry* look_up(const Registry& r, const char* name) {
  for (const Entry& e : r.entries)
    if (e.name == name) return &e;
  return nullptr;
}

std::string file_of(const void* symbol) {
  Dl_info info{};
  return symbol && dladdr(symbol, &info) && info.dli_fname ? info.dli_fname : "";
}

// Absolute; empty where it is not known. The loader's name may be relative to the directory that
// was current when the core was loaded, so that the path is completed then.
const std::string& core_folder() {
  static const std::string* folder = [] {
    std::string file = file_of(reinterpret_cast<void*>(&register_backend));
    if (!is_absolute_path(file)) {
      char* real = file.empty() ? nullptr : realpath(file.c_str(), nullptr);
      file = real ? real : "";
      std::free(real);
    }
    return new std::string(file.substr(0, file.empty() ? 0 : file.rfind('/')));
  }();
  return *folder;
}
[[maybe_unused]] const std::string& g_found_at_load = core_folder();

const Backend* load(const std::string& path, std::string& why) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* text = dlerror();
    why += text ? text : cat(path, ": cannot be opened");
    return nullptr;
  }
  // A library that opens others later renews the handlers itself.
  if (auto set_renew = reinterpret_cast<void (*)(void (*)())>(
          dlsym(library, "tessera_renew_fork_handlers_with")))
    set_renew(renew_fork_handlers);
  renew_fork_handlers();
  auto entry = reinterpret_cast<BackendEntry>(dlsym(library, kBackendEntryName));
  const Backend* backend = entry ? entry() : nullptr;
  if (!backend) {
    why += cat(path, ": is not a Tessera backend (", kBackendEntryName, " is missing or failed)");
  } else if (backend->abi != kBackendAbi) {
    why += cat(path, ": was built for version ", backend->abi, " of the backend table; this is ",
               kBackendAbi);
    backend = nullptr;
  }
  return backend;
}

// From the folder the user names, else from beside the core.
const Backend* load_by_name(const char* name, std::string& why) {
  const std::string file = cat("libtessera_", name, ".so");
  if (const char* folder = std::getenv("TESSERA_BACKEND_DIR"); folder && *folder) {
    if (!is_absolute_path(folder))
      why += cat("TESSERA_BACKEND_DIR must be an absolute path, not '", folder, "'");
    else if (const Backend* backend = load(cat(folder, "/", file), why))
      return backend;
    why += "; ";
  }
  const std::string path = library_beside_core(file);
  if (!path.empty()) return load(path, why);
  why += cat("the folder of the core, where ", file, " is, is not known");
  return nullptr;
}

const Entry& find_entry(const char* name) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  if (const Entry* known = look_up(r, name)) return *known;
  std::string why;
  const Backend* backend = load_by_name(name, why);
  if (const Entry* registered_itself = look_up(r, name)) return *registered_itself;
  Entry& entry = r.entries.emplace_front(Entry{name, backend, std::move(why)});
  if (std::string file = file_of(backend); !file.empty())
    if (void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD)) {
      entry.about = reinterpret_cast<const char* (*)()>(dlsym(library, kBackendAboutName));
      entry.gpus = reinterpret_cast<GpusEntry>(dlsym(library, kGpusEntryName));
      if (auto end = reinterpret_cast<void (*)()>(dlsym(library, kBackendEndName)))
        end_backend_at_end(end, !std::strcmp(name, "cpu"));
      using TakeRenew = void (*)(void (*)());
      if (auto take = reinterpret_cast<TakeRenew>(dlsym(library, kBackendTakeRenewName)))
        take(renew_exit_handler);
      renew_exit_handler();
    }
  return entry;
}

struct Choice {
  const Backend* backend = nullptr;
  std::string why;
};

Choice choose_accelerator() {
  const char* asked = std::getenv("TESSERA_VIRTUAL_GPU");
  const Entry& entry = find_entry(asked && *asked ? "virtual" : "cuda");
  if (!entry.backend)
    return {nullptr, cat("Tessera was built or installed without its ", entry.name,
                         " backend: ", entry.why)};
  const char* why = nullptr;
  if (entry.backend->device_count(&why) > 0)
    return {detail::watched_accelerator(entry.backend), ""};
  return {nullptr, why ? why : cat("the ", entry.name, " backend has no devices")};
}

}  // namespace

void register_backend(const Backend* backend) {
  TS_CHECK(backend->abi == kBackendAbi, "the backend ", backend->name, " was built for version ",
           backend->abi, " of the backend table; this is ", kBackendAbi);
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  r.entries.emplace_front(Entry{backend->name, backend, {}});
}

const Backend* find_backend(const char* name) { return find_entry(name).backend; }

std::string about_backend(const char* name) {
  const Entry& entry = find_entry(name);
  return entry.about ? entry.about() : "";
}

std::vector<GpuState> list_gpus(const char* backend, GpuDriver* driver) {
  *driver = {};
  const Entry& entry = find_entry(backend);
  if (!entry.gpus) {
    std::strncpy(driver->why, entry.why.c_str(), sizeof driver->why - 1);
    return {};
  }
  std::vector<GpuState> gpus(64);
  gpus.resize(static_cast<size_t>(entry.gpus(gpus.data(), 64, driver)));
  return gpus;
}

std::string library_beside_core(std::string_view file) {
  return core_folder().empty() ? "" : cat(core_folder(), "/", file);
}

std::string backend_file(const char* name) { return file_of(find_entry(name).backend); }

const Backend* accelerator(const char** why) {
  // Never destroyed, as `why` is handed out. Made under the registry's lock, which is held during a
  // fork: in a child the guard of a static variable might stay taken.
  static constinit std::atomic<const Choice*> made{nullptr};
  const Choice* choice = made.load(std::memory_order_acquire);
  if (!choice) [[unlikely]] {
    std::lock_guard lock(registry().mutex);
    choice = made.load(std::memory_order_acquire);
    if (!choice) made.store(choice = new Choice(choose_accelerator()), std::memory_order_release);
  }
  if (why) *why = choice->why.c_str();
  return choice->backend;
}

const Backend* cpu_backend() {
  const Backend* table = detail::cpu_table.load(std::memory_order_acquire);
  if (table) [[likely]]
    return table;
  const Entry& entry = find_entry("cpu");
  TS_CHECK(entry.backend, "Tessera's CPU backend cannot be loaded: ", entry.why);
  static const Backend* chosen = detail::watched_cpu(entry.backend);
  detail::cpu_table.store(chosen, std::memory_order_release);
  return chosen;
}

}  // namespace tessera
