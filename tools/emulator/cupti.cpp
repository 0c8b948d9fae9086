// A stand-in for CUPTI: records of what the emulated devices do, in buffers that it asks for, as
// the real one hands them over.
#include <time.h>

#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "../../backends/cuda/cupti_api.h"
#include "observe.h"

namespace {

using namespace tessera::cuda;
using emulator::Observed;
using emulator::Piece;

std::mutex g_mutex;
std::set<uint32_t> g_kinds, g_driver;
cupti::AskBuffer g_ask = nullptr;
cupti::TakeBuffer g_take = nullptr;
uint8_t* g_buffer = nullptr;
size_t g_size = 0, g_used = 0;

constexpr uint32_t kLaunch = 307, kCopyIn = 277, kCopyOut = 279, kCopyWithin = 281, kSetBytes = 216;

// In slots of one size: a real record's size depends on its kind.
constexpr size_t kSlot = 256;

void put(const void* record, size_t bytes) {
  if (!g_buffer) {
    size_t most = 0;
    g_ask(&g_buffer, &g_size, &most);
    g_used = 0;
  }
  if (!g_buffer || g_used + kSlot > g_size) return;
  std::memset(g_buffer + g_used, 0, kSlot);
  std::memcpy(g_buffer + g_used, record, bytes);
  g_used += kSlot;
}

const char* kept(const char* name) {
  static auto* all = new std::set<std::string>;
  return all->insert(name).first->c_str();
}

void observe(const Observed& o) {
  std::lock_guard lock(g_mutex);
  const auto device = static_cast<uint32_t>(o.device);
  const auto stream = static_cast<uint32_t>(o.stream & 0xffff);
  if (o.piece == Piece::kCall) {
    uint32_t function = kLaunch;
    if (o.direction)
      function = o.direction == 1 ? kCopyIn : o.direction == 2 ? kCopyOut : kCopyWithin;
    if (!std::strcmp(o.name, "set")) function = kSetBytes;
    if (!g_kinds.contains(cupti::kDriver) && !g_driver.contains(function)) return;
    cupti::Call r{};
    r.kind = cupti::kDriver;
    r.function = function;
    r.start = o.start_ns;
    r.end = o.end_ns;
    r.thread = o.thread;
    r.correlation = o.correlation;
    return put(&r, sizeof r);
  }
  if (o.piece == Piece::kKernel && g_kinds.contains(cupti::kConcurrentKernel)) {
    cupti::Kernel r{};
    r.kind = cupti::kConcurrentKernel;
    r.start = o.start_ns;
    r.end = o.end_ns;
    r.device = device;
    r.stream = stream;
    r.correlation = o.correlation;
    r.grid[0] = r.grid[1] = r.grid[2] = r.block[0] = r.block[1] = r.block[2] = 1;
    r.name = kept(o.name);
    return put(&r, sizeof r);
  }
  if (o.piece == Piece::kCopy && g_kinds.contains(cupti::kCopy)) {
    cupti::Copy r{};
    r.kind = cupti::kCopy;
    r.direction = static_cast<uint8_t>(o.direction);
    r.from = o.direction == 1 ? 1 : 3;
    r.to = o.direction == 2 ? 1 : 3;
    r.bytes = o.bytes;
    r.start = o.start_ns;
    r.end = o.end_ns;
    r.device = device;
    r.stream = stream;
    r.correlation = o.correlation;
    return put(&r, sizeof r);
  }
  if (o.piece == Piece::kSet && g_kinds.contains(cupti::kSet)) {
    cupti::Set r{};
    r.kind = cupti::kSet;
    r.bytes = o.bytes;
    r.start = o.start_ns;
    r.end = o.end_ns;
    r.device = device;
    r.stream = stream;
    r.correlation = o.correlation;
    put(&r, sizeof r);
  }
}

void look() { emulator_observer = g_kinds.empty() && g_driver.empty() ? nullptr : observe; }

}  // namespace

extern "C" {

int cuptiActivityRegisterCallbacks(cupti::AskBuffer ask, cupti::TakeBuffer take) {
  g_ask = ask;
  g_take = take;
  return 0;
}
int cuptiActivityEnable(uint32_t kind) {
  std::lock_guard lock(g_mutex);
  g_kinds.insert(kind);
  look();
  return 0;
}
int cuptiActivityDisable(uint32_t kind) {
  std::lock_guard lock(g_mutex);
  g_kinds.erase(kind);
  look();
  return 0;
}
int cuptiActivityEnableDriverApi(uint32_t function, uint8_t on) {
  std::lock_guard lock(g_mutex);
  if (on)
    g_driver.insert(function);
  else
    g_driver.erase(function);
  look();
  return 0;
}
int cuptiActivityFlushAll(uint32_t) {
  uint8_t* full = nullptr;
  size_t size = 0, used = 0;
  {
    std::lock_guard lock(g_mutex);
    std::swap(full, g_buffer);
    size = g_size;
    used = g_used;
  }
  if (full) g_take(nullptr, 0, full, size, used);
  return 0;
}
int cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, cupti::Record** record) {
  constexpr int kEnd = 12;
  uint8_t* next = *record ? reinterpret_cast<uint8_t*>(*record) + kSlot : buffer;
  if (next + kSlot > buffer + valid) return kEnd;
  *record = reinterpret_cast<cupti::Record*>(next);
  return 0;
}
int cuptiGetTimestamp(uint64_t* out) {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  *out = static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
  return 0;
}
int cuptiSetThreadIdType(uint32_t) { return 0; }
int cuptiGetCallbackName(uint32_t, uint32_t function, const char** name) {
  static const std::map<uint32_t, const char*> names = {{kLaunch, "cuLaunchKernel"},
                                                        {kCopyIn, "cuMemcpyHtoDAsync_v2"},
                                                        {kCopyOut, "cuMemcpyDtoHAsync_v2"},
                                                        {kCopyWithin, "cuMemcpyDtoDAsync_v2"},
                                                        {kSetBytes, "cuMemsetD8Async"}};
  auto it = names.find(function);
  if (it == names.end()) return 1;
  *name = it->second;
  return 0;
}
int cuptiGetResultString(int, const char** text) {
  *text = "an emulated error";
  return 0;
}
}
