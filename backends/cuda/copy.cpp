// Copies between host and device.
//
// Note [Pageable memory]
// The driver copies pageable memory through one staging buffer on one thread, at a tenth of what
// the bus gives. Here threads fill (or empty) page-locked bays, each its own, while the bus works
// on others. The source has been read when the call returns, so the caller may change it at once.
#include "copy.h"

#include <algorithm>
#include <cstring>

#include "staging.h"

namespace tessera::cuda {
namespace {

// Up to this a copy shares its bay with others and one thread fills it.
constexpr size_t kSmall = 128u << 10;

CUresult wait_for(Bay& bay) {
  if (!bay.busy) return CUDA_SUCCESS;
  bay.busy = false;
  return driver().cuEventSynchronize(bay.done);
}

// Large, for the bus; the first is small enough that filling and moving overlap.
size_t unit_of(size_t bytes) {
  const size_t wanted = bytes <= (2u << 20) ? bytes / 2 : bytes / 10;
  return std::clamp<size_t>((wanted + 65535) / 65536 * 65536, 256u << 10, Staging::kBayBytes);
}
constexpr int64_t kPiecesOfUnit = 8;
// The bus reads lines that lie changed in a core's own cache at half its speed. What is longer than
// those caches together has left them by the time it is sent, and is read from the shared one.
constexpr size_t kStaysInCaches = 24u << 20;
static_assert(Staging::kBays * kPiecesOfUnit <= CopyTeam::kMostPieces);

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

// The bays of one copy, in turn from where the last one ended. Nobody copies any more, and bays may
// still be busy, when it is gone.
class Passage {
 public:
  Passage(Staging& s, char* pageable, size_t bytes, bool upload) : s_(s) {
    pieces_.line = pageable;
    pieces_.bytes = bytes;
    pieces_.piece = unit_of(bytes) / kPiecesOfUnit;
    pieces_.per_unit = kPiecesOfUnit;
    pieces_.slots = s.bays[0].memory;
    pieces_.slot_bytes = Staging::kBayBytes;
    pieces_.slot_count = Staging::kBays;
    pieces_.first_slot = (s.next + 1) % Staging::kBays;
    pieces_.to_slots = upload;
    pieces_.past_caches = bytes <= kStaysInCaches;
    s.small_used = Staging::kBayBytes;  // a bay of small copies may be taken from them
    s.team.open(pieces_);
  }
  Passage(const Passage&) = delete;
  Passage& operator=(const Passage&) = delete;
  ~Passage() {
    s_.team.close();
    s_.next = static_cast<int>((pieces_.first_slot + units() - 1) % Staging::kBays);
  }

  CopyTeam& team() { return s_.team; }
  int64_t units() const { return pieces_.units(); }
  size_t size_of(int64_t unit) const { return pieces_.size_of(unit); }
  size_t offset_of(int64_t unit) const { return pieces_.offset_of(unit); }
  Bay& bay_of(int64_t unit) { return s_.bays[(pieces_.first_slot + unit) % Staging::kBays]; }
  // Units below this number may be copied.
  void allow(int64_t units) { s_.team.allow(pieces_.pieces_in(units)); }
  // Whether the units before it and this one have been copied. Asked in order.
  bool is_done(int64_t unit) {
    while (seen_ < pieces_.pieces_in(unit + 1) && s_.team.is_done(seen_)) ++seen_;
    return seen_ == pieces_.pieces_in(unit + 1);
  }

 private:
  Staging& s_;
  CopyPieces pieces_;
  int64_t seen_ = 0;
};

// Whether the bus is done with a bay; `wait` until it is.
CUresult is_free(Bay& bay, bool wait, bool* free) {
  *free = true;
  if (wait || !bay.busy) return wait_for(bay);
  CUresult r = driver().cuEventQuery(bay.done);
  *free = r != CUDA_ERROR_NOT_READY;
  if (r == CUDA_SUCCESS) bay.busy = false;
  return *free ? r : CUDA_SUCCESS;
}

// Units are sent in order as they are filled, so a slow piece holds up those behind it for its own
// time only: they are filled meanwhile.
Status upload(Device& d, CUstream stream, CUdeviceptr dst, const char* src, size_t bytes) {
  Staging* staging = nullptr;
  TS_TRY(staging_of(d, true, &staging));
  Staging& s = *staging;
  std::lock_guard lock(s.mutex);
  if (bytes <= kSmall) return upload_small(d, s, stream, dst, src, bytes);
  const DriverApi& cu = driver();
  Passage p(s, const_cast<char*>(src), bytes, true);
  const int64_t units = p.units();
  int64_t allowed = 0;
  for (int64_t sent = 0; sent < units;) {
    while (allowed < units && allowed - sent < Staging::kBays) {
      bool free = false;
      TS_TRY(check(d, is_free(p.bay_of(allowed), allowed == sent, &free),
                   "waiting for a staging buffer"));
      if (!free) break;
      p.allow(++allowed);
    }
    if (allowed > sent && p.is_done(sent)) {
      Bay& bay = p.bay_of(sent);
      TS_TRY(check(
          d, cu.cuMemcpyHtoDAsync(dst + p.offset_of(sent), bay.memory, p.size_of(sent), stream),
          "a copy from host to device"));
      bay.busy = true;
      TS_TRY(check(d, cu.cuEventRecord(bay.done, stream), "a copy from host to device"));
      ++sent;
    } else if (p.team().at_work() || !p.team().help()) {
      p.team().relax();
    }
  }
  return ok();
}

// Units are asked for as long as there are bays, and taken out as they come.
Status download(Device& d, CUstream stream, char* dst, CUdeviceptr src, size_t bytes) {
  Staging* staging = nullptr;
  TS_TRY(staging_of(d, false, &staging));
  Staging& s = *staging;
  std::lock_guard lock(s.mutex);
  const DriverApi& cu = driver();
  Passage p(s, dst, bytes, false);
  const int64_t units = p.units();
  int64_t asked = 0, allowed = 0;
  for (int64_t taken = 0; taken < units;) {
    for (; asked < units && asked - taken < Staging::kBays; ++asked) {
      Bay& bay = p.bay_of(asked);
      TS_TRY(check(d, wait_for(bay), "waiting for a staging buffer"));
      TS_TRY(check(
          d, cu.cuMemcpyDtoHAsync(bay.memory, src + p.offset_of(asked), p.size_of(asked), stream),
          "a copy from device to host"));
      bay.busy = true;
      TS_TRY(check(d, cu.cuEventRecord(bay.done, stream), "a copy from device to host"));
    }
    // What came before on the stream may take long: nothing else is to be done until the first.
    bool here = allowed < asked;
    if (here)
      TS_TRY(check(d, is_free(p.bay_of(allowed), allowed == taken, &here),
                   "a copy from device to host"));
    if (here) p.allow(++allowed);
    if (allowed > taken && p.is_done(taken))
      ++taken;
    else if (!here && !p.team().help())
      p.team().relax();
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
