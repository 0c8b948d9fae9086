#include <sys/mman.h>

#include <cstdint>
#include <cstring>

#include "device.h"
#include "options.h"

namespace emulator {
namespace {

constexpr size_t kPage = 4096;
// What is larger is left as it comes, which costs no memory until it is used.
constexpr size_t kPoisonedBytes = 64u << 20;

std::mutex g_mutex;
std::map<uintptr_t, Range>& ranges() {
  static auto* all = new std::map<uintptr_t, Range>;
  return *all;
}

size_t rounded(size_t bytes) {
  return (bytes + options().align - 1) / options().align * options().align;
}

}  // namespace

// Allocations end at the end of a page, as far as their alignment allows: what reads or writes
// beyond meets a page that cannot be touched.
CUresult allocate(Device* d, size_t bytes, bool host, void** out) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  size_t size = rounded(bytes), inner = (size + kPage - 1) / kPage * kPage;
  std::lock_guard lock(g_mutex);
  if (!host && d->used + size > options().memory) return CUDA_ERROR_OUT_OF_MEMORY;
  void* base = mmap(nullptr, inner + kPage, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  char* begin = static_cast<char*>(base);
  mprotect(begin + inner, kPage, PROT_NONE);
  char* p = begin + inner - size;
  // All bits set: NaN in every floating type, and no address.
  if (options().poison && size <= kPoisonedBytes) std::memset(p, 0xff, size);
  ranges()[reinterpret_cast<uintptr_t>(p)] = {bytes, inner + kPage, begin, host ? nullptr : d};
  if (!host) d->used += size;
  *out = p;
  return CUDA_SUCCESS;
}

CUresult release(void* p, bool host) {
  if (!p) return CUDA_SUCCESS;
  std::lock_guard lock(g_mutex);
  auto it = ranges().find(reinterpret_cast<uintptr_t>(p));
  if (it == ranges().end() || (it->second.device == nullptr) != host)
    return CUDA_ERROR_INVALID_VALUE;
  const Range& r = it->second;
  if (r.device) r.device->used -= rounded(r.bytes);
  munmap(r.base, r.mapped);
  ranges().erase(it);
  return CUDA_SUCCESS;
}

void note_range(void* p, size_t bytes, Device* d) {
  std::lock_guard lock(g_mutex);
  ranges()[reinterpret_cast<uintptr_t>(p)] = {bytes, bytes, static_cast<char*>(p), d};
}
void forget_range(void* p) {
  std::lock_guard lock(g_mutex);
  ranges().erase(reinterpret_cast<uintptr_t>(p));
}

bool find_range(const void* p, size_t bytes, Range* out) {
  uintptr_t at = reinterpret_cast<uintptr_t>(p), end = at + bytes;
  std::lock_guard lock(g_mutex);
  auto it = ranges().upper_bound(at);
  if (it == ranges().begin()) return false;
  --it;
  if (at - it->first > it->second.bytes) return false;
  if (out) *out = it->second;
  // Pages mapped one after another are one piece of memory.
  uintptr_t reached = it->first + it->second.bytes;
  while (reached < end) {
    if (++it == ranges().end() || it->first != reached) return false;
    reached += it->second.bytes;
  }
  return true;
}

}  // namespace emulator
