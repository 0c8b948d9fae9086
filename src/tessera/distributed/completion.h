// State of one collective: shared by its handle, by the thread that carries it out, and by the
// marks of the tensors that it writes (Note [Poisoned tensors] in tensor/outcome.h). It refers to
// no tensor, so that a mark does not keep its own storage alive.
#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

#include "tessera/distributed/socket.h"
#include "tessera/tensor/outcome.h"

namespace tessera::distributed {

class Completion final : public CollectiveOutcome {
 public:
  // kRefused: the library or the device reports an error, and the results are not to be trusted.
  enum class Progress : uint8_t { kRunning, kPassed, kRefused };

  State state() override;
  void wait() override;
  void join() override;
  bool is_failing() override;
  [[noreturn]] void raise() const override;

  // Blocks until the host's part is done or `deadline` has passed; false in the latter case.
  bool await_host(Deadline deadline);
  // The same until the device's part is done too, or the collective has failed.
  bool await_device(Deadline deadline);
  // Raises the error, and counts it as reported.
  void rethrow() const;
  // Null while there is none.
  std::exception_ptr error() const;

  // The host's part is done. A device's part ends when `query` says so.
  void finish();
  // Does nothing once the collective is done.
  void fail(std::exception_ptr error);
  // An error is being made: the state stays kOpen until fail() is called.
  void freeze();
  void on_query(std::function<Progress()> query) { query_ = std::move(query); }
  void on_join(std::function<void()> join) { join_ = std::move(join); }
  // Called while a thread waits for the host's part; may call fail().
  void on_patience(std::function<void()> watch) { watch_ = std::move(watch); }
  // A failure leaves the outputs as they were: they are not poisoned.
  void set_untouched();
  // Handles wait for the device's part too, as of a barrier.
  void set_blocking() { blocking_ = true; }
  bool is_blocking() const { return blocking_; }
  bool is_host_done() const;

 private:
  Progress progress_locked() const;
  bool is_inherited() const;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<State> settled_{State::kOpen};
  bool host_done_ = false;
  bool frozen_ = false;
  bool untouched_ = false;
  bool blocking_ = false;
  const int generation_ = fork_generation();
  std::exception_ptr error_;
  std::function<Progress()> query_;
  std::function<void()> join_, watch_;
};

}  // namespace tessera::distributed
