#include "tessera/fuse/stream.h"

#include <algorithm>

#include "tessera/base/blocking.h"
#include "tessera/driver/current.h"
#include "tessera/fuse/group.h"
#include "tessera/memory/allocator.h"
#include "tessera/profile/record.h"

namespace tessera::fuse {

const char* reason_name(Reason r) {
  static constexpr const char* names[] = {
      "host read", "consumer",  "write",         "exposed", "thread",  "thread exit",
      "fork",      "stream",    "record stream", "event",   "sync",    "memory",
      "op cap",    "input cap", "byte budget",   "user",    "capture",
  };
  static_assert(std::size(names) == static_cast<size_t>(Reason::kCount));
  return names[static_cast<int>(r)];
}

bool same_place(const PendingOperand& a, const Dims& shape_a, const PendingOperand& b,
                const Dims& shape_b) {
  if (a.storage != b.storage || a.offset != b.offset || a.dtype != b.dtype) return false;
  if (a.dense != b.dense || !(shape_a == shape_b)) return false;
  return a.dense || a.strides == b.strides;
}

Stream::Stream(Device device) : device_(device), runner_(std::make_unique<GroupRunner>(*this)) {}
Stream::~Stream() = default;

PendingOp* Stream::take_slot() {
  if (free_.empty()) {
    auto made = std::make_unique<PendingOp>();
    const size_t most = slots_.size() + 1;
    if (free_.capacity() < most) free_.reserve(2 * most);
    if (ops_.capacity() < most) ops_.reserve(2 * most);
    slots_.push_back(std::move(made));
    return slots_.back().get();
  }
  PendingOp* op = free_.back();
  free_.pop_back();
  return op;
}

bool Stream::running_here() const { return running_.load() == std::this_thread::get_id(); }

void Stream::add_operand(PendingOperand& o, const TensorBase& t, const Dims& shape, bool is_write) {
  Storage* s = t.impl()->storage.get();
  o.storage = nullptr;
  o.offset = t.storage_offset();
  o.dtype = t.dtype();
  o.producer = nullptr;
  o.value = -1;
  o.dense = t.is_contiguous() && t.sizes() == shape;
  if (!o.dense) o.strides = broadcast_strides(t.sizes(), t.strides(), shape);
  // Nothing below throws: see undo().
  s->ref();
  ++s->pending_refs;
  s->pending.store(this, std::memory_order_release);
  o.storage = s;
  if (is_write) {
    ++s->pending_writes;
  } else if (auto* w = static_cast<PendingOp*>(s->writer)) {
    w->each_output([&](const PendingOperand& made, const Dims& made_shape) {
      if (!same_place(o, shape, made, made_shape)) return;
      o.producer = w;
      o.value = w->id;
    });
  }
}

void Stream::drop_operand(const PendingOperand& o, bool is_write) {
  Storage* s = o.storage;
  if (is_write) --s->pending_writes;
  if (--s->pending_refs == 0) {
    s->pending.store(nullptr, std::memory_order_release);
    if (s->hidden) {
      s->hidden = false;
      if (s->data) kept_bytes_ -= s->nbytes;
      if (device_.is_cuda())
        (s->data ? memory::unhide : memory::clear_unstored)(device_.index, s->nbytes);
    }
  }
  Ref<Storage>::adopt(s).reset();
}

std::unique_lock<Mutex> Stream::admit(StreamHandle current) {
  std::unique_lock lock(mutex_);
  for (;;) {
    Reason reason = Reason::kCount;
    if (unparked() > 0) {
      if (owner_ != std::this_thread::get_id())
        reason = Reason::kThread;
      else if (stream_ != current)
        reason = Reason::kStream;
      else if (unparked() >= static_cast<size_t>(kPendingCap))
        reason = Reason::kOpCap;
      else if (kept_bytes_ > kByteBudget + parked_bytes_)
        reason = Reason::kByteBudget;
    }
    if (reason == Reason::kCount) break;
    if (reason == Reason::kOpCap && beyond_memory()) {
      drop_dead();  // running the rest would store results that exceed the device
      if (unparked() < static_cast<size_t>(kPendingCap) / 2) continue;
    }
    lock.unlock();
    flush(reason, Parked::kNo);
    lock.lock();
  }
  if (owner_ != std::this_thread::get_id()) {
    owner_ = std::this_thread::get_id();
    watch_this_thread();
  }
  if (!ops_.empty() && stream_ != current) adopt_parked(current);
  stream_ = current;
  if (ops_.empty() && next_id_ > (1 << 30)) next_id_ = 0;
  return lock;
}

PendingOp& Stream::begin(const Op* op, SourceRef source) {
  PendingOp& p = *take_slot();
  p.selected = p.done = p.in_run = p.failed = false;
  p.parked = Parked::kNo;
  p.id = next_id_++;
  p.op = op;
  p.source = std::move(source);
  p.call = profile::current_call();
  p.kernel.reset();
  p.out.storage = nullptr;
  for (PendingOperand& o : p.sources) o.storage = nullptr;
  return p;
}

// Releases the operands of an operator that could not be recorded because memory ran out.
void Stream::undo(PendingOp* op) noexcept {
  auto drop = [this](PendingOperand& o, bool is_write) {
    if (o.storage) drop_operand(o, is_write);
    o.storage = nullptr;
  };
  if (op->kernel) {
    for (PendingKernel::Place& o : op->kernel->outputs) {
      if (o.storage && o.storage->writer == op) o.storage->writer = nullptr;
      drop(o, true);
    }
    for (PendingKernel::Place& o : op->kernel->inputs) drop(o, false);
  } else {
    drop(op->out, true);
    for (PendingOperand& o : op->sources) drop(o, false);
  }
  op->id = -1;
  op->source = {};
  op->kernel.reset();
  free_.push_back(op);
}

namespace {

SourceRef called_at() {
  if (source_lines()) return SourceRef::capture(mode() == Mode::kCheck);
  return {};
}

bool is_fresh(const Storage& s) {
  return s.data == nullptr && s.charged == 0 &&
         s.pending.load(std::memory_order_relaxed) == nullptr;
}

}  // namespace

void Stream::record(const Pointwise& p, const TensorBase& out) {
  Storage& target = out.storage();
  StreamHandle current = device_.is_cpu() ? nullptr : current_stream(device_.index);
  RegClass cls = compute_class(*p.op, *p.body, p.common);
  SourceRef source = called_at();
  if (device_.is_cpu()) {
    ensure_arrived(target);
    for (int k = 0; k < p.num_sources; ++k)
      if (p.sources[k].tensor) ensure_arrived(p.sources[k].tensor->storage());
  } else if (is_fresh(target)) {
    charge(target);
  } else {
    reserve(p, target);
  }
  auto lock = admit(current);
  PendingOp& op = begin(p.op, std::move(source));
  Undo undo{*this, &op};
  op.body = p.body;
  op.cls = cls;
  op.common = p.common;
  op.result = p.result;
  op.num_sources = static_cast<uint8_t>(p.num_sources);
  op.num_scalars = static_cast<uint8_t>(p.num_scalars);
  op.shape = *p.shape;
  op.numel = out.numel();
  for (int k = 0; k < p.num_scalars; ++k) op.scalars[k] = p.scalars[k];
  for (int k = 0; k < p.num_sources; ++k) {
    op.immediate[k] = p.sources[k].tensor == nullptr;
    op.wide[k] = p.sources[k].wide;
    if (op.immediate[k])
      op.immediates[k] = p.sources[k].immediate;
    else
      add_operand(op.sources[k], *p.sources[k].tensor, op.shape, false);
  }
  add_operand(op.out, out, op.shape, true);
  target.writer = &op;
  ops_.push_back(&op);
  undo.op = nullptr;
  ++stats_.recorded;
}

void Stream::record(KernelCall call) {
  StreamHandle current = device_.is_cpu() ? nullptr : current_stream(device_.index);
  SourceRef source = called_at();
  for (const TensorBase& t : call.inputs)
    if (device_.is_cpu()) ensure_arrived(t.storage());
  for (const TensorBase& t : call.outputs)
    if (device_.is_cuda() && is_fresh(t.storage())) charge(t.storage());
  auto lock = admit(current);
  PendingOp& op = begin(nullptr, std::move(source));
  Undo undo{*this, &op};
  op.kernel = std::make_unique<PendingKernel>();
  PendingKernel& k = *op.kernel;
  k.name = call.name;
  k.body = call.body;
  k.ints.assign(call.ints.begin(), call.ints.end());
  k.doubles.assign(call.doubles.begin(), call.doubles.end());
  k.rows = call.rows;
  k.inputs.resize(call.inputs.size());
  k.outputs.resize(call.outputs.size());
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    k.inputs[i].shape = call.inputs[i].sizes();
    add_operand(k.inputs[i], call.inputs[i], k.inputs[i].shape, false);
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    k.outputs[i].shape = call.outputs[i].sizes();
    add_operand(k.outputs[i], call.outputs[i], k.outputs[i].shape, true);
    call.outputs[i].storage().writer = &op;
  }
  ops_.push_back(&op);
  undo.op = nullptr;
  ++stats_.recorded;
}

void Stream::run_for_read(Storage& storage, Reason reason) {
  BlockingScope scope;
  std::lock_guard lock(mutex_);
  run_for_locked(storage, false, reason);
}

void Stream::run_for_reads(std::span<const TensorBase> tensors, Reason reason) {
  BlockingScope scope;
  std::lock_guard lock(mutex_);
  std::vector<Storage*> wanted;
  for (const TensorBase& t : tensors)
    if (Storage& s = t.storage();
        s.pending.load(std::memory_order_acquire) == this && s.pending_writes > 0)
      wanted.push_back(&s);
  if (wanted.size() == 1) return run_for_locked(*wanted[0], false, reason);
  if (wanted.empty()) return;
  drop_dead();
  run_slice(wanted, false, reason);
}

void Stream::run_for_write(Storage& storage, Reason reason) {
  BlockingScope scope;
  std::lock_guard lock(mutex_);
  run_for_locked(storage, true, reason);
}

void Stream::run_all(Reason reason) {
  Parked most = Parked::kNo;
  if (raises(reason)) most = Parked::kFailed;
  if (reason == Reason::kMemory) most = Parked::kReported;  // it may free more than it takes
  flush(reason, most);
}

void Stream::flush(Reason reason, Parked most) {
  if (running_here()) return;  // the allocator asks while we run: nothing more can be done
  // With nothing to run there is nothing to wait for, and others need not be let in.
  if (std::unique_lock quick(mutex_, std::try_to_lock); quick && ops_.empty()) return;
  BlockingScope scope;
  std::lock_guard lock(mutex_);
  if (std::exception_ptr error = run_all_locked(reason, most); error && raises(reason)) {
    report_failed();
    std::rethrow_exception(error);
  }
}

bool Stream::leave(std::thread::id thread) {
  std::lock_guard lock(mutex_);
  if (owner_ != thread) return false;
  if (ops_.empty()) owner_ = {};  // a later thread may be given the same id
  return !ops_.empty();
}

void Stream::run_left_by(std::thread::id thread) {
  std::lock_guard lock(mutex_);
  if (owner_ != thread) return;
  owner_ = {};
  (void)run_all_locked(Reason::kThreadExit, Parked::kNo);
}

void Stream::lock_for_fork() noexcept {
  mutex_.lock();
  try {
    (void)run_all_locked(Reason::kFork, Parked::kNo);
  } catch (...) {
  }
}

void Stream::unlock_in_child() {
  if (!ops_.empty()) owner_ = std::this_thread::get_id();
  mutex_.unlock();
}

// A value nobody owns any more and no live operator touches is never computed. Backwards, so that a
// chain of such values goes as a whole; without this a dead reader would keep its inputs in memory.
void Stream::drop_dead() {
  hidden_since_look_ = 0;
  ++run_number_;
  bool any = false;
  for (size_t i = ops_.size(); i-- > 0;) {
    PendingOp& op = *ops_[i];
    bool wanted = false;
    op.each_output([&](const PendingOperand& o, const Dims&) {
      wanted |= o.storage->run == run_number_ || o.storage->owned_outside();
    });
    if (!wanted) {
      op.done = any = true;
      ++stats_.dropped;
      continue;
    }
    auto touch = [this](const PendingOperand& o, const Dims&) { o.storage->run = run_number_; };
    op.each_output(touch);
    op.each_input(touch);
  }
  if (any) finish();
}

std::exception_ptr Stream::run_all_locked(Reason reason, Parked most) {
  drop_dead();
  for (PendingOp* op : ops_) op->failed = false;
  if (select_unparked(most) == 0) return nullptr;
  std::exception_ptr error = needs_pieces() ? run_in_pieces(reason, most) : run_selected(reason);
  parked_bytes_ = num_parked_ ? kept_bytes_ : 0;
  stop_guard();
  return error;
}

void Stream::run_for_locked(Storage& storage, bool for_write, Reason reason) {
  if (storage.pending.load(std::memory_order_acquire) != this) return;
  if (!for_write && storage.pending_writes == 0) return;
  Storage* const only = &storage;
  // An operator whose result is read as soon as it is recorded is not dead.
  if (ops_.size() != 1 || storage.writer != ops_[0] || !storage.owned_outside()) drop_dead();
  run_slice({&only, 1}, for_write, reason);
}

void Stream::run_slice(std::span<Storage* const> storages, bool for_write, Reason reason) {
  auto is_pending = [&] {
    for (const Storage* s : storages)
      if (for_write ? s->pending.load(std::memory_order_relaxed) == this : s->pending_writes > 0)
        return true;
    return false;
  };
  if (!is_pending()) return;  // its last readers were dropped
  for (PendingOp* op : ops_) op->failed = false;
  if (ops_.size() == 1) {
    ops_[0]->selected = true;
  } else {
    select_for(storages, for_write);
    if (!slice_keeps_peak()) {
      (void)run_all_locked(reason, Parked::kNo);  // results that do not fit stay pending
      if (!is_pending()) return;
      select_for(storages, for_write);
    }
  }
  std::exception_ptr error = run_selected(reason);
  if (!error || !is_pending()) return;
  report_failed();
  std::rethrow_exception(error);
}

// Backwards from the end: an operator is needed if it writes what a needed one reads or writes, or
// reads what a needed one writes.
void Stream::select_for(std::span<Storage* const> storages, bool for_write) {
  enum : uint32_t { kRead = 1, kWritten = 2 };
  ++run_number_;
  auto marks = [this](Storage* s) -> uint32_t& {
    if (s->run != run_number_) {
      s->run = run_number_;
      s->slot = 0;
    }
    return s->slot;
  };
  for (Storage* s : storages) marks(s) = for_write ? kRead | kWritten : kRead;
  for (size_t i = ops_.size(); i-- > 0;) {
    PendingOp& op = *ops_[i];
    bool needed = false;
    op.each_output([&](const PendingOperand& o, const Dims&) { needed |= marks(o.storage) != 0; });
    op.each_input([&](const PendingOperand& o, const Dims&) {
      needed |= (marks(o.storage) & kWritten) != 0;
    });
    op.selected = needed;
    if (!needed) continue;
    op.each_output([&](const PendingOperand& o, const Dims&) { marks(o.storage) |= kWritten; });
    op.each_input([&](const PendingOperand& o, const Dims&) { marks(o.storage) |= kRead; });
  }
}

// Note [Parked operators]
// A run that is out of memory affects only the results that it could not store. Then each result
// that the program holds runs by itself, with what it needs and nothing else. Operators whose
// result still has no memory, and those that need it, are parked: they stay in the stream, and runs
// for other reasons leave them out. They run when their value is read, or memory that they read is
// to be written; that raises if memory is still out. An explicit synchronisation tries them once
// more and raises once.
bool Stream::raises(Reason reason) {
  return reason == Reason::kSynchronize || reason == Reason::kUser || reason == Reason::kCapture;
}

std::exception_ptr Stream::run_selected(Reason reason) {
  ++stats_.runs[static_cast<size_t>(reason)];
  last_run_.clear();
  return attempt();
}

std::exception_ptr Stream::attempt() {
  struct Running {
    Stream& s;
    ~Running() {
      s.finish();
      s.running_.store(std::thread::id());
    }
  } running{*this};
  running_.store(std::this_thread::get_id());
  try {
    runner_->run();
    return nullptr;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kOutOfMemory) throw;
    std::exception_ptr error = std::current_exception();
    runner_->drop_references();
    for (PendingOp* op : ops_) op->failed |= op->selected && !op->done;
    finish();
    salvage();
    return error;
  }
}

// Runs each result of the failed run by itself and parks the operators that remain. In program
// order, so that a result's inputs come before it.
void Stream::salvage() {
  std::vector<Storage*> wanted;
  for (PendingOp* op : ops_)
    if (op->failed)
      op->each_output([&](const PendingOperand& o, const Dims&) {
        if (o.storage->writer == op && o.storage->owned_outside()) wanted.push_back(o.storage);
      });
  std::vector<const void*> hopeless;  // their own result has no memory
  for (Storage* s : wanted) {
    if (s->pending_writes == 0) continue;
    select_for({&s, 1}, false);
    bool known = false;
    for (const PendingOp* op : ops_)
      known |= op->selected && std::find(hopeless.begin(), hopeless.end(), op) != hopeless.end();
    try {
      if (!known) runner_->run();
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kOutOfMemory) throw;
      runner_->drop_references();
      hopeless.push_back(s->writer);
    }
    finish();
  }
  for (PendingOp* op : ops_) {
    if (!op->failed || op->parked != Parked::kNo) continue;
    op->parked = Parked::kFailed;
    ++num_parked_;
  }
}

void Stream::report_failed() {
  for (PendingOp* op : ops_)
    if (op->failed) op->parked = Parked::kReported;
}

// Selects the operators that are parked at most as `most` says and need no other parked one. Those
// that need one are parked too.
size_t Stream::select_unparked(Parked most) {
  size_t selected = 0;
  enum : uint32_t { kRead = 1, kWritten = 2 };
  ++run_number_;
  auto marks = [this](Storage* s) -> uint32_t& {
    if (s->run != run_number_) {
      s->run = run_number_;
      s->slot = 0;
    }
    return s->slot;
  };
  const bool any = num_parked_ > 0;
  for (PendingOp* op : ops_) {
    bool blocked = op->parked > most || op->failed;
    if (any && !blocked) {
      op->each_output(
          [&](const PendingOperand& o, const Dims&) { blocked |= marks(o.storage) != 0; });
      op->each_input([&](const PendingOperand& o, const Dims&) {
        blocked |= (marks(o.storage) & kWritten) != 0;
      });
    }
    op->selected = !blocked;
    selected += !blocked;
    if (!blocked) continue;
    if (op->parked == Parked::kNo) {
      op->parked = Parked::kFailed;
      ++num_parked_;
    }
    op->each_output([&](const PendingOperand& o, const Dims&) { marks(o.storage) |= kWritten; });
    op->each_input([&](const PendingOperand& o, const Dims&) { marks(o.storage) |= kRead; });
  }
  return selected;
}

// Another stream becomes current while operators are parked: they will run there, so their inputs
// must be complete, and must not be reused before that stream has read them.
void Stream::adopt_parked(StreamHandle current) {
  if (device_.is_cpu()) return;
  check(backend_of(device_).stream_synchronize(device_.index, stream_),
        "waiting for the inputs of deferred operators");
  auto share = [current](const PendingOperand& o, const Dims&) {
    if (o.storage->data) memory::record_stream(*o.storage, current);
  };
  for (PendingOp* op : ops_) {
    op->each_input(share);
    op->each_output(share);
  }
}

// Takes operators that have run out of the stream.
void Stream::finish() {
  size_t kept = 0, parked = 0;
  for (PendingOp* op : ops_) {
    op->selected = false;
    if (!op->done) {
      ops_[kept++] = op;
      parked += op->parked != Parked::kNo;
      continue;
    }
    op->each_output([op](const PendingOperand& o, const Dims&) {
      if (o.storage->writer == op) o.storage->writer = nullptr;
    });
    op->id = -1;
    op->each_output([this](const PendingOperand& o, const Dims&) { drop_operand(o, true); });
    op->each_input([this](const PendingOperand& o, const Dims&) { drop_operand(o, false); });
    op->kernel.reset();
    free_.push_back(op);
  }
  if (kept == ops_.size()) return;
  ops_.resize(kept);
  num_parked_ = parked;
  unstored_in_plan_ = 0;
  if (parked == 0) parked_bytes_ = 0;
  if (kept > 0) return;
  planned_before_ = 0;
  stop_guard();
}

// No operator is pending that counts on room.
void Stream::stop_guard() {
  if (!guards_room_.load(std::memory_order_relaxed)) return;
  guards_room_.store(false, std::memory_order_relaxed);
  memory::guard_room(device_.index, false);
}

void Stream::release_outside(Storage* s) {
  if (running_here()) {  // a handle that the run itself made; the stream holds a reference still
    s->unref();
    return;
  }
  std::unique_lock lock(mutex_);
  if (s->unref()) {
    lock.unlock();
    delete s;
    return;
  }
  if (s->pending.load(std::memory_order_relaxed) != this || s->owned_outside()) return;
  // Only pending work keeps it now: as far as the program can see, it is freed.
  if (s->charged) {
    memory::set_unstored(device_.index, s->charged);
    s->charged = 0;
    s->hidden = true;
  } else if (s->data && !s->hidden) {
    s->hidden = true;
    kept_bytes_ += s->nbytes;
    hidden_since_look_ += s->nbytes;
    if (device_.is_cuda()) memory::hide(device_.index, s->nbytes);
  }
  // A model that was let go of: the last step of its optimizer is for nobody.
  if (hidden_since_look_ < std::max(kWorthALook, kept_bytes_ / 4)) return;
  drop_dead();
}

Stats Stream::stats() {
  std::lock_guard lock(mutex_);
  return stats_;
}
void Stream::reset_stats() {
  std::lock_guard lock(mutex_);
  stats_ = Stats();
}
// Readable code, one line an operator.
std::string Stream::last_run_text() const {
  std::string text;
  for (const Line& l : last_run_) {
    if (l.opens_group) text += cat("group over ", l.numel, " elements on ", device_, "\n");
    text += cat("  v", l.id, " = ", l.name, "(");
    for (int k = 0; k < l.num_sources; ++k) {
      if (k) text += ", ";
      if (l.sources[k] >= 0)
        text += cat("v", l.sources[k]);
      else
        text += l.sources[k] == -1 ? "load" : "number";
    }
    text += cat(") : ", dtype_name(l.dtype), l.stored ? "  -> stored" : "");
    if (l.source) text += cat("  # ", l.source.text());
    text += "\n";
  }
  return text;
}
std::string Stream::explain() {
  std::lock_guard lock(mutex_);
  return last_run_text();
}
size_t Stream::pending_ops() {
  std::lock_guard lock(mutex_);
  return ops_.size();
}

}  // namespace tessera::fuse
