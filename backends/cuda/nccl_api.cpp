#include "nccl_api.h"

#include "library_api.h"

namespace tessera::cuda {
namespace {

bool load(LibraryApi<NcclApi>& s) {
  void* library = open_library({"libnccl.so.2"}, &s.why);
  if (!library) return false;
  TS_FIND_FUNCTION(ncclGetVersion)
  TS_FIND_FUNCTION(ncclGetUniqueId)
  TS_FIND_FUNCTION(ncclCommInitRank)
  TS_FIND_FUNCTION(ncclCommDestroy)
  TS_FIND_FUNCTION(ncclCommAbort)
  TS_FIND_FUNCTION(ncclCommGetAsyncError)
  TS_FIND_FUNCTION(ncclGetErrorString)
  TS_FIND_FUNCTION(ncclAllReduce)
  TS_FIND_FUNCTION(ncclReduce)
  TS_FIND_FUNCTION(ncclBroadcast)
  TS_FIND_FUNCTION(ncclAllGather)
  TS_FIND_FUNCTION(ncclReduceScatter)
  TS_FIND_FUNCTION(ncclSend)
  TS_FIND_FUNCTION(ncclRecv)
  TS_FIND_FUNCTION(ncclGroupStart)
  TS_FIND_FUNCTION(ncclGroupEnd)
  s.api.ncclGetLastError =
      reinterpret_cast<const char* (*)(NcclComm*)>(dlsym(library, "ncclGetLastError"));
  return true;
}

}  // namespace

const NcclApi* nccl_api(const char** why) { return opened_once<NcclApi>(why, load); }

}  // namespace tessera::cuda
