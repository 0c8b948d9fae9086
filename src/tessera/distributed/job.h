// This process's part in a job: the store, the monitor, and the groups made so far.
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "tessera/distributed/monitor.h"
#include "tessera/distributed/process_group.h"

namespace tessera::distributed {

class Job : public std::enable_shared_from_this<Job> {
 public:
  // `server_rank`: in whose process the store's server is; -1: not known. `scope` tells apart jobs
  // that use one store.
  static std::shared_ptr<Job> start(std::shared_ptr<Store> store, int rank, int size,
                                    const std::string& scope, int server_rank,
                                    Milliseconds timeout);
  ~Job();

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::shared_ptr<Store>& store() const { return store_; }
  Monitor* monitor() const { return monitor_.get(); }
  // The address that data of this process comes from and goes to.
  std::string address() const;

  // A group of these ranks; null where this one is not among them. `backends`: "gloo", "mpi",
  // "nccl", or by device "cpu:gloo,cuda:nccl". All ranks of the world call it in the same order.
  std::shared_ptr<ProcessGroup> new_group(std::vector<int> ranks, const std::string& backends,
                                          const std::string& name, Milliseconds timeout);
  // What a member puts into `place`; raises when the time is up, and at once when the member is
  // gone.
  std::string await(Store& place, const std::string& key, int world_rank, Milliseconds timeout);
  // Waits until no group has a collective in flight on a device; false where `patience` ended
  // first.
  bool flush(Milliseconds patience);
  // Says farewell. Groups fail after it.
  void leave();
  bool has_left() const {
    std::lock_guard lock(mutex_);
    return left_;
  }

 private:
  Job(std::shared_ptr<Store> store, int rank, int size)
      : store_(std::move(store)), rank_(rank), size_(size) {}
  std::vector<std::shared_ptr<ProcessGroup>> groups() const;
  std::string status() const;
  // Null where it is not there and is optional.
  std::shared_ptr<GroupBackend> make_backend(const std::string& asked, bool optional,
                                             ProcessGroup& group, std::shared_ptr<Store> place,
                                             Milliseconds timeout);
  void watch(const std::string& scope, int server_rank, Milliseconds timeout);

  std::shared_ptr<Store> store_;
  int rank_, size_;
  std::unique_ptr<Server> server_;  // where the store has none
  std::unique_ptr<Monitor> monitor_;
  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<ProcessGroup>> groups_;
  bool left_ = false;
};

// Is it in this build, and its library on this machine? On the virtual GPU "nccl" is what goes
// through host memory.
bool is_backend_available(const std::string& name, std::string* why = nullptr);

}  // namespace tessera::distributed
