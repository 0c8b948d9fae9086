#include "dynlib.h"

#include <dlfcn.h>

#include <cstdlib>

namespace tessera::cuda {
namespace {

std::vector<std::string> library_folders() {
  std::vector<std::string> out;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* root = std::getenv(variable);
    if (!root || !*root) continue;
    out.push_back(std::string(root) + "/lib64");
    out.push_back(std::string(root) + "/lib");
  }
  out.push_back("/usr/local/cuda/lib64");
  if (const char* list = std::getenv("TESSERA_CUDA_LIBS")) {
    std::string all = list;
    for (size_t begin = 0; begin <= all.size();) {
      size_t end = all.find(':', begin);
      if (end == std::string::npos) end = all.size();
      if (end > begin) out.push_back(all.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return out;
}

}  // namespace

void* open_library(const std::vector<const char*>& names, std::string* why) {
  for (const char* name : names)
    if (void* lib = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return lib;
  std::vector<std::string> folders = library_folders();
  for (const char* name : names)
    for (const std::string& folder : folders)
      if (void* lib = dlopen((folder + "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return lib;
  if (why) {
    *why = std::string(names[0]) + " was not found on the default path";
    for (const std::string& folder : folders) *why += ", in " + folder;
  }
  return nullptr;
}

}  // namespace tessera::cuda
