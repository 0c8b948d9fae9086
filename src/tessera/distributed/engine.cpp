#include "tessera/distributed/engine.h"

#include <dlfcn.h>

#include <map>

#include "tessera/base/fork.h"

#include "tessera/driver/about.h"

namespace tessera::distributed {

namespace {

constinit Mutex g_mutex;
Mutex& lock_of_engines() { return g_mutex; }
const HeldDuringFork<ForkStage::kEngines, lock_of_engines> g_at_fork;

struct Found {
  const EngineTable* table = nullptr;
  std::string why;
};

Found open(const std::string& name) {
  const std::string path = library_beside_core("libtessera_" + name + ".so");
  if (path.empty()) return {nullptr, "the folder of the core is not known"};
  // MPI's own plug-ins look for its symbols in the whole process.
  void* library = dlopen(path.c_str(), RTLD_NOW | (name == "mpi" ? RTLD_GLOBAL : RTLD_LOCAL));
  if (!library) {
    const char* text = dlerror();
    return {nullptr, text ? text : path + " cannot be opened"};
  }
  renew_fork_handlers();
  auto entry = reinterpret_cast<EngineEntry>(dlsym(library, kEngineEntryName));
  const EngineTable* table = entry ? entry() : nullptr;
  if (!table || table->version != kEngineVersion)
    return {nullptr, path + " was built for another version"};
  return {table, ""};
}

}  // namespace

const EngineTable* find_engine(const std::string& name, std::string* why) {
  static auto* known = new std::map<std::string, Found>;
  std::lock_guard lock(g_mutex);
  auto at = known->find(name);
  if (at == known->end()) at = known->emplace(name, open(name)).first;
  if (why) *why = at->second.why;
  return at->second.table;
}

}  // namespace tessera::distributed
