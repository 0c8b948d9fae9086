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
// it holds the memory; null for the scratch memory of a kernel. `owner` kDeferredWork: the block
// counts as hidden from the start (see Note [Figures of a device]).
enum class Owner : uint8_t { kProgram, kDeferredWork };
void* allocate(int device, size_t bytes, StreamHandle stream, void** ctx,
               const Storage* holder = nullptr, Owner owner = Owner::kProgram);
void deallocate(void* ctx) noexcept;
// `stream` uses the block too: it is not reused before what is queued there at deallocate is done.
void record_stream(void* ctx, StreamHandle stream);
// ... of a storage; nothing to do for memory that came from outside, or that is not there.
void record_stream(const Storage& storage, StreamHandle stream);

// The storage has taken over memory that was given to another.
void moved_to(const Storage& storage);

// Note [Figures of a device]
// `used` is what eager execution would hold at this point of the program: memory_allocated(). It
// differs from the blocks in use by three figures that deferred work keeps up to date:
//   charged   results that the program holds and that have no memory yet
//   hidden    blocks that the program has released and that only deferred work keeps
//   unstored  results without memory that only deferred work refers to
// So blocks in use are used - charged + hidden, and used + hidden + unstored bounds the memory that
// any order of running deferred work can need. `peak` is the most that `used` has been.
struct Usage {
  int64_t used, charged, hidden, unstored;
  int64_t peak;
  int64_t limit;  // bytes of the device that this process may have
  int64_t real() const { return used - charged + hidden; }
  int64_t most() const { return used + hidden + unstored; }
};
Usage usage(int device);

// A result that will be allocated later counts as used from now on, also beyond the device's
// memory: the program may never read it.
enum class Charge : uint8_t {
  kMade,
  kBeyondRoom,  // made, and it may take room that guard_room() keeps
  kTooLarge,    // not made: it is larger than the device
};
Charge charge(int device, size_t bytes);
void uncharge(int device, size_t bytes);
// Moves a charged result that the program has released, and that deferred work still refers to,
// from `charged` to `unstored`; and ends that. These and the next two are called under the lock of
// the device's deferred work.
void set_unstored(int device, size_t bytes);
void clear_unstored(int device, size_t bytes);

// Memory that only deferred work keeps is not counted as used until `unhide`, right before it is
// deallocated.
void hide(int device, size_t bytes);
void unhide(int device, size_t bytes);

// Returns true if the device has room for everything that deferred work could need, and `bytes`
// more, with a margin for fragmentation.
bool surely_fits(int device, int64_t bytes);
// While on, an allocation that would take away room that surely_fits() granted calls the room hook.
void guard_room(int device, bool on);

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
// Called, with no lock held, before a tensor's memory is allocated while deferred work could raise
// the memory in use above `peak`, or while guard_room() is on and room is short.
void set_room_hook(void (*hook)(int device, size_t bytes));

}  // namespace tessera::memory
