#include "dynlib.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "tessera/base/library_path.h"

namespace tessera::cuda {
namespace {

std::atomic<void (*)()> g_renew{nullptr};

// Opens a library and has the core's exit handler run before the library's (driver/ending.h).
void* open_one(const char* name) {
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library) renew_exit_handler();
  return library;
}

// Adds the absolute folders of a list that is separated by colons.
void add_list(const char* list, std::vector<std::string>* out) {
  std::string all = list ? list : "";
  for (size_t begin = 0; begin <= all.size();) {
    size_t end = all.find(':', begin);
    if (end == std::string::npos) end = all.size();
    std::string folder = all.substr(begin, end - begin);
    if (is_absolute_path(folder)) out->push_back(std::move(folder));
    begin = end + 1;
  }
}

std::vector<std::string> library_folders() {
  std::vector<std::string> out;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* root = std::getenv(variable);
    if (!root || !is_absolute_path(root)) continue;
    out.push_back(std::string(root) + "/lib64");
    out.push_back(std::string(root) + "/lib");
  }
  out.push_back("/usr/local/cuda/lib64");
  add_list(std::getenv("TESSERA_CUDA_LIBS"), &out);
  return out;
}

}  // namespace

void renew_exit_handler() {
  if (auto renew = g_renew.load()) renew();
}

void* open_library(const std::vector<const char*>& names, std::string* why) {
  for (const char* name : names)
    if (void* lib = open_one(name)) return lib;
  std::vector<std::string> folders = library_folders();
  for (const char* name : names)
    for (const std::string& folder : folders)
      if (void* lib = open_one((folder + "/" + name).c_str())) return lib;
  if (why) {
    *why = std::string(names[0]) + " was not found on the default path";
    for (const std::string& folder : folders) *why += ", in " + folder;
  }
  return nullptr;
}

void read_ahead(const std::vector<const char*>& names) {
  std::vector<std::string> folders;
  add_list(std::getenv("LD_LIBRARY_PATH"), &folders);
  for (const char* common :
       {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"})
    folders.push_back(common);
  for (std::string& folder : library_folders()) folders.push_back(std::move(folder));
  for (const char* name : names)
    for (const std::string& folder : folders) {
      int fd = open((folder + "/" + name).c_str(), O_RDONLY | O_CLOEXEC);
      if (fd < 0) continue;
      char buffer[1 << 16];
      while (read(fd, buffer, sizeof buffer) > 0) {
      }
      close(fd);
      return;
    }
}

}  // namespace tessera::cuda

extern "C" __attribute__((visibility("default"))) void tessera_backend_take_renew(void (*renew)()) {
  tessera::cuda::g_renew.store(renew);
}
