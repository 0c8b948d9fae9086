// Device memory for tensors: one caching allocator per device of the accelerator.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tessera/driver/backend.h"
#include "tessera/memory/history.h"
#include "tessera/memory/stats.h"

namespace tessera {
class Storage;
}

namespace tessera::memory {

// A piece of device memory; what `ctx` points to.
struct Block;

// Memory for use on `stream`, in whose order it may be reused after deallocate. Raises
// ErrorKind::kOutOfMemory. Zero bytes give null and a null ctx. `holder` is named in reports while
// it holds the memory.
void* allocate(int device, size_t bytes, StreamHandle stream, void** ctx,
               const Storage* holder = nullptr);
void deallocate(void* ctx) noexcept;
// `stream` uses the block too: it is not reused before what is queued there at deallocate is done.
void record_stream(void* ctx, StreamHandle stream);
// ... of a storage; nothing to do for memory that came from outside, or that is not there.
void record_stream(const Storage& storage, StreamHandle stream);

// The storage has taken over memory that was given to another.
void moved_to(const Storage& storage);

// A result that will be allocated later counts as allocated from now on.
enum class Promise : uint8_t {
  kMade,      // also where only other promises are in the way: nobody may ever look at them
  kAfterRun,  // memory that only deferred work keeps is in the way; nothing is counted
  kNever,     // it does not fit beside what has memory already; nothing is counted
};
Promise promise(int device, size_t bytes);
void uncharge(int device, size_t bytes);

// Memory that only deferred work keeps is freed as far as the program can see: not counted until
// `unhide`, right before it is deallocated.
void hide(int device, size_t bytes);
void unhide(int device, size_t bytes);

// What `bytes` count for in memory_allocated when they are charged.
constexpr size_t round_charge(size_t bytes) { return (bytes + 511) & ~size_t{511}; }

int64_t memory_allocated(int device);  // blocks in use and charges
int64_t max_memory_allocated(int device);
int64_t memory_reserved(int device);  // taken from the driver
int64_t max_memory_reserved(int device);
int64_t num_ooms(int device);
void reset_peak(int device);
void reset_accumulated(int device);
std::vector<NamedCount> stats(int device);
// See snapshot.cpp for its form.
std::string snapshot(int device);
// What memory_history() of PyTorch starts and ends.
void start_history(bool trace, StackOf stacks, size_t max_entries);
void stop_history();
void empty_cache(int device);
// For tests; see DeviceAllocator.
void fail_after(int device, int64_t n, bool permanent);
// Note [Memory of captured graphs]
// A graph runs on the addresses of its capture, so what was allocated then comes from a pool that
// nobody else takes from. What is freed goes back to that pool, and its pages stay where they are,
// until the last graph of the pool is gone. Several graphs may use one pool: they are then replayed
// one after another, in the order of their capture.
struct PoolId {
  uint64_t first = 0;
  uint64_t second = 0;
  bool operator==(const PoolId&) const = default;
};
// One more user of the pool, which is made with the first. Before the capture: it may wait.
void use_pool(int device, PoolId pool, StreamHandle stream);
void leave_pool(int device, PoolId pool);
// While a capture is under way, what its streams allocate comes from the pool.
void begin_capture(int device, PoolId pool, uint64_t capture);
void end_capture(int device, uint64_t capture);

// Of the device's total: the most that may be reserved.
void set_memory_fraction(int device, double fraction);

// Called, with no lock held, when the driver has no memory left and before the allocator retries:
// whoever defers work runs it here, so that what only that work keeps alive is freed.
void set_pressure_hook(void (*hook)(int device));

}  // namespace tessera::memory
