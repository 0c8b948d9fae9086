#include "block.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "fiber.h"
#include "options.h"

namespace emulator {
namespace {

constexpr unsigned kWarp = 32;
// What a shuffle gives that reads a lane which takes no part: nobody should go on with it.
constexpr unsigned long long kUndefined = 0xfff7ababfff7ababull;

struct Thread {
  enum class Status { kReady, kAtBlock, kAtWarp, kDone };
  Status status = Status::kReady;
  Index3 index{};
  std::unique_ptr<Fiber> fiber;
  // Of the warp operation it waits in.
  WarpOp op{};
  unsigned mask = 0;
  unsigned long long value = 0;
  int from = 0;
};

// One for each thread of the host that runs kernels; stacks are kept for the next block.
class Block {
 public:
  const char* run(State& state, KernelEntry entry, void** arguments) {
    state_ = &state;
    entry_ = entry;
    arguments_ = arguments;
    const Index3 n = state.block_dim;
    count_ = alive_ = n.x * n.y * n.z;
    at_block_ = 0;
    votes_ = 0;
    while (threads_.size() < count_) {
      threads_.emplace_back();
      threads_.back().fiber = std::make_unique<Fiber>();
    }
    order_.resize(count_);
    std::iota(order_.begin(), order_.end(), 0u);
    if (options().shuffle) std::shuffle(order_.begin(), order_.end(), random_);
    for (unsigned i = 0; i < count_; ++i) {
      Thread& t = threads_[i];
      t.status = Thread::Status::kReady;
      t.index = {i % n.x, i / n.x % n.y, i / n.x / n.y};
      t.fiber->start(&begin, this);
    }
    while (alive_ > 0) {
      bool any = false;
      for (unsigned i : order_) {
        if (threads_[i].status != Thread::Status::kReady) continue;
        any = true;
        current_ = i;
        state.thread = threads_[i].index;
        threads_[i].fiber->resume();
      }
      if (!any) return why_stuck();
    }
    return nullptr;
  }

  int sync_block(int predicate) {
    votes_ += predicate != 0;
    ++at_block_;
    threads_[current_].status = Thread::Status::kAtBlock;
    wait_unless(release_block());
    return result_of_votes_;
  }

  unsigned long long warp(WarpOp op, unsigned mask, unsigned long long value, int from) {
    Thread& t = threads_[current_];
    if (!(mask >> current_ % kWarp & 1))
      end_kernel("a warp operation whose mask does not name the thread that calls it");
    t.op = op;
    t.mask = mask;
    t.value = value;
    t.from = from;
    t.status = Thread::Status::kAtWarp;
    wait_unless(release_warp(current_));
    return t.value;
  }

  unsigned active_mask() const { return 1u << current_ % kWarp; }

 private:
  static void begin(void* self) { static_cast<Block*>(self)->thread(); }
  void thread() {
    entry_(arguments_, 0);
    unsigned me = current_;
    threads_[me].status = Thread::Status::kDone;
    --alive_;
    // Those that waited for it alone go on.
    release_block();
    unsigned first = me / kWarp * kWarp;
    for (unsigned i = first; i < first + kWarp && i < count_; ++i)
      if (threads_[i].status == Thread::Status::kAtWarp) release_warp(i);
    threads_[me].fiber->pause();
  }

  void wait_unless(bool released) {
    if (released) return;
    threads_[current_].fiber->pause();
  }

  bool release_block() {
    if (alive_ == 0 || at_block_ < alive_) return false;
    for (unsigned i = 0; i < count_; ++i)
      if (threads_[i].status == Thread::Status::kAtBlock)
        threads_[i].status = Thread::Status::kReady;
    at_block_ = 0;
    result_of_votes_ = votes_;
    votes_ = 0;
    return true;
  }

  // If all that its mask names, and that have not ended, wait in the same operation.
  bool release_warp(unsigned thread) {
    const Thread& t = threads_[thread];
    unsigned first = thread / kWarp * kWarp, members = 0, ballot = 0;
    unsigned long long values[kWarp];
    for (unsigned lane = 0; lane < kWarp && first + lane < count_; ++lane) {
      if (!(t.mask >> lane & 1)) continue;
      const Thread& other = threads_[first + lane];
      if (other.status == Thread::Status::kDone) continue;
      if (other.status != Thread::Status::kAtWarp || other.mask != t.mask || other.op != t.op)
        return false;
      members |= 1u << lane;
      values[lane] = other.value;
      if (other.value != 0) ballot |= 1u << lane;
    }
    for (unsigned lane = 0; lane < kWarp; ++lane) {
      if (!(members >> lane & 1)) continue;
      Thread& other = threads_[first + lane];
      other.status = Thread::Status::kReady;
      if (other.op == WarpOp::kBallot) other.value = ballot;
      if (other.op == WarpOp::kShuffle)
        other.value = members >> other.from & 1 ? values[other.from] : kUndefined;
    }
    return true;
  }

  const char* why_stuck() const {
    bool at_warp = false;
    for (unsigned i = 0; i < count_; ++i) at_warp |= threads_[i].status == Thread::Status::kAtWarp;
    return at_warp ? "threads of a warp wait for others that never come (__shfl, __syncwarp, ...)"
                   : "threads wait at __syncthreads() for others that never come";
  }

  State* state_ = nullptr;
  KernelEntry entry_ = nullptr;
  void** arguments_ = nullptr;
  std::vector<Thread> threads_;
  std::vector<unsigned> order_;
  std::mt19937_64 random_{options().seed};
  unsigned count_ = 0, alive_ = 0, at_block_ = 0, current_ = 0;
  int votes_ = 0, result_of_votes_ = 0;
};

thread_local std::unique_ptr<Block> t_block;

constexpr Runtime kRuntime = {
    [](int predicate) { return t_block->sync_block(predicate); },
    [](WarpOp op, unsigned mask, unsigned long long value, int from) {
      return t_block->warp(op, mask, value, from);
    },
    [] { return t_block->active_mask(); },
    [](const char* why) { end_kernel(why); },
};

}  // namespace

const char* run_block(State& state, KernelEntry entry, void** arguments) {
  if (!t_block) t_block = std::make_unique<Block>();
  return t_block->run(state, entry, arguments);
}
void abandon_block() { t_block.reset(); }
const Runtime& runtime() { return kRuntime; }

}  // namespace emulator
