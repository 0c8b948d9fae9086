// What the backend says of itself to `tessera doctor`.
#include <string>

#include "pack.h"

extern "C" __attribute__((visibility("default"))) const char* tessera_backend_about() {
  using namespace tessera::cuda;
  thread_local std::string text;
  const std::string path = pack_path();
  if (const PackFile* pack = installed_pack())
    text = "kernel pack: " + pack->about() + ", " + path;
  else if (path.empty())
    text = "kernel pack: off (TESSERA_KERNEL_PACK)";
  else
    text = "kernel pack: none at " + path + "; every kernel is compiled at its first use";
  return text.c_str();
}
