// Outcomes of collectives, and the marks that connect them with the tensors they write.
//
// Note [Poisoned tensors]
// A collective marks the bytes that it writes with its outcome. Marks follow program order, as
// version counters do: they are set and passed on when a call is made, not when it runs.
//   An operator that reads marked bytes passes the marks on to its results, and makes the current
//   stream wait for the collective. If the collective has failed already, the operator raises.
//   A read on the host, and every read of a CPU tensor, waits for the collective and raises if it
//   failed.
//   An operator that overwrites bytes in full removes their marks. So does freeing the storage.
// A storage with marks has the bit kMarked in Storage::arriving; tensors that never met a
// collective pay for one load of a counter.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "tessera/tensor/tensor.h"

namespace tessera {

class CollectiveOutcome {
 public:
  enum class State : uint8_t { kOpen, kDone, kFailed };
  virtual ~CollectiveOutcome() = default;

  // Does not block.
  virtual State state() = 0;
  // Blocks the calling thread until the state is not kOpen.
  virtual void wait() = 0;
  // Makes the current stream of the outputs' device wait.
  virtual void join() = 0;
  // Returns true if the device has passed the collective but its library reports an error, so that
  // the state is about to become kFailed.
  virtual bool is_failing() = 0;
  // Raises the error of a failed collective.
  [[noreturn]] virtual void raise() const = 0;

  // Outcomes of one domain fail together from the failing one on, so that the one with the highest
  // number stands for all before it. Null: a domain of its own.
  const void* domain = nullptr;
  int64_t number = 0;
};
// The highest bit of Storage::arriving; the other ones count copies.
inline constexpr uint32_t kMarked = 1u << 31;
using CollectiveOutcomePtr = std::shared_ptr<CollectiveOutcome>;

// Number of storages with marks.
extern std::atomic<int64_t> marked_storages;
inline bool has_marks() { return marked_storages.load(std::memory_order_relaxed) != 0; }

// Marks the bytes of `t`, which the collective writes. Earlier marks stay.
void mark_collective(const TensorBase& t, const CollectiveOutcomePtr& outcome);
// Before a read on the host: waits for the collectives that write `t`, and raises if one failed.
void check_outcome(const TensorBase& t);
// Frees the marks of a storage; for its destructor.
void drop_marks(Storage& storage);

// Marks that the operands of one call pass on to its results.
class PassedMarks {
 public:
  // Raises if `t` holds the result of a failed collective. Waits if `t` is on the CPU.
  void read(const TensorBase& t);
  // Collects the marks of an output whose elements may be read, and does not raise: they stay.
  void update(const TensorBase& t);
  // `overwrites`: all elements of `t` get new values.
  void write(const TensorBase& t, bool overwrites);

 private:
  std::vector<CollectiveOutcomePtr> outcomes_;
};

// ---- failures that the program has not seen ----

// Records a failure under its exception, once.
void record_failure(const std::exception_ptr& error, const std::string& text);
// The program has got this exception, or another one with its text.
void set_reported(const std::exception_ptr& error);
// Collectives that may still fail: settle_outcomes() polls them.
void watch_outcome(const CollectiveOutcomePtr& outcome);
// After a device, stream or event was synchronized: decides what the device has passed, and raises
// the oldest failure that was not reported, once.
void raise_unreported_failure();
// Texts of the failures that were not reported. Empty in a forked child.
std::vector<std::string> unreported_failures();
// Number of forks between the first process and this one.
int fork_generation();

}  // namespace tessera
