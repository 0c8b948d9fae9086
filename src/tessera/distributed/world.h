// torch.distributed for C++: how a process joins a job, and the group of all its processes.
// Python's functions are bound to the same.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tessera/distributed/job.h"

namespace tessera::distributed {

struct InitOptions {
  std::string backend;      // "gloo", "mpi", "nccl"; empty: "cpu:gloo,cuda:nccl"
  std::string init_method;  // "env://", "tcp://host:port", "file:///path"; empty: env://
  int rank = -1;            // -1: as the init method or the environment says
  int world_size = -1;
  Milliseconds timeout = std::chrono::minutes(30);
  std::shared_ptr<Store> store;  // instead of an init method
};

// Makes the group of all processes. Raises when there is one already.
std::shared_ptr<ProcessGroup> init_process_group(InitOptions options = {});
// Leaves the job, and ends its groups.
void destroy_process_group();
// Waits until no collective is in flight on a device; false where `patience` ended first.
bool flush_job(Milliseconds patience);
// Prints the failures of collectives that were never raised; returns true if there are some.
bool report_failures();
// Says farewell to the others; for the end of the process.
void leave_job();
bool is_initialized();
// The group of all; raises where there is none.
std::shared_ptr<ProcessGroup> world();

struct GroupOptions {
  std::string backend;      // empty: the world's
  Milliseconds timeout{0};  // 0: the world's
  std::string name;         // empty: made up, the same on all ranks
};
// All processes of the job call it, also those that are not to be in it: they get null.
std::shared_ptr<ProcessGroup> new_group(std::vector<int> ranks, GroupOptions options = {});

// The store and the place that an init method stands for.
struct Rendezvous {
  std::shared_ptr<Store> store;
  int rank;
  int world_size;
};
Rendezvous rendezvous(const InitOptions& options);

}  // namespace tessera::distributed
