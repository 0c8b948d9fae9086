// Collectives by an engine that sees host memory (gloo, MPI). Collectives run on one thread in the
// order of the calls, messages between two ranks on one for each peer and tag.
#pragma once
#include <map>
#include <tuple>

#include "tessera/distributed/engine.h"
#include "tessera/distributed/group_backend.h"
#include "tessera/distributed/lane.h"

namespace tessera::distributed {

class HostBackend final : public GroupBackend {
 public:
  HostBackend(std::string name, ProcessGroup& group, std::unique_ptr<Engine> engine);
  ~HostBackend() override;
  const char* name() const override { return name_.c_str(); }
  WorkPtr run(Request request) override;
  void abort(std::exception_ptr error) override;
  std::shared_ptr<const Request> oldest_after(int64_t upto) override;
  int64_t oldest_collective() override { return collectives_.oldest(); }

 private:
  Lane& lane_for(const Request& request);
  std::exception_ptr explain(const Request& request, Completion& completion,
                             std::exception_ptr thrown, Deadline began);
  void agree(const Request& request, Engine::Time timeout);
  void carry_out(const Request& request, char* in, size_t in_bytes, char* out, size_t out_bytes,
                 Work& work);
  void exchange(const Request& request, char* in, char* out, Deadline end);
  void message(const Request& request, char* data, size_t bytes, Work& work, Deadline end);

  std::string name_;
  ProcessGroup& group_;
  std::unique_ptr<Engine> engine_;
  bool check_;
  std::mutex mutex_;
  std::exception_ptr aborted_;
  Lane collectives_;
  std::map<std::tuple<bool, int, uint32_t>, std::unique_ptr<Lane>> messages_;
};

}  // namespace tessera::distributed
