// Collectives between GPUs by NCCL: a communicator for each group and device.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <stdexcept>

#include "context.h"
#include "nccl_api.h"
#include "tessera/distributed/device_engine.h"

namespace tessera::cuda {

namespace {

using distributed::DeviceEngine;
using distributed::ReduceOp;

const NcclApi& api() { return *nccl_api(nullptr); }

void check_nccl(int code, NcclComm* comm, const char* what) {
  if (code == kNcclSuccess || code == kNcclInProgress) return;
  std::string text = std::string(what) + ": " + api().ncclGetErrorString(code);
  if (const char* last = api().ncclGetLastError ? api().ncclGetLastError(comm) : nullptr)
    if (*last) text += std::string(" (") + last + ")";
  throw std::runtime_error(text);
}

Device& device_of(int ordinal) {
  Device* d = nullptr;
  if (Status s = acquire(ordinal, &d); !s.ok())
    throw std::runtime_error(s.message ? s.message : "the device cannot be used");
  return *d;
}

// How NCCL sees elements: complex numbers are pairs, bool a byte of 0 or 1.
struct Elements {
  NcclType type;
  size_t each = 1;
};

Elements elements_of(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kUInt8:
      return {NcclType::kUInt8};
    case DType::kInt8:
      return {NcclType::kInt8};
    case DType::kInt16:
      return {NcclType::kInt8, 2};
    case DType::kInt32:
      return {NcclType::kInt32};
    case DType::kInt64:
      return {NcclType::kInt64};
    case DType::kFloat16:
      return {NcclType::kFloat16};
    case DType::kBFloat16:
      return {NcclType::kBFloat16};
    case DType::kFloat32:
      return {NcclType::kFloat32};
    case DType::kFloat64:
      return {NcclType::kFloat64};
    case DType::kComplex64:
      return {NcclType::kFloat32, 2};
    case DType::kComplex128:
      return {NcclType::kFloat64, 2};
  }
  return {NcclType::kUInt8};
}

NcclOp op_of(DType dtype, ReduceOp op) {
  auto refuse = [&] {
    throw std::runtime_error(std::string("NCCL has no ReduceOp.") + distributed::reduce_name(op) +
                             " of torch." + dtype_name(dtype));
  };
  if (dtype == DType::kInt16) refuse();
  if (is_complex(dtype) && op != ReduceOp::kSum && op != ReduceOp::kAvg) refuse();
  const bool logical = dtype == DType::kBool;
  switch (op) {
    case ReduceOp::kSum:
      return logical ? NcclOp::kMax : NcclOp::kSum;
    case ReduceOp::kAvg:
      if (logical) refuse();
      return NcclOp::kAvg;
    case ReduceOp::kProduct:
      return logical ? NcclOp::kMin : NcclOp::kProduct;
    case ReduceOp::kMin:
      return NcclOp::kMin;
    case ReduceOp::kMax:
      return NcclOp::kMax;
    case ReduceOp::kBor:
      if (logical) return NcclOp::kMax;
      break;
    case ReduceOp::kBand:
      if (logical) return NcclOp::kMin;
      break;
    case ReduceOp::kBxor:
      break;
  }
  refuse();
  return NcclOp::kSum;
}

class NcclEngine final : public DeviceEngine {
 public:
  NcclEngine(int device, int rank, int size, const std::string& id) : device_(device) {
    NcclUniqueId unique{};
    std::memcpy(unique.internal, id.data(), std::min(id.size(), sizeof unique.internal));
    device_of(device);
    check_nccl(api().ncclCommInitRank(&comm_, size, unique, rank), nullptr, "ncclCommInitRank");
  }
  ~NcclEngine() override {
    std::lock_guard lock(mutex_);
    if (comm_ && !aborted_) api().ncclCommDestroy(comm_);
  }

  void all_reduce(const void* in, void* out, size_t count, DType dtype, ReduceOp op,
                  StreamHandle stream) override {
    auto [type, each] = elements_of(dtype);
    NcclOp how = op_of(dtype, op);
    call(
        "ncclAllReduce",
        [&](CUstream s) { return api().ncclAllReduce(in, out, count * each, type, how, comm_, s); },
        stream);
  }
  void reduce(const void* in, void* out, size_t count, DType dtype, ReduceOp op, int root,
              StreamHandle stream) override {
    auto [type, each] = elements_of(dtype);
    NcclOp how = op_of(dtype, op);
    call(
        "ncclReduce",
        [&](CUstream s) {
          return api().ncclReduce(in, out, count * each, type, how, root, comm_, s);
        },
        stream);
  }
  void broadcast(void* data, size_t count, DType dtype, int root, StreamHandle stream) override {
    auto [type, each] = elements_of(dtype);
    call(
        "ncclBroadcast",
        [&](CUstream s) {
          return api().ncclBroadcast(data, data, count * each, type, root, comm_, s);
        },
        stream);
  }
  void all_gather(const void* in, void* out, size_t count, DType dtype,
                  StreamHandle stream) override {
    auto [type, each] = elements_of(dtype);
    call(
        "ncclAllGather",
        [&](CUstream s) { return api().ncclAllGather(in, out, count * each, type, comm_, s); },
        stream);
  }
  void reduce_scatter(const void* in, void* out, size_t count, DType dtype, ReduceOp op,
                      StreamHandle stream) override {
    auto [type, each] = elements_of(dtype);
    NcclOp how = op_of(dtype, op);
    call(
        "ncclReduceScatter",
        [&](CUstream s) {
          return api().ncclReduceScatter(in, out, count * each, type, how, comm_, s);
        },
        stream);
  }
  void exchange(const std::vector<Message>& sends, const std::vector<Message>& receives,
                DType dtype, StreamHandle stream) override {
    auto [type, each] = elements_of(dtype);
    begin_batch();
    try {
      queue_messages(sends, receives, type, each, stream);
    } catch (...) {
      api().ncclGroupEnd();  // an open group would hold back every later call
      throw;
    }
    end_batch();
  }
  void begin_batch() override { check_nccl(api().ncclGroupStart(), comm_, "ncclGroupStart"); }
  void end_batch() override { check_nccl(api().ncclGroupEnd(), comm_, "ncclGroupEnd"); }

  std::string error() override {
    std::lock_guard lock(mutex_);
    int code = 0;
    if (aborted_ || api().ncclCommGetAsyncError(comm_, &code) != kNcclSuccess) return "";
    if (code == kNcclSuccess || code == kNcclInProgress) return "";
    return std::string("NCCL: ") + api().ncclGetErrorString(code);
  }

  void abort() noexcept override {
    std::lock_guard lock(mutex_);
    if (aborted_.exchange(true) || !comm_) return;
    Device* d = nullptr;
    acquire(device_, &d);
    api().ncclCommAbort(comm_);
  }

 private:
  void queue_messages(const std::vector<Message>& sends, const std::vector<Message>& receives,
                      NcclType type, size_t each, StreamHandle stream) {
    for (const Message& m : sends)
      call(
          "ncclSend",
          [&](CUstream s) {
            return api().ncclSend(m.data, m.count * each, type, m.peer, comm_, s);
          },
          stream);
    for (const Message& m : receives)
      call(
          "ncclRecv",
          [&](CUstream s) {
            return api().ncclRecv(m.data, m.count * each, type, m.peer, comm_, s);
          },
          stream);
  }

  template <class F>
  void call(const char* what, F&& queue, StreamHandle stream) {
    if (aborted_) throw std::runtime_error("the communicator was aborted");
    check_nccl(queue(stream_of(device_of(device_), stream)), comm_, what);
  }

  int device_;
  NcclComm* comm_ = nullptr;
  std::mutex mutex_;
  std::atomic<bool> aborted_{false};
};

const char* missing() {
  const char* why = nullptr;
  return nccl_api(&why) ? nullptr : why;
}

std::string unique_id() {
  NcclUniqueId id{};
  check_nccl(api().ncclGetUniqueId(&id), nullptr, "ncclGetUniqueId");
  return {id.internal, sizeof id.internal};
}

std::unique_ptr<DeviceEngine> make(int device, int rank, int size, const std::string& id) {
  return std::make_unique<NcclEngine>(device, rank, size, id);
}

}  // namespace

}  // namespace tessera::cuda

extern "C" __attribute__((visibility("default"))) const tessera::distributed::DeviceEngineTable*
tessera_device_engine_v1() {
  using namespace tessera;
  static const distributed::DeviceEngineTable table{distributed::kDeviceEngineVersion,
                                                    cuda::missing, cuda::unique_id, cuda::make};
  return &table;
}
