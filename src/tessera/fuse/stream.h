// The pending stream of a device: operators recorded and not run yet, in program order.
//
// Note [What is pending]
// Each recorded operator has an id. Its operands are pieces of storages; an operand whose content
// is exactly the result of an earlier pending operator, element for element, also names that
// operator
// (`value`), so that both may run in one group with the value in a register. Everything else is
// read from and written to memory, and the order of groups follows the storages: reads after
// writes, writes after reads, writes after writes (see group.h).
#pragma once
#include <array>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tessera/base/mutex.h"
#include "tessera/base/source.h"
#include "tessera/driver/backend.h"
#include "tessera/fuse/pending.h"
#include "tessera/tensor/outcome.h"

namespace tessera::fuse {

enum class Reason : uint8_t {
  kHostRead,
  kConsumer,  // an operator that is not pointwise reads it
  kWrite,     // an in-place write that runs at once
  kExposed,   // somebody asked for the address
  kThread,    // used from another thread
  kThreadExit,
  kFork,
  kStream,  // another stream or device became current
  kRecordStream,
  kEvent,
  kSynchronize,
  kMemory,  // the allocator needs what pending work holds
  kOpCap,
  kInputCap,
  kByteBudget,
  kUser,
  kCapture,  // begin, end and replay of a captured graph
  kCount,
};
const char* reason_name(Reason r);

// Operators that may be pending, and those of one group: long kernels take long to compile.
inline constexpr int kPendingCap = 256;
inline constexpr int kOpCap = 64;
// Distinct memory operands of one group: a kernel's parameters have to hold their descriptions.
inline constexpr int kOperandCap = 32;
// Bytes that only pending work keeps alive.
inline constexpr size_t kByteBudget = size_t{256} << 20;
// So many more of them, and a quarter more, and it is looked whether that work is for anybody.
inline constexpr size_t kWorthALook = size_t{8} << 20;

struct Stats {
  int64_t recorded = 0;
  int64_t dropped = 0;  // never computed: nobody owned the result any more
  int64_t groups = 0;
  int64_t fused_groups = 0;  // of two or more operators
  int64_t largest_group = 0;
  std::array<int64_t, static_cast<size_t>(Reason::kCount)> runs{};
};

// A kernel to record; what it is given lives until record returns.
struct KernelCall {
  const char* name;
  const ReduceBody* body = nullptr;  // a reduction over `ints`
  std::span<const TensorBase> outputs, inputs;
  std::span<const int64_t> ints;
  std::span<const double> doubles;
  Rows rows;
};

class Stream {
 public:
  explicit Stream(Device device);
  ~Stream();

  // Records `p`, whose result goes to `out` (fresh and without memory, or written in place).
  void record(const Pointwise& p, const TensorBase& out);
  // Records a kernel, whose results go to `outputs`: fresh and without memory.
  void record(KernelCall call);
  // Runs what `storage`'s content needs.
  void run_for_read(Storage& storage, Reason reason);
  // Runs what all of these need, together: what is alike then shares a launch.
  void run_for_reads(std::span<const TensorBase> tensors, Reason reason);
  // Runs everything that reads or writes `storage`, so that it may be written at once.
  void run_for_write(Storage& storage, Reason reason);
  void run_all(Reason reason);
  // Called before `bytes` of memory are allocated for a tensor; see Note [Peak].
  void make_room(size_t bytes);
  // Called before operators that write `targets` and read `sources` are recorded; see Note [Memory
  // of writes]. Raises if memory for them is out; then nothing has been written.
  void reserve(std::span<const TensorBase> targets, std::span<const TensorBase> sources);
  // A thread ends. False if none of what is pending is its own; else run_left_by has to follow.
  bool leave(std::thread::id thread);
  void run_left_by(std::thread::id thread);
  // Drops one outside reference; see release_pending_storage.
  void release_outside(Storage* storage);

  Device device() const { return device_; }
  Stats stats();
  void reset_stats();
  std::string explain();
  size_t pending_ops();
  // Locks the stream for a fork and runs what is pending; see Note [Locks during a fork]. Work that
  // fails stays pending, and reading its result raises the error.
  void lock_for_fork() noexcept;
  void unlock_after_fork() { mutex_.unlock(); }
  // The child's one thread becomes the owner of work that failed.
  void unlock_in_child();

 private:
  friend class GroupRunner;

  // One operator of the last run, for explain().
  struct Line {
    const char* name;
    int32_t id;
    int32_t sources[kMaxSources];  // ids; -1 a load, -2 a number
    uint8_t num_sources;
    DType dtype;
    bool stored;
    bool opens_group;
    int64_t numel;
    SourceRef source;
  };

  // These return the error of results for which memory was out; other errors they raise.
  [[nodiscard]] std::exception_ptr run_selected(Reason reason);
  [[nodiscard]] std::exception_ptr run_all_locked(Reason reason, Parked most);
  [[nodiscard]] std::exception_ptr attempt();
  void salvage();
  void report_failed();
  // Returns true if a run for this reason raises the error of results without memory.
  static bool raises(Reason reason);
  void flush(Reason reason, Parked most);
  void run_for_locked(Storage& storage, bool for_write, Reason reason);
  void run_slice(std::span<Storage* const> storages, bool for_write, Reason reason);
  void select_for(std::span<Storage* const> storages, bool for_write);
  size_t select_unparked(Parked most);
  size_t unparked() const { return ops_.size() - num_parked_; }
  void adopt_parked(StreamHandle current);

  // stream_memory.cpp
  void reserve(const Pointwise& p, Storage& target);
  void reserve_room(std::span<Storage* const> targets, std::span<Storage* const> sources);
  void reserve_memory(Storage& target);
  void stop_guard();
  bool exceeds_peak(size_t bytes);
  bool slice_keeps_peak();
  size_t select_piece(std::span<PendingOp* const> ops);
  bool beyond_memory() const;
  bool needs_pieces() const;
  [[nodiscard]] std::exception_ptr run_in_pieces(Reason reason, Parked most);
  // Waits until one more may be recorded; see Reason.
  std::unique_lock<Mutex> admit(StreamHandle current);
  PendingOp& begin(const Op* op, SourceRef source);
  void charge(Storage& target);
  // Undoes begin() and add_operand() where an exception leaves record().
  struct Undo {
    Stream& stream;
    PendingOp* op;
    ~Undo() {
      if (op) stream.undo(op);
    }
  };
  void undo(PendingOp* op) noexcept;
  void add_operand(PendingOperand& o, const TensorBase& t, const Dims& shape, bool is_write);
  void drop_operand(const PendingOperand& o, bool is_write);
  void drop_dead();
  void finish();
  std::string last_run_text() const;
  PendingOp* take_slot();
  bool running_here() const;

  const Device device_;
  Mutex mutex_;
  std::vector<PendingOp*> ops_;  // in program order
  // Slots keep their buffers from use to use. There is room for all of them, here and in ops_, so
  // that finish(), which destructors call, does not allocate.
  std::vector<PendingOp*> free_;
  std::vector<std::unique_ptr<PendingOp>> slots_;
  int32_t next_id_ = 0;
  uint32_t run_number_ = 0;
  size_t kept_bytes_ = 0;  // by pending work alone
  size_t hidden_since_look_ = 0;
  size_t num_parked_ = 0;
  size_t parked_bytes_ =
      0;  // of kept_bytes_, those kept when nothing but parked operators was left
  // See Note [Peak]: operators before this id were found to fit together; and the bytes of results
  // without memory that were found to need none.
  int32_t planned_before_ = 0;
  int64_t unstored_in_plan_ = 0;
  // Whether operators are pending that write existing tensors and count on room for their inputs.
  std::atomic<bool> guards_room_{false};
  std::thread::id owner_;
  StreamHandle stream_ = nullptr;
  std::atomic<std::thread::id> running_{};
  Stats stats_;
  std::vector<Line> last_run_;
  std::unique_ptr<class GroupRunner> runner_;
};

Stream& stream_of(Device device);

enum class Mode : uint8_t { kOff, kOn, kCheck };
Mode mode();
void set_mode(Mode m);
// Do operators on the device wait? A forked child has no GPU any more: there they run, and raise.
bool defers(Device device);
// Is the calling line taken down with each operator? On unless TESSERA_FUSE_LINES=0 (it costs 10 to
// 30 ns); always in check mode.
bool source_lines();
void set_source_lines(bool on);
// Operators of so few elements run when they are called, on the CPU, where nothing that they read
// or write is pending: that is faster than to wait. TESSERA_FUSE_TINY sets it; 0 in check mode.
int64_t tiny();
void set_tiny(int64_t elements);
// Arms what runs this thread's pending work when it ends.
void watch_this_thread();

// Runs pending work that a read (write) of this tensor's memory needs. Cheap when there is none.
inline void run_for_reading(const TensorBase& t, Reason reason) {
  Storage& s = t.storage();
  if (reason == Reason::kHostRead)
    TS_CHECK_IMPLEMENTED(!s.device.is_meta(), "Cannot copy out of meta tensor; no data!");
  ensure_arrived(s);
  if (Stream* p = s.pending.load(std::memory_order_acquire)) [[unlikely]]
    p->run_for_read(s, reason);
}
// The same. A read on the host also waits for collectives that write the tensor.
inline void ensure_readable(const TensorBase& t, Reason reason = Reason::kConsumer) {
  if (reason == Reason::kHostRead && has_marks()) [[unlikely]]
    check_outcome(t);
  run_for_reading(t, reason);
}
// The same of several tensors of one device.
inline void ensure_readable(std::span<const TensorBase> tensors) {
  Stream* pending = nullptr;
  for (const TensorBase& t : tensors) {
    ensure_arrived(t.storage());
    if (Stream* p = t.storage().pending.load(std::memory_order_acquire)) pending = p;
  }
  if (pending) pending->run_for_reads(tensors, Reason::kConsumer);
}
inline void ensure_writable(const TensorBase& t, Reason reason = Reason::kWrite) {
  Storage& s = t.storage();
  ensure_arrived(s);
  if (Stream* p = s.pending.load(std::memory_order_acquire)) [[unlikely]]
    p->run_for_write(s, reason);
}
// Every device's pending work.
void run_everything(Reason reason);
void run_device(int cuda_device, Reason reason);
// Marks the storage exposed for life and runs what touches it; returns the address.
void* expose(const TensorBase& t);

}  // namespace tessera::fuse
