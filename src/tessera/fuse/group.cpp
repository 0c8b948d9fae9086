#include "tessera/fuse/group.h"

#include <algorithm>

namespace tessera::fuse {

GroupRunner::GroupRunner(Stream& stream, const std::vector<bool>& selected)
    : stream_(stream), ops_(stream.ops_), selected_(selected), group_of_(ops_.size(), -1) {
  form_groups();
  decide_stores();
}

// The lowest group operator i may join; see Note [Grouping].
int GroupRunner::lowest_group(int i) const {
  const PendingOp& op = ops_[i];
  int lowest = 0;
  for (int j = 0; j < i; ++j) {
    if (group_of_[j] < 0) continue;
    const PendingOp& earlier = ops_[j];
    int after = group_of_[j] + 1;
    for (int k = 0; k < op.num_sources; ++k) {  // read after write
      if (op.immediate[k] || op.sources[k].storage != earlier.out.storage) continue;
      bool in_register = op.sources[k].value == earlier.id && op.shape == earlier.shape;
      // An earlier value of the storage that a later operator has overwritten in the same place
      // does not bind: that later one does.
      bool overwritten = op.sources[k].value > earlier.id;
      if (overwritten) {
        const PendingOp* w = stream_.find(op.sources[k].value);
        overwritten = w && same_place(earlier.out, earlier.shape, w->out, w->shape);
      }
      lowest = std::max(lowest, in_register || overwritten ? group_of_[j] : after);
    }
    for (int k = 0; k < earlier.num_sources; ++k) {  // write after read
      if (earlier.immediate[k] || earlier.sources[k].storage != op.out.storage) continue;
      bool same = same_place(op.out, op.shape, earlier.sources[k], earlier.shape);
      lowest = std::max(lowest, same ? group_of_[j] : after);
    }
    if (earlier.out.storage == op.out.storage) {  // write after write
      bool same = same_place(op.out, op.shape, earlier.out, earlier.shape);
      lowest = std::max(lowest, same ? group_of_[j] : after);
    }
  }
  return lowest;
}

void GroupRunner::form_groups() {
  for (int i = 0; i < static_cast<int>(ops_.size()); ++i) {
    if (!selected_[i]) continue;
    const PendingOp& op = ops_[i];
    int needs = op.num_sources + 1;  // memory operands it may add, at most
    int g = lowest_group(i);
    while (g < static_cast<int>(groups_.size()) &&
           !(groups_[g].shape == op.shape && groups_[g].operands + needs <= kOperandCap))
      ++g;
    if (g == static_cast<int>(groups_.size())) groups_.push_back({op.shape, op.numel, {}, {}, 0});
    groups_[g].ops.push_back(i);
    groups_[g].operands += needs;
    group_of_[i] = g;
  }
}

// A result goes to memory iff it is its group's last word on the storage and somebody looks there
// later: an owner outside, another group, or an operator that stays pending.
void GroupRunner::decide_stores() {
  live_.assign(ops_.size(), 0);
  auto touches = [](const PendingOp& op, const Storage* s) {
    if (op.out.storage == s) return true;
    for (int k = 0; k < op.num_sources; ++k)
      if (!op.immediate[k] && op.sources[k].storage == s) return true;
    return false;
  };
  for (size_t g = groups_.size(); g-- > 0;) {
    Group& group = groups_[g];
    group.store.assign(group.ops.size(), 0);
    for (size_t n = group.ops.size(); n-- > 0;) {
      int i = group.ops[n];
      const PendingOp& op = ops_[i];
      bool last = true;
      bool used = op.out.storage->owned_outside();
      for (size_t j = static_cast<size_t>(i) + 1; j < ops_.size(); ++j) {
        const PendingOp& later = ops_[j];
        if (!touches(later, op.out.storage)) continue;
        if (group_of_[j] == static_cast<int>(g)) last &= later.out.storage != op.out.storage;
        // Another group's dead operator does not count; one that stays pending does.
        else used |= group_of_[j] < 0 || live_[j];
      }
      group.store[n] = last && used;
      if (group.store[n]) live_[i] = 1;
      if (!live_[i]) continue;
      for (int k = 0; k < op.num_sources; ++k) {
        if (op.immediate[k] || op.sources[k].value < 0) continue;
        const PendingOp* w = stream_.find(op.sources[k].value);
        if (w) live_[static_cast<size_t>(w - ops_.data())] = 1;
      }
    }
  }
}

void GroupRunner::run(std::vector<bool>& done) {
  stream_.explanation_.clear();
  for (const Group& g : groups_) {
    int live = 0;
    for (int i : g.ops) live += live_[i];
    if (live > 0) {
      run_group(g);
      ++stream_.stats_.groups;
      stream_.stats_.fused_groups += live > 1;
      stream_.stats_.largest_group = std::max<int64_t>(stream_.stats_.largest_group, live);
    }
    stream_.stats_.dropped += static_cast<int64_t>(g.ops.size()) - live;
    for (int i : g.ops) done[i] = true;
  }
}

}  // namespace tessera::fuse
