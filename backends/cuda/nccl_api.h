// libnccl as a struct of function pointers, opened when a process group first asks for it. The
// declarations are our own: its header comes with the library, which a build does not need.
#pragma once
#include <cstddef>

#include "driver_api.h"

namespace tessera::cuda {

struct NcclComm;  // opaque
struct NcclUniqueId {
  char internal[128];
};
inline constexpr int kNcclSuccess = 0;
inline constexpr int kNcclInProgress = 7;
enum class NcclType : int {
  kInt8 = 0,
  kUInt8 = 1,
  kInt32 = 2,
  kInt64 = 4,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBFloat16 = 9,
};
enum class NcclOp : int { kSum = 0, kProduct = 1, kMax = 2, kMin = 3, kAvg = 4 };

struct NcclApi {
  int (*ncclGetVersion)(int* version);
  int (*ncclGetUniqueId)(NcclUniqueId* id);
  int (*ncclCommInitRank)(NcclComm** comm, int size, NcclUniqueId id, int rank);
  int (*ncclCommDestroy)(NcclComm* comm);
  int (*ncclCommAbort)(NcclComm* comm);
  int (*ncclCommGetAsyncError)(NcclComm* comm, int* error);
  const char* (*ncclGetErrorString)(int result);
  int (*ncclAllReduce)(const void* in, void* out, size_t count, NcclType type, NcclOp op,
                       NcclComm* comm, CUstream stream);
  int (*ncclReduce)(const void* in, void* out, size_t count, NcclType type, NcclOp op, int root,
                    NcclComm* comm, CUstream stream);
  int (*ncclBroadcast)(const void* in, void* out, size_t count, NcclType type, int root,
                       NcclComm* comm, CUstream stream);
  int (*ncclAllGather)(const void* in, void* out, size_t count, NcclType type, NcclComm* comm,
                       CUstream stream);
  int (*ncclReduceScatter)(const void* in, void* out, size_t count, NcclType type, NcclOp op,
                           NcclComm* comm, CUstream stream);
  int (*ncclSend)(const void* data, size_t count, NcclType type, int peer, NcclComm* comm,
                  CUstream stream);
  int (*ncclRecv)(void* data, size_t count, NcclType type, int peer, NcclComm* comm,
                  CUstream stream);
  int (*ncclGroupStart)();
  int (*ncclGroupEnd)();
  // Since 2.13; null before.
  const char* (*ncclGetLastError)(NcclComm* comm);
};

// Null if it cannot be opened; *why says the reason.
const NcclApi* nccl_api(const char** why);

}  // namespace tessera::cuda
