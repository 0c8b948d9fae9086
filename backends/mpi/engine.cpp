// Collectives by MPI, each group with a communicator of its own.
#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include "calls.h"
#include "tessera/distributed/engine.h"

namespace tessera::distributed {

namespace {

using mpi::await;
using mpi::check;

constexpr size_t kMostElements = size_t{1} << 30;

// MPI counts in int.
int counted(size_t n, const char* what) {
  if (n > static_cast<size_t>(std::numeric_limits<int>::max()))
    throw std::runtime_error(std::string(what) + " of more than 2^31 elements by MPI");
  return static_cast<int>(n);
}

class MpiEngine final : public Engine {
 public:
  explicit MpiEngine(const EngineOptions& o) : rank_(o.rank), size_(o.size) {
    mpi::start();
    std::lock_guard lock(mpi::calls());
    MPI_Group all, ours;
    check(MPI_Comm_group(MPI_COMM_WORLD, &all), "MPI_Comm_group");
    check(MPI_Group_incl(all, o.size, o.ranks.data(), &ours), "MPI_Group_incl");
    // Only the members call it. Collectives and messages do not meet in one communicator.
    check(MPI_Comm_create_group(MPI_COMM_WORLD, ours, 0, &comm_), "MPI_Comm_create_group");
    check(MPI_Comm_create_group(MPI_COMM_WORLD, ours, 1, &messages_), "MPI_Comm_create_group");
    MPI_Group_free(&all);
    MPI_Group_free(&ours);
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(messages_, MPI_ERRORS_RETURN);
  }
  // Communicators are left to MPI_Finalize: freeing one waits for the other ranks.

  bool all_same(uint64_t number, Time timeout) override {
    // The least of a number and of its complement: equal numbers give both back.
    uint64_t both[2] = {number, ~number}, least[2];
    run(timeout, "MPI_Iallreduce", [&](MPI_Request* r) {
      return MPI_Iallreduce(both, least, 2, MPI_UINT64_T, MPI_MIN, comm_, r);
    });
    return least[0] == number && least[1] == ~number;
  }

  void all_reduce(void* data, size_t count, DType dtype, ReduceOp op, Time timeout) override {
    for (size_t at = 0; at < count; at += kMostElements) {
      int n = static_cast<int>(std::min(kMostElements, count - at));
      char* p = static_cast<char*>(data) + at * itemsize(dtype);
      run(timeout, "MPI_Iallreduce", [&](MPI_Request* r) {
        return MPI_Iallreduce(MPI_IN_PLACE, p, n, mpi::element(dtype), mpi::operation(op), comm_,
                              r);
      });
    }
  }

  void reduce(void* data, size_t count, DType dtype, ReduceOp op, int root, Time timeout) override {
    for (size_t at = 0; at < count; at += kMostElements) {
      int n = static_cast<int>(std::min(kMostElements, count - at));
      char* p = static_cast<char*>(data) + at * itemsize(dtype);
      const void* in = root == rank_ ? MPI_IN_PLACE : p;
      run(timeout, "MPI_Ireduce", [&](MPI_Request* r) {
        return MPI_Ireduce(in, p, n, mpi::element(dtype), mpi::operation(op), root, comm_, r);
      });
    }
  }

  void broadcast(void* data, size_t bytes, int root, Time timeout) override {
    for (size_t at = 0; at < bytes; at += kMostElements) {
      int n = static_cast<int>(std::min(kMostElements, bytes - at));
      char* p = static_cast<char*>(data) + at;
      run(timeout, "MPI_Ibcast",
          [&](MPI_Request* r) { return MPI_Ibcast(p, n, MPI_BYTE, root, comm_, r); });
    }
  }

  void all_gather(const void* in, void* out, size_t bytes, Time timeout) override {
    int n = counted(bytes, "all_gather");
    run(timeout, "MPI_Iallgather", [&](MPI_Request* r) {
      return MPI_Iallgather(in, n, MPI_BYTE, out, n, MPI_BYTE, comm_, r);
    });
  }

  void gather(const void* in, void* out, size_t bytes, int root, Time timeout) override {
    int n = counted(bytes, "gather");
    run(timeout, "MPI_Igather", [&](MPI_Request* r) {
      return MPI_Igather(in, n, MPI_BYTE, out, n, MPI_BYTE, root, comm_, r);
    });
  }

  void scatter(const void* in, void* out, size_t bytes, int root, Time timeout) override {
    int n = counted(bytes, "scatter");
    run(timeout, "MPI_Iscatter", [&](MPI_Request* r) {
      return MPI_Iscatter(in, n, MPI_BYTE, out, n, MPI_BYTE, root, comm_, r);
    });
  }

  void reduce_scatter(const void* in, void* out, size_t count, DType dtype, ReduceOp op,
                      Time timeout) override {
    int n = counted(count, "reduce_scatter");
    run(timeout, "MPI_Ireduce_scatter_block", [&](MPI_Request* r) {
      return MPI_Ireduce_scatter_block(in, out, n, mpi::element(dtype), mpi::operation(op), comm_,
                                       r);
    });
  }

  void all_to_all(const void* in, const std::vector<int64_t>& to, void* out,
                  const std::vector<int64_t>& from, Time timeout) override {
    std::vector<int> counts[2], places[2];
    const std::vector<int64_t>* bytes[2] = {&to, &from};
    for (int side = 0; side < 2; ++side) {
      size_t at = 0;
      for (int64_t n : *bytes[side]) {
        counts[side].push_back(counted(static_cast<size_t>(n), "all_to_all"));
        places[side].push_back(counted(at, "all_to_all"));
        at += static_cast<size_t>(n);
      }
    }
    run(timeout, "MPI_Ialltoallv", [&](MPI_Request* r) {
      return MPI_Ialltoallv(in, counts[0].data(), places[0].data(), MPI_BYTE, out, counts[1].data(),
                            places[1].data(), MPI_BYTE, comm_, r);
    });
  }

  void send(const void* data, size_t bytes, int to, uint32_t tag, Time timeout) override {
    int n = counted(bytes, "send");
    run(timeout, "MPI_Isend", [&](MPI_Request* r) {
      return MPI_Isend(data, n, MPI_BYTE, to, mpi::checked_tag(tag), messages_, r);
    });
  }

  int receive(void* data, size_t bytes, int from, uint32_t tag, Time timeout) override {
    int n = counted(bytes, "recv");
    MPI_Status status;
    run(
        timeout, "MPI_Irecv",
        [&](MPI_Request* r) {
          return MPI_Irecv(data, n, MPI_BYTE, from < 0 ? MPI_ANY_SOURCE : from,
                           mpi::checked_tag(tag), messages_, r);
        },
        &status);
    return status.MPI_SOURCE;
  }

  void abort() noexcept override { aborted_ = true; }

 private:
  template <class Start>
  void run(Time timeout, const char* what, Start&& begin, MPI_Status* status = nullptr) {
    MPI_Request request;
    {
      std::lock_guard lock(mpi::calls());
      mpi::check_usable();
      check(begin(&request), what);
    }
    await(request, timeout, aborted_, status);
  }

  const int rank_, size_;
  MPI_Comm comm_ = MPI_COMM_NULL, messages_ = MPI_COMM_NULL;
  std::atomic<bool> aborted_{false};
};

std::unique_ptr<Engine> make(const EngineOptions& options) {
  return std::make_unique<MpiEngine>(options);
}

bool world(int* rank, int* size) {
  mpi::start();
  std::lock_guard lock(mpi::calls());
  return MPI_Comm_rank(MPI_COMM_WORLD, rank) == MPI_SUCCESS &&
         MPI_Comm_size(MPI_COMM_WORLD, size) == MPI_SUCCESS;
}

}  // namespace

}  // namespace tessera::distributed

extern "C" __attribute__((visibility("default"))) const tessera::distributed::EngineTable*
tessera_engine_v1() {
  using namespace tessera::distributed;
  static const EngineTable table{kEngineVersion, make, world, mpi::shut_down};
  return &table;
}
