#include "relaunch.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "graphs.h"
#include "kernels.h"
#include "notes.h"

namespace tessera::cuda {
namespace {

enum Way : int { kPlain, kGraph, kUndecided };

struct Choice {
  Way way = kUndecided;
  int worth = 16;  // launches that save what making a graph costs
};
// What $TESSERA_LAUNCH asks for: "plain", or "graph" from a kernel's first launch on. Tools that
// watch kernels from within the process would see graphs, and who wants launches to wait wants
// every one to.
const Choice& asked() {
  static const Choice choice = [] {
    const char* way = std::getenv("TESSERA_LAUNCH");
    const char* waits = std::getenv("CUDA_LAUNCH_BLOCKING");
    if (way && std::strcmp(way, "graph") == 0) return Choice{kGraph, 1};
    if ((way && std::strcmp(way, "plain") == 0) || std::getenv("CUDA_INJECTION64_PATH") ||
        (waits && std::strcmp(waits, "1") == 0))
      return Choice{kPlain};
    return Choice{};
  }();
  return choice;
}

// Host times of both ways. The quarter that was fastest decides: many a launch is held up by
// something else.
struct Trial {
  static constexpr int kTries = 24;
  std::atomic<Way> way{asked().way};
  std::mutex mutex;
  std::vector<int64_t> ns[2];

  Way next() {
    std::lock_guard lock(mutex);
    return ns[kPlain].size() <= ns[kGraph].size() ? kPlain : kGraph;
  }
  void add(Way tried, int64_t time) {
    std::lock_guard lock(mutex);
    if (way.load() != kUndecided) return;
    ns[tried].push_back(time);
    if (ns[kPlain].size() < kTries || ns[kGraph].size() < kTries) return;
    auto fast = [](std::vector<int64_t>& times) {
      auto quarter = times.begin() + kTries / 4;
      std::nth_element(times.begin(), quarter, times.end());
      return *quarter;
    };
    way.store(fast(ns[kGraph]) < fast(ns[kPlain]) ? kGraph : kPlain);
  }
};

int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

// What costs as much as a launch to change in a graph, and the stream.
struct Key {
  CUfunction function = nullptr;
  unsigned x = 0, y = 0, z = 0, threads = 0, shared = 0;
  CUstream stream = nullptr;
  bool operator==(const Key&) const = default;
};

struct Again {
  Key key;
  int64_t last = 0;  // the number of its last launch
  int count = 0;     // launches until there is a graph
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec executable = nullptr;
};

constexpr size_t kMostSets = 64, kPlaces = 4;
constexpr size_t kMemoryForOne = size_t{64} << 20;  // of the device; a graph takes 96 KiB of it
constexpr int64_t kLargest = 64;   // blocks for each multiprocessor, some 10 us of work
constexpr int64_t kUnused = 4096;  // launches of others after which a graph is given up for another

struct Set {
  std::mutex mutex;  // who finds it taken launches plainly
  Again places[kPlaces];
};

}  // namespace

struct Launches {
  Trial trial;
  size_t num_sets = kMostSets;
  Set sets[kMostSets];
  std::mutex mutex;
  std::vector<CUstream> streams;  // ours

  Set& set_of(const Key& k) {
    uint64_t h = reinterpret_cast<uintptr_t>(k.function) >> 4;
    h = h * 0x9e3779b97f4a7c15u + k.x;
    h = h * 0x9e3779b97f4a7c15u + k.y;
    h = h * 0x9e3779b97f4a7c15u + (reinterpret_cast<uintptr_t>(k.stream) >> 4);
    return sets[(h * 0x9e3779b97f4a7c15u >> 32) % num_sets];
  }
};

Launches* make_launches(size_t device_memory) {
  Launches* all = new Launches;  // as long as its device
  all->num_sets =
      std::clamp<size_t>(std::bit_floor(device_memory / kMemoryForOne / kPlaces), 4, kMostSets);
  return all;
}

void note_stream(Device& d, CUstream stream) {
  std::lock_guard lock(d.launches->mutex);
  d.launches->streams.push_back(stream);
}

namespace {

CUresult launch_plainly(CUstream stream, const CUDA_KERNEL_NODE_PARAMS& k) {
  return driver().cuLaunchKernel(k.func, k.gridDimX, k.gridDimY, k.gridDimZ, k.blockDimX,
                                 k.blockDimY, k.blockDimZ, k.sharedMemBytes, stream, k.kernelParams,
                                 nullptr);
}

void drop(Again& again) {
  if (!again.graph) return;
  const Relaxed relaxed(Relaxed::kAlways);
  const DriverApi& cu = driver();
  if (again.executable) cu.cuGraphExecDestroy(again.executable);
  cu.cuGraphDestroy(again.graph);
  again.graph = nullptr;
  again.executable = nullptr;
}
// Nor is it tried again soon.
void give_up(Again& again) {
  drop(again);
  again.count = -static_cast<int>(kUnused);
}

void drop_of_stream(Device& d, CUstream stream) {
  Launches& all = *d.launches;
  for (Set& set : all.sets) {
    std::lock_guard lock(set.mutex);
    for (Again& again : set.places)
      if (again.key.stream == stream) {
        drop(again);
        again = Again{};
      }
  }
  std::lock_guard lock(all.mutex);
  std::erase(all.streams, stream);
}
TS_CUDA_AT_STREAM_END(drop_of_stream)

// Null where all places of the set have graphs that are in use.
Again* find(Set& set, const Key& key, int64_t number) {
  for (Again& again : set.places)
    if (again.key == key) {
      again.last = number;
      return &again;
    }
  Again& oldest = *std::min_element(set.places, set.places + kPlaces,
                                    [](const Again& a, const Again& b) { return a.last < b.last; });
  if (oldest.executable && number - oldest.last < kUnused) return nullptr;
  drop(oldest);
  oldest = Again{key, number};
  return &oldest;
}

bool is_ours(Device& d, CUstream stream) {
  if (stream == d.default_stream) return true;
  Launches& all = *d.launches;
  std::lock_guard lock(all.mutex);
  return std::find(all.streams.begin(), all.streams.end(), stream) != all.streams.end();
}

// Is there a graph for this launch? Counts, and makes one when it is time.
bool is_ready(Device& d, Again& again, const CUDA_KERNEL_NODE_PARAMS& kernel) {
  if (again.executable) [[likely]]
    return true;
  if (++again.count < asked().worth) return false;
  const Relaxed relaxed(Relaxed::kAlways);
  const DriverApi& cu = driver();
  if (is_ours(d, again.key.stream) && cu.cuGraphCreate(&again.graph, 0) == CUDA_SUCCESS &&
      cu.cuGraphAddKernelNode(&again.node, again.graph, nullptr, 0, &kernel) == CUDA_SUCCESS &&
      cu.cuGraphInstantiate(&again.executable, again.graph, 0) == CUDA_SUCCESS)
    return true;
  give_up(again);
  return false;
}

// False if it did not: then nothing was launched.
bool launch_graph(CUstream stream, Again& again, const CUDA_KERNEL_NODE_PARAMS& kernel) {
  const DriverApi& cu = driver();
  if (cu.cuGraphExecKernelNodeSetParams(again.executable, again.node, &kernel) == CUDA_SUCCESS &&
      cu.cuGraphLaunch(again.executable, stream) == CUDA_SUCCESS) [[likely]]
    return true;
  give_up(again);
  return false;
}

}  // namespace

CUresult launch_in_some_way(Device& d, CUstream stream, const CUDA_KERNEL_NODE_PARAMS& kernel,
                            int64_t number) {
  Trial& trial = d.launches->trial;
  Way way = trial.way.load(std::memory_order_relaxed);
  const int64_t blocks = int64_t{kernel.gridDimX} * kernel.gridDimY * kernel.gridDimZ;
  if (way == kPlain || blocks > kLargest * d.multiprocessors ||
      captures.load(std::memory_order_relaxed) != 0 ||
      recorded_by_cupti.load(std::memory_order_relaxed))
    return launch_plainly(stream, kernel);
  const Key key{kernel.func,      kernel.gridDimX,       kernel.gridDimY, kernel.gridDimZ,
                kernel.blockDimX, kernel.sharedMemBytes, stream};
  Set& set = d.launches->set_of(key);
  std::unique_lock lock(set.mutex, std::try_to_lock);
  Again* again = lock ? find(set, key, number) : nullptr;
  if (!again || !is_ready(d, *again, kernel)) return launch_plainly(stream, kernel);
  if (way == kGraph) [[likely]]
    return launch_graph(stream, *again, kernel) ? CUDA_SUCCESS : launch_plainly(stream, kernel);
  way = trial.next();
  const int64_t begin = now_ns();
  if (way == kPlain || !launch_graph(stream, *again, kernel)) {
    way = kPlain;
    if (CUresult r = launch_plainly(stream, kernel); r != CUDA_SUCCESS) return r;
  }
  trial.add(way, now_ns() - begin);
  return CUDA_SUCCESS;
}

}  // namespace tessera::cuda
