// Which pending operators run together, and running them.
//
// Note [Grouping]
// Operators are taken in program order. Each has a lowest group it may join: a source that is the
// result of an operator in group g allows g itself (the value stays in a register) if the shapes
// agree; any other read of a storage written in group g needs g + 1; a write needs the group of
// every earlier reader and writer of the same elements in the same places, and one more where the
// places differ. It then joins the first group from there on with its shape and room for its
// operands. Groups run in order, so every edge holds. A kernel is a group by itself.
//
// Note [Joining]
// A kernel takes in the group that makes its input, if nobody else wants that, and the group that
// works on its output: they then run as one, in the kernel's place in the order. That is allowed if
// no group between the two touches what the one that moves reads or writes. Of a group that makes
// more than the kernel's input, what makes that and nothing else is split off.
//
// Note [Levels]
// Groups that do not touch each other's memory are handed to the backend together, which may run
// them in one launch: the steps of an optimizer, one group for each shape of parameter, are few
// kernels. A group's level is one above the highest of those that must come before it.
#pragma once
#include <deque>
#include <span>
#include <vector>

#include "tessera/fuse/stream.h"

namespace tessera::fuse {

// A group as the backend takes it; its buffers are kept from run to run.
struct Lowered {
  std::vector<Instr> instrs;
  std::vector<Imm> immediates;
  std::vector<RegClass> immediate_cls;
  std::vector<Operand> in;
  std::vector<GroupOutput> out;
  std::vector<PendingOp*> stored;
  std::vector<Dims> strides;
  Dims sizes;
  GroupProgram program;
};

struct Group {
  const Dims* shape;
  int64_t numel;
  std::vector<PendingOp*> ops;                // in program order
  std::vector<const PendingOperand*> inputs;  // distinct places in memory it reads
  int outputs;                                // results somebody outside owns
  int live;                                   // operators that run
  int level;
  size_t order;       // its place among the groups
  PendingOp* kernel;  // then it is the only operator
  // See Note [Joining]; `joined` runs as part of another.
  Group *before, *after;
  bool joined;
  bool hands_on;  // its output goes to `after` and nowhere else
  Lowered lowered;
  std::vector<TensorBase> reference;  // in check mode: of each operator, or each result of a kernel
};

// Where the operand begins; null if it has no memory.
char* address_of(const PendingOperand& o);

// One per stream; its buffers are kept from run to run.
class GroupRunner {
 public:
  explicit GroupRunner(Stream& stream) : stream_(stream) {}
  // Runs the selected operators group by group and marks what is done. A throw leaves the marks of
  // what did run.
  void run();
  // Frees the references of check mode that a run which raised has left.
  void drop_references();
  // Returns how many bytes a run of the selected operators would allocate.
  int64_t bytes_to_store();

 private:
  // What a run knows of a storage.
  struct Slot {
    PendingOp* writer;  // the last one so far
    // Highest group of those that read the last writer's value in its place, and of those that read
    // memory; the latter's place while it is one and the same.
    int register_readers;
    int memory_readers;
    const PendingOperand* memory_place;
    const Dims* memory_shape;
    bool mixed_places;
    // Looking backwards: groups of later live operators that touch it, and of later writers.
    int first_touch, last_touch;
    int first_writer;
    bool touched_by_pending;
    bool counted;  // by bytes_to_store()
    // Levels of the groups that read and wrote it last.
    int read_level, write_level;
  };

  Slot& slot_of(Storage& s);
  void run_lone(PendingOp& op);
  void decide_groups();
  void form_groups();
  int lowest_group(const PendingOp& op);
  void note_in_slots(PendingOp& op);
  void decide_stores();
  void decide_kernel(PendingOp& op);
  void touch(Storage& storage, int group);
  Group& new_group();
  bool joins(const Group& g, size_t index, const PendingOp& op) const;
  void add_inputs(Group& g, const PendingOp& op);
  void add_to(Group& g, PendingOp& op);
  bool in_register(const PendingOperand& o, int group) const;
  void find_levels();
  void run_level(std::span<Group* const> groups);
  void run_pointwise(std::span<Group* const> groups);
  void run_lowered(std::span<Group* const> groups);
  void run_one_by_one(const Group& g);
  void lower(Group& g, bool with_memory);
  void place(Group& g);
  void place_rows(Group& g, const Rows& rows);
  void allocate_result(const PendingOperand& o, const PendingOp& of);
  void explain(const Group& g, bool opens = true);
  bool checks() const;
  void check_group(const Group& g, std::vector<TensorBase>& reference,
                   const TensorBase* joined = nullptr, const Storage* joined_storage = nullptr);

  // join.cpp
  void join_kernels();
  Group* producer_of(Group& kernel);
  Group* split_off(Group& g, PendingOp& made);
  void collect_inputs(Group& g);
  Group* consumer_of(Group& kernel);
  bool is_wanted(const Storage& storage, const Group& by, const Group& besides);
  bool touched_between(const Group& moved, size_t from, size_t to) const;
  // kernel.cpp
  void run_kernel(Group& g);
  void run_kernels(std::span<Group* const> groups);
  void prepare_kernel(Group& g);
  void run_prepared(Group& g, Exec exec);
  void finish_kernel(Group& g, Exec exec);
  void place_company(Group& g, bool with_memory);
  bool can_join(Group& g);
  bool run_joined(Group& g, Exec exec);
  void run_apart(Group& g, Exec exec);
  Status run_alone(Group& g, Exec exec);
  void check_kernel(Group& g);
  void compare_kernel(Group& g, Exec exec);

  Stream& stream_;
  std::deque<Group> groups_;  // pointers to them stay
  size_t num_groups_ = 0;
  std::vector<Slot> slots_;
  std::vector<Group*> order_;  // by level
  std::vector<const GroupProgram*> programs_;
};

}  // namespace tessera::fuse
