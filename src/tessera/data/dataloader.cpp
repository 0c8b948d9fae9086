#include "tessera/data/dataloader.h"

#include <condition_variable>
#include <map>
#include <thread>

#include "tessera/face/cuda.h"

namespace tessera::data {

namespace {
thread_local const WorkerInfo* worker_info = nullptr;
}

const WorkerInfo* get_worker_info() { return worker_info; }

// One pass over a loader's dataset. Workers take the numbers of batches in order and put the
// batches, or the errors, into `done_`; the loop takes them from there in order.
class DataLoader::Pass {
 public:
  explicit Pass(const DataLoader& loader)
      : dataset_(loader.dataset_),
        collate_(loader.options_.collate_fn),
        pins_(loader.options_.pin_memory && cuda::is_available()),
        batch_size_(loader.options_.batch_size),
        total_(loader.size()),
        gathers_(!collate_ && dataset_->gathers()) {
    order_ = loader.sampler_->indices();
    if (gathers_) order_ = order_.to(dataset_->index_device());
    grad_ = autograd::grad_enabled();
  }

  void start(const DataLoaderOptions& o, int64_t base_seed) {
    int64_t workers = std::min(o.num_workers, total_);
    ahead_ = workers * o.prefetch_factor;
    done_.resize(static_cast<size_t>(ahead_));
    threads_.reserve(static_cast<size_t>(workers));
    for (int64_t id = 0; id < workers; ++id) {
      WorkerInfo info{id, o.num_workers, static_cast<uint64_t>(base_seed + id)};
      threads_.emplace_back([this, info] {
        worker_info = &info;
        work();
      });
    }
  }

  ~Pass() {
    {
      std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    room_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  // False at the end.
  bool next() {
    if (taken_ == total_) return false;
    if (threads_.empty()) {
      now = fetch(taken_++);
      return true;
    }
    Done done;
    {
      std::unique_lock lock(mutex_);
      arrived_.wait(lock, [&] { return slot_of(taken_).arrived; });
      done = std::exchange(slot_of(taken_), {});
      ++taken_;
    }
    room_.notify_all();
    if (done.error) std::rethrow_exception(done.error);
    now = std::move(done.batch);
    return true;
  }

  Batch now;

 private:
  struct Done {
    Batch batch;
    std::exception_ptr error;
    bool arrived = false;
  };
  // At most `ahead_` batches are under way: a worker, which must not throw, finds its slot made.
  Done& slot_of(int64_t number) { return done_[static_cast<size_t>(number % ahead_)]; }

  Batch fetch(int64_t number) const {
    Batch batch = collected(number);
    return pins_ ? batch.pin_memory() : batch;
  }

  Batch collected(int64_t number) const {
    Tensor some = order_.slice(0, number * batch_size_, (number + 1) * batch_size_);
    if (!collate_) return dataset_->get_batch(some);
    std::vector<Sample> samples;
    for (int64_t i : numbers_of(some)) samples.push_back(dataset_->get(i));
    return collate_(samples);
  }

  void work() {
    autograd::GradMode mode(grad_);
    std::unique_lock lock(mutex_);
    while (true) {
      room_.wait(lock,
                 [&] { return stopped_ || started_ == total_ || started_ < taken_ + ahead_; });
      if (stopped_ || started_ == total_) return;
      int64_t number = started_++;
      lock.unlock();
      Done done;
      try {
        done.batch = fetch(number);
      } catch (...) {
        done.error = std::current_exception();
      }
      done.arrived = true;
      lock.lock();
      slot_of(number) = std::move(done);
      arrived_.notify_all();
    }
  }

  DatasetRef dataset_;
  std::function<Batch(const std::vector<Sample>&)> collate_;
  bool pins_;
  int64_t batch_size_, total_, ahead_ = 0;
  bool gathers_, grad_ = true;
  Tensor order_;
  std::mutex mutex_;
  std::condition_variable room_, arrived_;
  std::vector<Done> done_;
  int64_t started_ = 0, taken_ = 0;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

DataLoader::DataLoader(DatasetRef dataset, DataLoaderOptions options)
    : dataset_(std::move(dataset)), options_(std::move(options)) {
  TS_CHECK_VALUE(options_.num_workers >= 0,
                 "num_workers option should be non-negative; use num_workers=0 to disable "
                 "multiprocessing.");
  TS_CHECK_VALUE(
      options_.batch_size > 0,
      "batch_size should be a positive integer value, but got batch_size=", options_.batch_size);
  TS_CHECK_VALUE(options_.prefetch_factor > 0, "prefetch_factor option should be positive");
  TS_CHECK_VALUE(!options_.sampler || !options_.shuffle,
                 "sampler option is mutually exclusive with shuffle");
  sampler_ = options_.sampler;
  if (!sampler_ && options_.shuffle)
    sampler_ = std::make_shared<RandomSampler>(
        dataset_->size(), RandomSamplerOptions{.generator = options_.generator});
  if (!sampler_) sampler_ = std::make_shared<SequentialSampler>(dataset_->size());
}

int64_t DataLoader::size() const {
  int64_t n = sampler_->size(), batch = options_.batch_size;
  return options_.drop_last ? n / batch : (n + batch - 1) / batch;
}

DataLoader::iterator DataLoader::begin() const {
  // Drawn whether or not there are workers: what is drawn afterwards does not depend on them.
  int64_t base_seed = draw_seed(options_.generator);
  auto pass = std::make_shared<Pass>(*this);
  pass->start(options_, base_seed);
  return iterator(std::move(pass));
}

DataLoader::iterator::iterator(std::shared_ptr<Pass> pass) : pass_(std::move(pass)) { ++*this; }

const Batch& DataLoader::iterator::operator*() const { return pass_->now; }

DataLoader::iterator& DataLoader::iterator::operator++() {
  if (!pass_->next()) pass_.reset();
  return *this;
}

}  // namespace tessera::data
