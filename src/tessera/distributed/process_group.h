// Processes that call collectives together.
//
// Note [Deadlines and deaths]
// Every collective has a sequence number in its group. Engines end a call when the group's timeout
// has passed or a connection is lost; a death that the job's monitor reports ends it at once. The
// error names the rank, the collective and the sequence number; the group is of no use afterwards,
// and later calls fail when they are made.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tessera/distributed/group_backend.h"
#include "tessera/distributed/store.h"

namespace tessera::distributed {

class Job;
struct Fate;

class ProcessGroup {
 public:
  struct Options {
    std::string name;
    std::vector<int> ranks;  // of the members in the world
    int rank = 0;            // among them
    Milliseconds timeout{};
  };
  ProcessGroup(std::shared_ptr<Job> job, Options options);
  ~ProcessGroup();

  int rank() const { return options_.rank; }
  int size() const { return static_cast<int>(options_.ranks.size()); }
  const std::string& name() const { return options_.name; }
  const std::vector<int>& ranks() const { return options_.ranks; }
  Milliseconds timeout() const { return Milliseconds(timeout_.load()); }
  void set_timeout(Milliseconds t) { timeout_ = t.count(); }
  int64_t sequence_number() const { return sequence_; }
  // The last collective that was done, with all before it.
  int64_t finished() const;
  const std::shared_ptr<Job>& job() const { return job_; }
  // "gloo", or "cpu:gloo,cuda:nccl" where devices have different ones.
  std::string backend_name() const;
  void add_backend(DeviceType type, std::shared_ptr<GroupBackend> backend);

  // Peers are ranks of this group. Tensors have to be contiguous.
  WorkPtr all_reduce(TensorBase t, ReduceOp op = ReduceOp::kSum);
  WorkPtr reduce(TensorBase t, int root, ReduceOp op = ReduceOp::kSum);
  WorkPtr broadcast(TensorBase t, int root);
  WorkPtr all_gather(std::vector<TensorBase> out, TensorBase in);
  WorkPtr gather(std::vector<TensorBase> out, TensorBase in, int root);
  WorkPtr scatter(TensorBase out, std::vector<TensorBase> in, int root);
  WorkPtr reduce_scatter(TensorBase out, std::vector<TensorBase> in, ReduceOp op = ReduceOp::kSum);
  WorkPtr all_to_all(std::vector<TensorBase> out, std::vector<TensorBase> in);
  // Rows of dimension 0; empty splits: equal parts.
  WorkPtr all_to_all_single(TensorBase out, TensorBase in, std::vector<int64_t> out_split,
                            std::vector<int64_t> in_split);
  WorkPtr send(TensorBase t, int to, uint32_t tag);
  WorkPtr receive(TensorBase t, int from, uint32_t tag);
  WorkPtr barrier(DeviceType type = DeviceType::kCPU);

  // Waits until nothing is in flight on devices; false where `patience` ended first.
  bool flush(Milliseconds patience);
  // Messages between the two go out together; where tensors are on devices of this type.
  void begin_batch(DeviceType type);
  void end_batch(DeviceType type);

  // Makes the error of a call that went wrong, finding out whose fault it is, and ends the group.
  // kKnown: the monitor has told already.
  enum class Cause : uint8_t { kUnknown, kKnown, kTime };
  std::exception_ptr fail(const Request& request, const std::string& reason, Cause cause);
  // Null while there is none.
  std::exception_ptr failure() const;
  std::string title(const Request& request) const;
  void abort(std::exception_ptr error);
  // A rank of the world died or left.
  void news(int world_rank, const Fate& fate);
  std::string status() const;
  // Raises where the group failed already or a member is gone.
  void check_usable(const Request& request);

 private:
  WorkPtr submit(Request request);
  GroupBackend& backend_for(const Request& request);

  std::shared_ptr<Job> job_;
  Options options_;
  std::atomic<int64_t> timeout_;
  std::atomic<int64_t> sequence_{0}, messages_{0};
  std::map<DeviceType, std::shared_ptr<GroupBackend>> backends_;
  mutable std::mutex mutex_;
  std::exception_ptr failure_;
  std::string failure_text_;
  int64_t failed_at_ = 0;
  std::string last_ = "nothing";  // the newest call, for a roll call
};

}  // namespace tessera::distributed
