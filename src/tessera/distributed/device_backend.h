// Collectives between devices (NCCL). They are queued on a stream of the group's own, which waits
// for the caller's, and the caller's for it when a handle is waited for; the host goes on
// meanwhile. A thread looks after what is under way: its deadline, and errors that come late.
#pragma once
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <thread>

#include "tessera/base/mutex.h"
#include "tessera/distributed/device_engine.h"
#include "tessera/distributed/group_backend.h"
#include "tessera/distributed/store.h"

namespace tessera::distributed {

class DeviceBackend final : public GroupBackend {
 public:
  DeviceBackend(ProcessGroup& group, std::shared_ptr<Store> store, const DeviceEngineTable& table);
  ~DeviceBackend() override;
  const char* name() const override { return "nccl"; }
  WorkPtr run(Request request) override;
  void abort(std::exception_ptr error) override;
  std::shared_ptr<const Request> oldest_after(int64_t upto) override;
  int64_t oldest_collective() override;
  bool flush(Milliseconds patience) override;
  void begin_batch() override;
  void end_batch() override;

 private:
  struct Lines;  // a device's communicator and its stream
  struct Event;
  struct UnderWay {
    std::shared_ptr<const Request> request;
    std::shared_ptr<Completion> completion;
    Deadline began;
  };
  struct Batched {
    std::shared_ptr<Event> done;
    std::shared_ptr<Lines> lines;
    Request request;  // keeps its tensors until it is queued
  };

  std::shared_ptr<Lines> lines_of(int device);
  void check_devices_differ(int device);
  void queue(const Request& request, Lines& lines);
  void watch();
  void fail_all(std::exception_ptr error);

  ProcessGroup& group_;
  std::shared_ptr<Store> store_;
  const DeviceEngineTable& table_;
  Mutex making_;
  std::mutex mutex_;
  std::condition_variable changed_, idle_;
  std::map<int, std::shared_ptr<Lines>> lines_;
  std::list<UnderWay> under_way_;  // in the order of the calls
  bool in_batch_ = false;
  std::vector<Batched> batched_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace tessera::distributed
