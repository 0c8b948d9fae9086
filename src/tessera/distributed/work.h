// The handle of a collective that may still be under way.
#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tessera/distributed/socket.h"
#include "tessera/tensor/tensor.h"

namespace tessera::distributed {

class Work {
 public:
  explicit Work(std::string what, std::vector<TensorBase> result = {})
      : what_(std::move(what)), result_(std::move(result)) {}
  Work(const Work&) = delete;

  bool is_completed() const;
  bool is_success() const;
  // Null while there is none.
  std::exception_ptr exception() const;
  // Blocks until it is done; of a device's tensors, until the current stream may use them. Raises
  // what went wrong. False where `patience` ended first.
  bool wait_for(Milliseconds patience);
  void wait();
  const std::vector<TensorBase>& result() const { return result_; }
  int source_rank() const { return source_; }
  const std::string& what() const { return what_; }

  // For those who carry it out. Only the first of finish and fail counts.
  void finish();
  void fail(std::exception_ptr error);
  void set_source(int rank) { source_ = rank; }
  // Run on the thread that waits, once it is done: joins device streams.
  void on_wait(std::function<void()> join) { join_ = std::move(join); }
  // Looked at while waiting: may fail it.
  void on_patience(std::function<void()> watch) { watch_ = std::move(watch); }
  // Asks whether work of a device is done; for is_completed.
  void on_query(std::function<bool()> query) { query_ = std::move(query); }

 private:
  const std::string what_;
  std::vector<TensorBase> result_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::exception_ptr error_;
  int source_ = -1;
  std::function<void()> join_, watch_;
  std::function<bool()> query_;
};

using WorkPtr = std::shared_ptr<Work>;

}  // namespace tessera::distributed
