// What a process group asks of the library that serves a kind of device.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tessera/distributed/reduce.h"
#include "tessera/distributed/work.h"

namespace tessera::distributed {

enum class Collective : uint8_t {
  kAllReduce,
  kReduce,
  kBroadcast,
  kAllGather,
  kGather,
  kScatter,
  kReduceScatter,
  kAllToAll,
  kBarrier,
  kSend,
  kReceive,
};

// One call: its arguments are checked, its tensors without gaps and on one device. Reductions in
// place and broadcasts have their tensor in `outputs`.
struct Request {
  Collective kind;
  std::vector<TensorBase> inputs, outputs;
  ReduceOp op = ReduceOp::kSum;
  int peer = 0;  // the root, the receiver or the sender (-1: anybody)
  uint32_t tag = 0;
  // Elements for and from each rank, of kAllToAll.
  std::vector<int64_t> to, from;

  int64_t sequence = 0;
  // What all ranks have to agree on, and what is shown of it.
  std::string text;
  std::vector<TensorBase> result;

  // The same call without its tensors.
  Request described() const {
    Request r{.kind = kind};
    r.op = op;
    r.peer = peer;
    r.tag = tag;
    r.sequence = sequence;
    r.text = text;
    return r;
  }
  bool is_point_to_point() const {
    return kind == Collective::kSend || kind == Collective::kReceive;
  }
};

const char* collective_name(Collective kind);

class ProcessGroup;

class GroupBackend {
 public:
  virtual ~GroupBackend() = default;
  virtual const char* name() const = 0;
  virtual WorkPtr run(Request request) = 0;
  // Messages between the two go out together.
  virtual void begin_batch() {}
  virtual void end_batch() {}
  // Fails everything that is under way; from any thread, and nothing starts after it.
  virtual void abort(std::exception_ptr error) = 0;
  // The call that is under way, if it is one that a rank which got no further than collective
  // `upto` cannot have taken part in; null if there is none.
  virtual std::shared_ptr<const Request> oldest_after(int64_t upto) = 0;
  // Waits until nothing is in flight; false where `patience` ended first.
  virtual bool flush(Milliseconds) { return true; }
  // The number of the oldest collective that is not done; 0 where all are.
  virtual int64_t oldest_collective() = 0;
};

}  // namespace tessera::distributed
