#include "pages.h"

#include <mutex>
#include <vector>

namespace tessera::cuda {
namespace {

CUmemAllocationProp properties(const Device& d) {
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  p.location.id = d.device;
  // So that another process can be given it.
  if (d.can_share_pages) p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return p;
}

// The device itself and every other that can reach its memory.
const std::vector<CUmemAccessDesc>& readers(Device& d) {
  static std::vector<CUmemAccessDesc>* all[kMaxDevices];
  static std::once_flag once[kMaxDevices];
  std::call_once(once[d.ordinal], [&] {
    auto* list = new std::vector<CUmemAccessDesc>;
    int count = 0;
    driver().cuDeviceGetCount(&count);
    for (int i = 0; i < count; ++i) {
      CUdevice other = 0;
      int reaches = i == d.ordinal;
      if (!reaches && driver().cuDeviceGet(&other, i) == CUDA_SUCCESS)
        driver().cuDeviceCanAccessPeer(&reaches, other, d.device);
      if (!reaches) continue;
      CUmemAccessDesc a{};
      a.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
      a.location.id = i == d.ordinal ? d.device : other;
      a.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      list->push_back(a);
    }
    all[d.ordinal] = list;
  });
  return *all[d.ordinal];
}

}  // namespace

Status page_size_on(Device& d, size_t* out) {
  if (!d.has_pages) return fail(Code::kUnsupported, "the device has no virtual memory management");
  CUmemAllocationProp p = properties(d);
  return check(
      d, driver().cuMemGetAllocationGranularity(out, &p, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
      "asking for the page size");
}

Status reserve_addresses_on(Device& d, size_t bytes, void** out) {
  CUdeviceptr p = 0;
  TS_TRY(check(d, driver().cuMemAddressReserve(&p, bytes, 0, 0, 0), "reserving addresses"));
  *out = reinterpret_cast<void*>(p);
  return ok();
}

Status release_addresses_on(Device& d, void* p, size_t bytes) {
  return check(d, driver().cuMemAddressFree(reinterpret_cast<CUdeviceptr>(p), bytes),
               "releasing addresses");
}

Status create_pages_on(Device& d, size_t bytes, PageHandle* out) {
  CUmemAllocationProp p = properties(d);
  CUmemGenericAllocationHandle handle = 0;
  TS_TRY(check(d, driver().cuMemCreate(&handle, bytes, &p, 0), "allocating pages"));
  *out = handle;
  return ok();
}

Status destroy_pages_on(Device& d, PageHandle pages) {
  return check(d, driver().cuMemRelease(pages), "releasing pages");
}

Status map_pages_on(Device& d, void* at, PageHandle pages, size_t bytes) {
  return check(d, driver().cuMemMap(reinterpret_cast<CUdeviceptr>(at), bytes, 0, pages, 0),
               "mapping pages");
}

Status enable_pages_on(Device& d, void* at, size_t bytes) {
  const auto& access = readers(d);
  return check(d,
               driver().cuMemSetAccess(reinterpret_cast<CUdeviceptr>(at), bytes, access.data(),
                                       access.size()),
               "giving access to pages");
}

Status unmap_pages_on(Device& d, void* at, size_t bytes) {
  return check(d, driver().cuMemUnmap(reinterpret_cast<CUdeviceptr>(at), bytes), "unmapping pages");
}

}  // namespace tessera::cuda
