// Memory that pending operators will need: reserved for writes, and never above eager's peak.
//
// Note [Memory of results]
// A pending result counts as used from the moment it is recorded, so that statistics need no run.
// It takes memory only when its value is needed: most results are dropped before that. Where memory
// is out then, the run raises and names the operator and the line it was called on.
//
// Note [Memory of writes]
// An operator that writes an existing tensor must succeed once it is recorded: the old value is
// gone as far as the program can see. So memory for its target is allocated when it is recorded. If
// results that it needs have no memory yet, or pending readers of the target have none, everything
// pending must fit into the device, with a margin (memory::surely_fits), and stay so: operators
// recorded later and allocations run pending work before they take that room (guards_room_). Where
// it does not fit, the results that the write needs run first, and the line raises if that fails.
//
// Note [Peak]
// Blocks in use (memory::Usage::real) never exceed `peak`, the most that eager execution would have
// held so far. The proof goes by what running pending operators one by one, in program order, would
// hold. Before operator k: blocks that the program holds, results of earlier pending operators that
// it holds, and what k and later operators still read. Eager execution held all of this when k was
// recorded, but for blocks allocated since then. So
//   - recording an operator, and dropping a tensor, are always allowed;
//   - before memory is allocated for anything else while operators are pending, all of them run
//     (make_room), unless everything that could be stored fits into the peak (Usage::most), or one
//     plan for all pending operators does (GroupRunner::bytes_to_store);
//   - a slice allocates results ahead of operators that stay pending, so the same holds for it
//     (slice_keeps_peak);
//   - a run takes the longest piece of the stream that fits, at least one operator
//     (run_in_pieces), and frees inputs after each piece.
// Kernels' scratch memory is not part of this: eager execution takes the same.
#include <algorithm>

#include "tessera/base/blocking.h"
#include "tessera/driver/current.h"
#include "tessera/fuse/group.h"
#include "tessera/memory/allocator.h"
#include "tessera/memory/capture.h"
#include "tessera/ops/reserve.h"

namespace tessera::fuse {

// Before the lock is taken for good: another thread may record while this one frees memory.
void Stream::charge(Storage& target) {
  const memory::Charge made = memory::charge(device_.index, target.nbytes);
  if (made == memory::Charge::kTooLarge) return allocate(target);  // raises
  target.charged = memory::round_charge(target.nbytes);
  if (made == memory::Charge::kBeyondRoom && !memory::surely_fits(device_.index, 0))
    flush(Reason::kMemory, Parked::kNo);
}

void Stream::reserve(const Pointwise& p, Storage& target) {
  // Then everything pending fits, and stays so.
  if (target.data && guards_room_.load(std::memory_order_relaxed)) return;
  Storage* sources[kMaxSources];
  size_t n = 0;
  for (int k = 0; k < p.num_sources; ++k)
    if (const TensorBase* t = p.sources[k].tensor; t && !t->storage().data)
      sources[n++] = &t->storage();
  if (n == 0 && target.data && !target.pending.load(std::memory_order_relaxed)) return;
  Storage* const only = &target;
  reserve_room({&only, 1}, {sources, n});
}

void Stream::reserve(std::span<const TensorBase> targets, std::span<const TensorBase> sources) {
  if (device_.is_cpu()) return;
  std::vector<Storage*> written, read;
  for (const TensorBase& t : targets)
    if (t.defined() && t.storage().pending.load(std::memory_order_relaxed) == this)
      written.push_back(&t.storage());
  for (const TensorBase& t : sources)
    if (t.defined() && !t.storage().data &&
        t.storage().pending.load(std::memory_order_relaxed) == this)
      read.push_back(&t.storage());
  if (!written.empty() || !read.empty()) reserve_room(written, read);
}

void Stream::reserve_room(std::span<Storage* const> targets, std::span<Storage* const> sources) {
  for (Storage* t : targets)
    if (!t->data) reserve_memory(*t);
  if (memory::surely_fits(device_.index, 0)) {
    guards_room_.store(true, std::memory_order_relaxed);
    memory::guard_room(device_.index, true);
    return;
  }
  auto run_involved = [&] {
    for (Storage* t : targets) run_for_write(*t, Reason::kMemory);
    for (Storage* s : sources) run_for_read(*s, Reason::kMemory);
  };
  try {
    run_involved();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kOutOfMemory) throw;
    flush(Reason::kMemory, Parked::kNo);  // it may free what other operators read
    run_involved();
  }
}

void Stream::reserve_memory(Storage& target) {
  make_room(0);  // the block is taken before its operator's turn
  for (bool again : {false, true}) {
    try {
      std::lock_guard lock(mutex_);
      if (target.data) return;
      struct Running {  // the allocator's hooks must not run anything under the lock
        std::atomic<std::thread::id>& running;
        ~Running() { running.store(std::thread::id()); }
      } mark{running_};
      running_.store(std::this_thread::get_id());
      const bool waits = target.pending.load(std::memory_order_relaxed) == this;
      return allocate_on(target, waits ? stream_ : current_stream(device_.index));
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kOutOfMemory || again) throw;
    }
    flush(Reason::kMemory, Parked::kNo);
  }
}

// Returns true if results that the program holds exceed the memory of the device.
bool Stream::beyond_memory() const {
  if (device_.is_cpu()) return false;
  const memory::Usage u = memory::usage(device_.index);
  return u.used > u.limit;
}

// Returns true if everything pending has to run before `bytes` are allocated.
bool Stream::exceeds_peak(size_t bytes) {
  const auto n = static_cast<int64_t>(memory::round_charge(bytes));
  if (guards_room_.load(std::memory_order_relaxed) && !memory::surely_fits(device_.index, n))
    return true;
  memory::Usage u = memory::usage(device_.index);
  auto peak = [&] { return std::max(u.peak, u.used + n); };
  if (u.used + n > u.limit) return false;  // eager execution would be out of memory
  if (u.most() - unstored_in_plan_ + n <= peak()) return false;
  drop_dead();
  u = memory::usage(device_.index);
  if (unparked() == 0 || u.most() + n <= peak()) return false;
  if (u.used + u.hidden + n > peak()) return true;
  select_unparked(Parked::kNo);
  const int64_t needed = u.real() + n + runner_->bytes_to_store();
  for (PendingOp* op : ops_) op->selected = false;
  if (needed > peak()) return true;
  planned_before_ = next_id_;
  unstored_in_plan_ = u.most() + n - needed;
  return false;
}

void Stream::make_room(size_t bytes) {
  if (running_here()) return;
  {
    std::lock_guard lock(mutex_);
    if (unparked() == 0) return;
    // Work of another thread's capture runs in that thread.
    if (owner_ != std::this_thread::get_id() &&
        memory::detail::captures.load(std::memory_order_relaxed) > 0)
      return;
    if (!exceeds_peak(bytes)) return;
  }
  flush(Reason::kMemory, Parked::kNo);
}

// Returns true if the selected operators may run ahead of the others.
bool Stream::slice_keeps_peak() {
  if (device_.is_cpu()) return true;
  const memory::Usage u = memory::usage(device_.index);
  if (u.most() <= u.peak || u.used > u.limit) return true;
  int64_t needed = u.real() + runner_->bytes_to_store();
  if (needed > u.peak) return false;
  bool all = true;
  for (PendingOp* op : ops_) all &= op->selected;
  if (all) return true;
  auto turn = [this] {
    for (PendingOp* op : ops_) op->selected = !op->selected;
  };
  turn();
  needed += runner_->bytes_to_store();
  turn();
  if (needed > u.peak) return false;
  planned_before_ = next_id_;
  return true;
}

bool Stream::needs_pieces() const {
  if (device_.is_cpu()) return false;
  const memory::Usage u = memory::usage(device_.index);
  return u.most() > std::min(u.peak, u.limit);
}

// Selects a piece from the front that fits, about the longest one, and returns its length.
size_t Stream::select_piece(std::span<PendingOp* const> ops) {
  const memory::Usage u = memory::usage(device_.index);
  const int64_t room = std::min(u.peak, u.limit) - u.real();
  const auto planned = static_cast<size_t>(std::count_if(
      ops.begin(), ops.end(), [&](PendingOp* op) { return op->id < planned_before_; }));
  auto select = [&](size_t n) {
    for (size_t i = 0; i < ops.size(); ++i) ops[i]->selected = i < n;
  };
  size_t fits = 1, too_long = ops.size() + 1;
  for (size_t n = ops.size(); too_long - fits > 1; n = fits + (too_long - fits) / 2) {
    if (planned > fits && planned < too_long && n != ops.size()) n = planned;
    select(n);
    (runner_->bytes_to_store() <= room ? fits : too_long) = n;
  }
  select(fits);
  return fits;
}

std::exception_ptr Stream::run_in_pieces(Reason reason, Parked most) {
  ++stats_.runs[static_cast<size_t>(reason)];
  last_run_.clear();
  for (PendingOp* op : ops_) op->in_run = op->selected;
  std::exception_ptr first;
  std::vector<PendingOp*> ops;
  for (;;) {
    ops.clear();
    for (PendingOp* op : ops_) {
      op->selected = false;
      if (op->in_run) ops.push_back(op);
    }
    if (ops.empty()) return first;
    select_piece(ops);
    std::exception_ptr error = attempt();
    if (!error) continue;
    if (!first) first = error;
    select_unparked(most);  // operators that need a failed one are parked
    for (PendingOp* op : ops_) op->in_run &= op->selected;
  }
}

}  // namespace tessera::fuse

namespace tessera {

void reserve_for_writes(std::span<const TensorBase> targets, std::span<const TensorBase> sources) {
  for (int d = 0; d < device_count(); ++d)
    fuse::stream_of(Device{DeviceType::kCUDA, static_cast<int16_t>(d)}).reserve(targets, sources);
}

}  // namespace tessera
