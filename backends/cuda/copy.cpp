// Copies between host and device.
//
// Note [Pageable memory]
// The driver copies pageable memory through one staging buffer on one thread, at a tenth of what
// the bus gives. Here a team of threads fills (or empties) one page-locked bay while the bus works
// on another. The source has been read when the call returns, so the caller may change it at once.
#include "copy.h"

#include <algorithm>
#include <cstring>

#include "staging.h"

namespace tessera::cuda {
namespace {

// Below this a copy shares its bay with others and one thread fills it.
constexpr size_t kSmall = 128u << 10;

CUresult wait_for(Bay& bay) {
  if (!bay.busy) return CUDA_SUCCESS;
  bay.busy = false;
  return driver().cuEventSynchronize(bay.done);
}

// Long enough for the bus, short enough that filling and moving overlap from the start.
size_t stride_of(size_t bytes) {
  return std::clamp<size_t>((bytes / 16 + 65535) / 65536 * 65536, 256u << 10, Staging::kBayBytes);
}

Bay& next_bay(Staging& s) {
  s.next = (s.next + 1) % Staging::kBays;
  if (s.next == s.small_bay) s.small_used = Staging::kBayBytes;  // taken from the small ones
  return s.bays[s.next];
}

Status upload_small(Device& d, Staging& s, CUstream stream, CUdeviceptr dst, const char* src,
                    size_t bytes) {
  if (s.small_used + bytes > Staging::kBayBytes || s.small_stream != stream) {
    Bay& fresh = next_bay(s);
    TS_TRY(check(d, wait_for(fresh), "waiting for a staging buffer"));
    s.small_bay = s.next;
    s.small_used = 0;
    s.small_stream = stream;
  }
  const DriverApi& cu = driver();
  Bay& bay = s.bays[s.small_bay];
  char* at = bay.memory + s.small_used;
  std::memcpy(at, src, bytes);
  TS_TRY(check(d, cu.cuMemcpyHtoDAsync(dst, at, bytes, stream), "a copy from host to device"));
  s.small_used += (bytes + 255) / 256 * 256;
  bay.busy = true;
  return check(d, cu.cuEventRecord(bay.done, stream), "a copy from host to device");
}

Status upload(Device& d, CUstream stream, CUdeviceptr dst, const char* src, size_t bytes) {
  Staging* staging = nullptr;
  TS_TRY(staging_of(d, &staging));
  Staging& s = *staging;
  std::lock_guard lock(s.mutex);
  if (bytes <= kSmall) return upload_small(d, s, stream, dst, src, bytes);
  const DriverApi& cu = driver();
  const size_t stride = stride_of(bytes);
  for (size_t at = 0; at < bytes; at += stride) {
    const size_t n = std::min(stride, bytes - at);
    Bay& bay = next_bay(s);
    TS_TRY(check(d, wait_for(bay), "waiting for a staging buffer"));
    s.team.copy(bay.memory, src + at, n);
    TS_TRY(check(d, cu.cuMemcpyHtoDAsync(dst + at, bay.memory, n, stream),
                 "a copy from host to device"));
    bay.busy = true;
    TS_TRY(check(d, cu.cuEventRecord(bay.done, stream), "a copy from host to device"));
  }
  return ok();
}

// The next pieces are asked for before one is taken out.
Status download(Device& d, CUstream stream, char* dst, CUdeviceptr src, size_t bytes) {
  Staging* staging = nullptr;
  TS_TRY(staging_of(d, &staging));
  Staging& s = *staging;
  std::lock_guard lock(s.mutex);
  const DriverApi& cu = driver();
  const size_t stride = stride_of(bytes);
  constexpr int kAhead = Staging::kBays / 2;
  Bay* asked[kAhead] = {};
  size_t ask_at = 0;
  int ask = 0, take = 0;
  for (size_t at = 0; at < bytes; at += stride) {
    while (ask_at < bytes && ask - take < kAhead) {
      Bay& bay = next_bay(s);
      TS_TRY(check(d, wait_for(bay), "waiting for a staging buffer"));
      const size_t n = std::min(stride, bytes - ask_at);
      TS_TRY(check(d, cu.cuMemcpyDtoHAsync(bay.memory, src + ask_at, n, stream),
                   "a copy from device to host"));
      bay.busy = true;
      TS_TRY(check(d, cu.cuEventRecord(bay.done, stream), "a copy from device to host"));
      asked[ask++ % kAhead] = &bay;
      ask_at += stride;
    }
    Bay& bay = *asked[take++ % kAhead];
    TS_TRY(check(d, wait_for(bay), "a copy from device to host"));
    s.team.copy(dst + at, bay.memory, std::min(stride, bytes - at));
  }
  return take_data_error(d);
}

bool is_page_locked(const void* p) {
  unsigned type = 0;
  return driver().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                        reinterpret_cast<CUdeviceptr>(p)) == CUDA_SUCCESS &&
         type == CU_MEMORYTYPE_HOST;
}

}  // namespace

Status copy_on(Device& d, CUstream stream, CopyKind kind, void* dst, const void* src,
               size_t bytes) {
  if (bytes == 0) return ok();
  const DriverApi& cu = driver();
  CUdeviceptr to = reinterpret_cast<CUdeviceptr>(dst), from = reinterpret_cast<CUdeviceptr>(src);
  switch (kind) {
    case CopyKind::kDeviceToDevice:
      return check(d, cu.cuMemcpyDtoDAsync(to, from, bytes, stream), "a copy on the device");
    case CopyKind::kHostToDevice:
      if (is_page_locked(src))
        return check(d, cu.cuMemcpyHtoDAsync(to, src, bytes, stream), "a copy from host to device");
      return upload(d, stream, to, static_cast<const char*>(src), bytes);
    case CopyKind::kDeviceToHost:
      if (is_page_locked(dst))
        return check(d, cu.cuMemcpyDtoHAsync(dst, from, bytes, stream),
                     "a copy from device to host");
      return download(d, stream, static_cast<char*>(dst), from, bytes);
  }
  return fail(Code::kFailed, "unknown kind of copy");
}

}  // namespace tessera::cuda
