// Functions that run for vmap or a gradient transform: which storages are their own.
#pragma once
#include <atomic>
#include <unordered_set>
#include <vector>

#include "tessera/tensor/tensor.h"

namespace tessera {

// Scopes nest on their thread. Storages made while a scope is open are inside it; writes to others
// would be repeated by every example, see call/batch_writes.h.
class BatchScope {
 public:
  // Scope of a loop over `size` examples; with `different` each draws its own random numbers.
  BatchScope(int64_t size, bool different);
  // Scope of a gradient transform: tensors from outside are not written at all.
  BatchScope();
  ~BatchScope();
  BatchScope(const BatchScope&) = delete;
  BatchScope& operator=(const BatchScope&) = delete;

  static BatchScope* innermost();
  BatchScope* outer() const { return outer_; }

  void add_mapped(const TensorBase& t) { mapped_.insert(&t.storage()); }
  void add_made(const Storage& s) { made_.insert(&s); }
  void add_batched(const TensorBase& t) { batched_.insert(&t.storage()); }
  bool is_outside(const TensorBase& t) const {
    return !made_.contains(&t.storage()) && !mapped_.contains(&t.storage());
  }
  // Whether the values of the tensor depend on the example.
  bool is_batched(const TensorBase& t) const {
    return batched_.contains(&t.storage()) || mapped_.contains(&t.storage());
  }

  // Forgets the storages of the last example.
  void begin_example() {
    made_.clear();
    batched_.clear();
  }

  const int64_t size;  // zero of gradient transforms
  const bool different;
  // Tensors outside that were written with values that are the same for all examples, and copies of
  // what was in them before.
  struct Written {
    TensorBase tensor, before;
  };
  std::vector<Written> written;

 private:
  BatchScope* outer_;
  std::unordered_set<const Storage*> mapped_, made_, batched_;
};

// Scopes that are open on any thread.
extern std::atomic<int> g_batch_scopes;
inline bool any_batch_scope() { return g_batch_scopes.load(std::memory_order_relaxed) != 0; }
// Called for every new storage.
void note_new_storage(const Storage& s);

}  // namespace tessera
