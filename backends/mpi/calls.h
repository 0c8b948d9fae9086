// MPI's calls, one thread at a time and none of them blocking: what is under way is asked again and
// again, so that a deadline and an abort end it.
#pragma once
#include <mpi.h>

#include <atomic>
#include <chrono>
#include <mutex>

#include "tessera/distributed/reduce.h"

namespace tessera::distributed::mpi {

// Starts MPI if nobody has; raises where it cannot be.
void start();
void shut_down();

// Around every call of MPI's.
std::mutex& calls();
// Raises what the code stands for; `what` names the call.
void check(int code, const char* what);

// Throws after a call that was given up. With the lock.
void check_usable();
// Throws where MPI has no such tag.
int checked_tag(uint32_t tag);

// Asks until the request is done. Throws when the time is up, or `aborted` is set.
void await(MPI_Request request, std::chrono::milliseconds timeout, const std::atomic<bool>& aborted,
           MPI_Status* status = nullptr);

// An element of the dtype, which is so many bytes to MPI, and the reduction of such elements.
MPI_Datatype element(DType dtype);
MPI_Op operation(ReduceOp op);

}  // namespace tessera::distributed::mpi
