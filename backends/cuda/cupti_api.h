// CUPTI's activity interface as a struct of function pointers, opened when a profile begins. Its
// header need not be there: the few functions and the beginnings of its records, which later
// versions only add to, are declared here.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tessera::cuda {

namespace cupti {

enum Kind : uint32_t {
  kCopy = 1,
  kSet = 2,
  kDriver = 4,
  kRuntime = 5,
  kConcurrentKernel = 10,
  kCopyPeer = 22,
};

struct Record {
  uint32_t kind;
};
struct alignas(8) Kernel {
  uint32_t kind;
  uint8_t cache, shared_config;
  uint16_t registers;
  uint32_t partitioned[2];
  uint64_t start, end, completed;
  uint32_t device, context, stream;
  int32_t grid[3], block[3];
  int32_t static_shared, dynamic_shared;
  uint32_t local_each, local_all;
  uint32_t correlation;
  int64_t grid_id;
  const char* name;
};
struct alignas(8) Copy {
  uint32_t kind;
  uint8_t direction, from, to, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream, correlation;
};
struct alignas(8) CopyPeer {
  uint32_t kind;
  uint8_t direction, from, to, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream;
  uint32_t from_device, from_context, to_device, to_context;
  uint32_t correlation;
};
struct alignas(8) Set {
  uint32_t kind, value;
  uint64_t bytes, start, end;
  uint32_t device, context, stream, correlation;
};
struct alignas(8) Call {
  uint32_t kind, function;
  uint64_t start, end;
  uint32_t process, thread, correlation, result;
};
static_assert(offsetof(Kernel, start) == 16 && offsetof(Kernel, device) == 40 &&
              offsetof(Kernel, grid) == 52 && offsetof(Kernel, correlation) == 92 &&
              offsetof(Kernel, name) == 104);
static_assert(offsetof(Copy, bytes) == 8 && offsetof(Copy, correlation) == 44);
static_assert(offsetof(CopyPeer, correlation) == 60);
static_assert(offsetof(Set, bytes) == 8 && offsetof(Set, correlation) == 44);
static_assert(offsetof(Call, start) == 8 && offsetof(Call, correlation) == 32);

using AskBuffer = void (*)(uint8_t** buffer, size_t* size, size_t* most_records);
using TakeBuffer = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t size,
                            size_t valid);

}  // namespace cupti

struct CuptiApi {
  int (*register_callbacks)(cupti::AskBuffer, cupti::TakeBuffer);
  int (*enable)(uint32_t kind);
  int (*disable)(uint32_t kind);
  int (*flush)(uint32_t flags);
  int (*next_record)(uint8_t* buffer, size_t valid, cupti::Record** record);
  int (*timestamp)(uint64_t*);
  int (*thread_ids)(uint32_t type);
  int (*function_name)(uint32_t domain, uint32_t function, const char** name);
  int (*result_text)(int result, const char** text);
  // Null before CUDA 12.8.
  int (*enable_driver)(uint32_t function, uint8_t on);
};

// Null if it cannot be used; *why says the reason.
const CuptiApi* cupti_api(const char** why);

}  // namespace tessera::cuda
