// Virtual memory management: address space that is reserved, and pages mapped into it. On only
// where $TESSERA_EMULATOR says `pages`: without it allocations end at a page that cannot be
// touched.
#include <cuda.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <unordered_map>

#include "device.h"
#include "options.h"

using namespace emulator;

namespace {

constexpr size_t kPageBytes = size_t{2} << 20;

struct Pages {
  int file = -1;
  size_t bytes = 0;
  Device* device = nullptr;
  int mapped = 0;
};
std::mutex g_mutex;
std::unordered_map<CUmemGenericAllocationHandle, Pages>& pages() {
  static auto* all = new std::unordered_map<CUmemGenericAllocationHandle, Pages>;
  return *all;
}
CUmemGenericAllocationHandle g_next = 1;
struct Mapping {
  size_t bytes;
  CUmemGenericAllocationHandle handle;
};
std::unordered_map<CUdeviceptr, Mapping>& mappings() {
  static auto* all = new std::unordered_map<CUdeviceptr, Mapping>;
  return *all;
}

void* pointer(CUdeviceptr p) { return reinterpret_cast<void*>(p); }

}  // namespace

CUresult cuMemGetAllocationGranularity(size_t* out, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  *out = kPageBytes;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* out, size_t bytes, size_t, CUdeviceptr,
                             unsigned long long) {
  if (bytes == 0 || bytes % kPageBytes) return CUDA_ERROR_INVALID_VALUE;
  void* p = mmap(nullptr, bytes + kPageBytes, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = (reinterpret_cast<CUdeviceptr>(p) + kPageBytes - 1) / kPageBytes * kPageBytes;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr p, size_t bytes) {
  return munmap(pointer(p), bytes) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* out, size_t bytes,
                     const CUmemAllocationProp* prop, unsigned long long) {
  if (bytes == 0 || bytes % kPageBytes) return CUDA_ERROR_INVALID_VALUE;
  Device* d = device(prop->location.id);
  if (!d) return CUDA_ERROR_INVALID_DEVICE;
  std::lock_guard lock(g_mutex);
  if (d->used + bytes > options().memory) return CUDA_ERROR_OUT_OF_MEMORY;
  Pages p;
  p.file = memfd_create("emulated-gpu", MFD_CLOEXEC);
  if (p.file < 0 || ftruncate(p.file, static_cast<off_t>(bytes)) != 0)
    return CUDA_ERROR_OUT_OF_MEMORY;
  p.bytes = bytes;
  p.device = d;
  d->used += bytes;
  *out = g_next++;
  pages()[*out] = p;
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  std::lock_guard lock(g_mutex);
  auto it = pages().find(handle);
  // A device would keep it until it is unmapped; the allocator never relies on that.
  if (it == pages().end() || it->second.mapped) return CUDA_ERROR_INVALID_VALUE;
  close(it->second.file);
  it->second.device->used -= it->second.bytes;
  pages().erase(it);
  return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long) {
  std::lock_guard lock(g_mutex);
  auto it = pages().find(handle);
  if (it == pages().end() || offset != 0 || bytes != it->second.bytes || at % kPageBytes)
    return CUDA_ERROR_INVALID_VALUE;
  if (find_range(pointer(at), 1, nullptr)) return CUDA_ERROR_ALREADY_MAPPED;
  if (mmap(pointer(at), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, it->second.file, 0) == MAP_FAILED)
    return CUDA_ERROR_INVALID_VALUE;
  ++it->second.mapped;
  mappings()[at] = {bytes, handle};
  note_range(pointer(at), bytes, it->second.device);
  return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc* access, size_t n) {
  if (n == 0 || access[0].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
    return CUDA_ERROR_INVALID_VALUE;
  return mprotect(pointer(at), bytes, PROT_READ | PROT_WRITE) == 0 ? CUDA_SUCCESS
                                                                   : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemUnmap(CUdeviceptr at, size_t bytes) {
  std::lock_guard lock(g_mutex);
  auto it = mappings().find(at);
  if (it == mappings().end() || it->second.bytes != bytes) return CUDA_ERROR_INVALID_VALUE;
  --pages()[it->second.handle].mapped;
  mappings().erase(it);
  forget_range(pointer(at));
  mmap(pointer(at), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
       0);
  return CUDA_SUCCESS;
}
