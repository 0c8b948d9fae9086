// Averages the gradients of several processes while backward goes on.
//
// Note [A backward and its buckets]
// Parameters are dealt to buckets in the order in which their gradients become ready, at first
// guessed as the reverse of the order in which they are registered, from the second iteration on
// as rank 0 saw it. The hook of a parameter copies its gradient into its bucket; a bucket that is
// full is reduced at once, while backward computes the others. Buckets start in the same order on
// all ranks, whatever was ready first. The end of backward waits for all of them and gives the
// averages to the parameters.
#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "tessera/parallel/buckets.h"

namespace tessera::parallel {

struct ReducerOptions {
  size_t bucket_bytes = size_t{25} << 20;
  size_t first_bucket_bytes = size_t{1} << 20;  // so that the first reduction starts early
  bool find_unused_parameters = false;
  bool gradient_as_bucket_view = false;
  bool static_graph = false;
};

class Reducer : public std::enable_shared_from_this<Reducer> {
 public:
  // Parameters that want a gradient, each once; all ranks have the same.
  static std::shared_ptr<Reducer> make(std::vector<TensorBase> parameters,
                                       std::vector<std::string> names,
                                       std::shared_ptr<distributed::ProcessGroup> group,
                                       ReducerOptions options = {});
  ~Reducer();
  Reducer(const Reducer&) = delete;

  // Before a forward whose backward will be reduced: raises where the last one was not finished,
  // naming the parameters that got no gradient.
  void prepare_for_forward();
  // After it: hooks count from here. `outputs`: where to look for parameters that are not used.
  void prepare_for_backward(const std::vector<TensorBase>& outputs);
  // Gradients of the backwards to come stay as they are.
  void expect_nothing() { expecting_ = false; }

  // Takes the place of the average: starts something with a full bucket, and gives a function that
  // waits for it and returns what is to be in the bucket.
  struct HookBucket {
    int index;
    bool is_last;
    TensorBase buffer;
    std::vector<TensorBase> gradients, parameters;
  };
  using CommHook = std::function<std::function<TensorBase()>(const HookBucket&)>;
  void set_comm_hook(CommHook hook);

  int num_buckets() const { return static_cast<int>(buckets_.size()); }
  std::vector<std::vector<int>> bucket_members() const;
  // Buckets that were reduced before the last gradient of the last backward was there.
  int overlapped() const { return overlapped_; }
  distributed::ProcessGroup& group() const { return *group_; }

 private:
  Reducer(std::vector<TensorBase> parameters, std::vector<std::string> names,
          std::shared_ptr<distributed::ProcessGroup> group, ReducerOptions options);
  void add_hooks();
  void on_gradient(int i);
  void gradient_is_ready(int i);
  void put_into_bucket(int i);
  void launch_full_buckets();
  void launch(size_t bucket);
  void begin_iteration();
  void finish_first_static_iteration();
  void finish();
  void make_buckets(const std::vector<int>& order);
  void order_as_seen();
  std::vector<bool> reached_from(const std::vector<TensorBase>& outputs) const;
  [[noreturn]] void raise_unfinished() const;
  bool is_view_of_bucket(const TensorBase& grad, int i) const;
  std::string names_of(const std::vector<int>& which) const;

  std::vector<TensorBase> parameters_;
  std::vector<std::string> names_;
  std::shared_ptr<distributed::ProcessGroup> group_;
  ReducerOptions options_;
  std::vector<uint64_t> hooks_;
  CommHook comm_hook_;

  std::vector<Bucket> buckets_;
  std::vector<std::pair<int, int>> place_;  // of each parameter: bucket, member
  std::vector<std::function<TensorBase()>> hook_results_;

  bool expecting_ = false;  // hooks count
  bool begun_ = false;      // a gradient of this iteration came, and it is not finished
  size_t next_bucket_ = 0;  // to be launched
  int overlapped_ = 0;
  std::vector<bool> ready_;   // in this iteration
  std::vector<bool> unused_;  // found to be, in this iteration
  std::vector<int> seen_;     // in the order of readiness; of the first iteration
  bool ordered_ = false;      // buckets are as seen
  // Static graphs: how often each gradient comes in a backward; empty until the first was seen.
  std::vector<int> comes_, came_;
  std::vector<int> used_somewhere_;  // on how many ranks; empty where all are used everywhere
};

// Called while the end of a backward waits: may raise, for Ctrl-C.
extern void (*while_waiting)();

}  // namespace tessera::parallel
