// DataLoader: batches of a dataset, made in this thread or ahead of it by workers.
//   data::DataLoader loader(dataset, {.batch_size = 32, .shuffle = true});
//   for (auto [x, y] : loader) ...
#pragma once
#include <functional>
#include <iterator>

#include "tessera/data/sampler.h"

namespace tessera::data {

struct DataLoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;
  std::shared_ptr<Sampler> sampler = nullptr;  // in the place of shuffle
  int64_t num_workers = 0;                     // threads
  std::function<Batch(const std::vector<Sample>&)> collate_fn = {};
  bool pin_memory = false;  // batches in memory that devices read directly, where there is one
  bool drop_last = false;
  Mt19937Generator* generator = nullptr;
  int64_t prefetch_factor = 2;  // batches that each worker may be ahead
};

// What a worker may know of itself, for random numbers of its own.
struct WorkerInfo {
  int64_t id;
  int64_t num_workers;
  uint64_t seed;
};
// Of this thread; null where it is no worker.
const WorkerInfo* get_worker_info();

class DataLoader {
  class Pass;

 public:
  DataLoader(DatasetRef dataset, DataLoaderOptions options = {});

  class iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    iterator() = default;
    const Batch& operator*() const;
    iterator& operator++();
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return !pass_; }

   private:
    friend class DataLoader;
    explicit iterator(std::shared_ptr<Pass> pass);
    std::shared_ptr<Pass> pass_;  // null at the end
  };
  // A new pass over the dataset. An error in a dataset, also in a worker, is raised here or by ++.
  iterator begin() const;
  std::default_sentinel_t end() const { return {}; }
  // The number of batches.
  int64_t size() const;
  const Dataset& dataset() const { return *dataset_; }

 private:
  DatasetRef dataset_;
  DataLoaderOptions options_;
  std::shared_ptr<Sampler> sampler_;
};

}  // namespace tessera::data
