// The handle of a collective that may still be under way.
#pragma once
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "tessera/distributed/completion.h"
#include "tessera/tensor/tensor.h"

namespace tessera::distributed {

class Work {
 public:
  explicit Work(std::string what, std::vector<TensorBase> result = {})
      : what_(std::move(what)), result_(std::move(result)) {}
  Work(const Work&) = delete;

  bool is_completed() const { return completion_->state() != CollectiveOutcome::State::kOpen; }
  bool is_success() const { return completion_->is_host_done() && !completion_->error(); }
  // Null while there is none.
  std::exception_ptr exception() const { return completion_->error(); }
  // On the CPU: blocks until the collective is done. On a device: makes the current stream wait and
  // returns; `block` and TORCH_NCCL_BLOCKING_WAIT=1 block until the device is done. Raises once the
  // collective has failed. False where `patience` ended first.
  bool wait_for(Milliseconds patience, bool block = false);
  void wait();
  const std::vector<TensorBase>& result() const { return result_; }
  int source_rank() const { return source_; }
  const std::string& what() const { return what_; }
  const std::shared_ptr<Completion>& completion() const { return completion_; }

  // For those who carry it out. Only the first of finish and fail counts.
  void finish() { completion_->finish(); }
  void fail(std::exception_ptr error) { completion_->fail(std::move(error)); }
  void set_source(int rank) { source_ = rank; }

 private:
  const std::string what_;
  std::vector<TensorBase> result_;
  int source_ = -1;
  const std::shared_ptr<Completion> completion_ = std::make_shared<Completion>();
};

using WorkPtr = std::shared_ptr<Work>;

}  // namespace tessera::distributed
