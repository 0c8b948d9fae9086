// The contract of a library that carries data between devices (NCCL): offered by the backend of
// the device. Calls queue work on a stream and return; they throw where that is refused.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tessera/distributed/reduce.h"
#include "tessera/driver/backend.h"

namespace tessera::distributed {

inline constexpr int kDeviceEngineVersion = 1;

class DeviceEngine {
 public:
  struct Message {
    void* data;
    size_t count;
    int peer;
  };
  virtual ~DeviceEngine() = default;

  // Results may go where the data is.
  virtual void all_reduce(const void* in, void* out, size_t count, DType dtype, ReduceOp op,
                          StreamHandle stream) = 0;
  virtual void reduce(const void* in, void* out, size_t count, DType dtype, ReduceOp op, int root,
                      StreamHandle stream) = 0;
  virtual void broadcast(void* data, size_t count, DType dtype, int root, StreamHandle stream) = 0;
  virtual void all_gather(const void* in, void* out, size_t count, DType dtype,
                          StreamHandle stream) = 0;
  virtual void reduce_scatter(const void* in, void* out, size_t count, DType dtype, ReduceOp op,
                              StreamHandle stream) = 0;
  // All at once, in any order; also to and from oneself.
  virtual void exchange(const std::vector<Message>& sends, const std::vector<Message>& receives,
                        DType dtype, StreamHandle stream) = 0;
  // Calls between the two go out together.
  virtual void begin_batch() = 0;
  virtual void end_batch() = 0;
  // What went wrong since, without waiting; empty where nothing did.
  virtual std::string error() = 0;
  // From another thread: what is under way ends.
  virtual void abort() noexcept = 0;
};

// What the backend's library exports as `tessera_device_engine_v1`.
struct DeviceEngineTable {
  int version;
  // Null where the library is there; else why it is not.
  const char* (*missing)();
  // Drawn by one rank, and handed to make() by all.
  std::string (*unique_id)();
  // Blocks until all ranks have called it.
  std::unique_ptr<DeviceEngine> (*make)(int device, int rank, int size, const std::string& id);
};
using DeviceEngineEntry = const DeviceEngineTable* (*)();
inline constexpr const char* kDeviceEngineEntryName = "tessera_device_engine_v1";

// Of the accelerator in use; null where it has none (the virtual GPU).
const DeviceEngineTable* find_device_engine(std::string* why = nullptr);

}  // namespace tessera::distributed
