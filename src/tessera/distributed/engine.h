// The contract of a library that carries data between processes (gloo, MPI): a library of ours
// around it, opened by name. It sees host memory only; what it throws is explained further up.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/distributed/reduce.h"

namespace tessera::distributed {

inline constexpr int kEngineVersion = 1;

// How engines meet: the group's own part of the job's store.
struct MeetingPlace {
  std::function<void(const std::string& key, const std::string& value)> set;
  std::function<std::string(const std::string& key, std::chrono::milliseconds timeout)> get;
};

struct EngineOptions {
  int rank = 0;
  int size = 1;
  std::vector<int> ranks;  // of the members in the world
  std::string address;     // the one address to listen at
  std::chrono::milliseconds timeout{};
  MeetingPlace place;
};

// Functions block until they are done, throw when `timeout` has passed, when a connection is lost
// and after abort(). Collectives come from one thread at a time and in the same order everywhere;
// send and receive from any threads.
class Engine {
 public:
  using Time = std::chrono::milliseconds;
  virtual ~Engine() = default;

  // Do all have this number?
  virtual bool all_same(uint64_t number, Time timeout) = 0;
  virtual void all_reduce(void* data, size_t count, DType dtype, ReduceOp op, Time timeout) = 0;
  // The result is written at the root alone, over its own data.
  virtual void reduce(void* data, size_t count, DType dtype, ReduceOp op, int root,
                      Time timeout) = 0;
  virtual void broadcast(void* data, size_t bytes, int root, Time timeout) = 0;
  // `bytes` of each rank; `out` has room for all. It may hold `in` at its own place.
  virtual void all_gather(const void* in, void* out, size_t bytes, Time timeout) = 0;
  virtual void gather(const void* in, void* out, size_t bytes, int root, Time timeout) = 0;
  virtual void scatter(const void* in, void* out, size_t bytes, int root, Time timeout) = 0;
  // `count` elements of each rank's part; `in` holds all parts.
  virtual void reduce_scatter(const void* in, void* out, size_t count, DType dtype, ReduceOp op,
                              Time timeout) = 0;
  // Bytes for and from each rank, side by side.
  virtual void all_to_all(const void* in, const std::vector<int64_t>& to, void* out,
                          const std::vector<int64_t>& from, Time timeout) = 0;
  virtual void send(const void* data, size_t bytes, int to, uint32_t tag, Time timeout) = 0;
  // From -1: from anybody. Returns the sender.
  virtual int receive(void* data, size_t bytes, int from, uint32_t tag, Time timeout) = 0;
  // From another thread: what blocks throws soon, and nothing works any more.
  virtual void abort() noexcept = 0;
};

// What such a library exports as `tessera_engine_v1`.
struct EngineTable {
  int version;
  std::unique_ptr<Engine> (*make)(const EngineOptions& options);
  // This process's place where the library knows it by itself (MPI); false where it does not.
  bool (*world)(int* rank, int* size);
  // Ends the library at the end of the process.
  void (*shut_down)();
};
using EngineEntry = const EngineTable* (*)();
inline constexpr const char* kEngineEntryName = "tessera_engine_v1";

// For a group of one process: needs no library.
std::unique_ptr<Engine> make_self_engine();

// By name ("gloo", "mpi"); null if it is not there, with the reason.
const EngineTable* find_engine(const std::string& name, std::string* why = nullptr);

}  // namespace tessera::distributed
