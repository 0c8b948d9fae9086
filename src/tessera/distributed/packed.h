// Tensors as one piece of host memory for an engine: a tensor on the CPU where it is, a list of
// them side by side, those of a device through pinned memory and a stream of their own.
#pragma once
#include <memory>
#include <vector>

#include "tessera/driver/backend.h"
#include "tessera/tensor/tensor.h"

namespace tessera::distributed {

class Packed {
 public:
  enum class Use : uint8_t { kRead, kWrite, kUpdate };
  // On the caller's thread: pending work runs, copies from a device are queued behind it, versions
  // of what will be written go up.
  Packed(std::vector<TensorBase> tensors, Use use);
  ~Packed();
  Packed(const Packed&) = delete;

  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  bool on_device() const { return device_ >= 0; }

  // On the engine's thread, before and after it reads and writes.
  void fetch();
  void store();
  // Copies between the device and the staging memory. It refers to no tensor.
  class Copies {
   public:
    explicit Copies(int device);
    ~Copies();
    Copies(const Copies&) = delete;
    // Makes the calling thread's current stream wait.
    void join() const;
    Status query() const;

   private:
    friend class Packed;
    int device_;
    EventHandle ready_ = nullptr;
  };
  // Null for tensors on the CPU.
  const std::shared_ptr<Copies>& copies() const { return copies_; }

 private:
  void copy(bool to_host);

  std::vector<TensorBase> tensors_;
  Use use_;
  TensorBase staging_;
  char* data_ = nullptr;
  size_t bytes_ = 0;
  int device_ = -1;  // -1: on the CPU
  StreamHandle stream_ = nullptr;
  std::shared_ptr<Copies> copies_;
};

// Runs what is pending, and says that the tensor is written in place.
void prepare_read(const TensorBase& t);
void prepare_write(const TensorBase& t);

}  // namespace tessera::distributed
