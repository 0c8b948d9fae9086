// Which pending operators run together, and running them.
//
// Note [Grouping]
// Operators are taken in program order. Each has a lowest group it may join: a source that is the
// result of an operator in group g allows g itself (the value stays in a register) if the shapes
// agree; any other read of a storage written in group g needs g + 1; a write needs the group of every
// earlier reader and writer of the same elements in the same places, and one more where the places
// differ. It then joins the first group from there on with its shape and room for its operands.
// Groups run in order, so every edge holds.
#pragma once
#include <vector>

#include "tessera/fuse/stream.h"

namespace tessera::fuse {

struct Group {
  Dims shape;
  int64_t numel;
  std::vector<int> ops;     // positions in the stream, in program order
  std::vector<char> store;  // beside ops: its result goes to memory
  int operands = 0;
};

class GroupRunner {
 public:
  GroupRunner(Stream& stream, const std::vector<bool>& selected);
  // Runs group by group; `done` gets the operators whose results are there (or that were dropped).
  // A throw leaves `done` true for what did run.
  void run(std::vector<bool>& done);

 private:
  void form_groups();
  void decide_stores();
  int lowest_group(int i) const;
  void run_group(const Group& g);
  void check_group(const Group& g, std::vector<TensorBase>& reference);
  std::string describe(const Group& g) const;

  Stream& stream_;
  std::vector<PendingOp>& ops_;
  const std::vector<bool>& selected_;
  std::vector<int> group_of_;  // -1: not selected
  std::vector<Group> groups_;
  std::vector<char> live_;
};

// Same storage, same elements, in the same order of iteration.
bool same_place(const PendingOperand& a, const Dims& shape_a, const PendingOperand& b,
                const Dims& shape_b);

}  // namespace tessera::fuse
