// Datasets: samples by index.
#pragma once
#include <array>
#include <concepts>
#include <memory>
#include <tuple>
#include <vector>

#include "tessera/face/tensor.h"

namespace tessera::data {

// The tensors of a sample, or of a batch. Of two, as in most datasets:
//   for (auto [x, y] : loader)
// Of other numbers: batch[i], or auto [a, b, c] = batch.as<3>().
class Batch {
 public:
  Batch() = default;
  Batch(std::initializer_list<Tensor> tensors) : tensors_(tensors) {}
  explicit Batch(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {}

  size_t size() const { return tensors_.size(); }
  Tensor& operator[](size_t i) { return tensors_[i]; }
  const Tensor& operator[](size_t i) const { return tensors_[i]; }
  auto begin() const { return tensors_.begin(); }
  auto end() const { return tensors_.end(); }
  void push_back(Tensor t) { tensors_.push_back(std::move(t)); }
  template <size_t N>
  std::array<Tensor, N> as() const {
    check_size(N);
    std::array<Tensor, N> out;
    for (size_t i = 0; i < N; ++i) out[i] = tensors_[i];
    return out;
  }
  template <size_t I>
  Tensor get() const {
    check_size(2);
    return tensors_[I];
  }
  Batch to(Device device, bool non_blocking = false) const;
  // In memory that devices read directly; what is on a device stays there.
  Batch pin_memory() const;

 private:
  void check_size(size_t wanted) const;
  std::vector<Tensor> tensors_;
};
using Sample = Batch;

class Dataset {
 public:
  virtual ~Dataset() = default;
  // Called by several threads at once where the loader has workers.
  virtual Sample get(int64_t index) const = 0;
  virtual int64_t size() const = 0;
  // All samples of a list of indices, stacked; the list lies on index_device().
  virtual Batch get_batch(const Tensor& indices) const;
  virtual Device index_device() const { return {}; }
  // Is a batch gathered by get_batch, or are samples taken one by one and collated?
  virtual bool gathers() const { return false; }
};

// Samples of one batch, stacked column by column.
Batch default_collate(const std::vector<Sample>& samples);
// The numbers of a list of indices.
std::vector<int64_t> numbers_of(const Tensor& indices);
Tensor index_tensor(const std::vector<int64_t>& indices);

// A dataset of any class, shared.
class DatasetRef {
 public:
  template <std::derived_from<Dataset> D>
  DatasetRef(D dataset) : dataset_(std::make_shared<const D>(std::move(dataset))) {}
  DatasetRef(std::shared_ptr<const Dataset> dataset) : dataset_(std::move(dataset)) {}
  const Dataset& operator*() const { return *dataset_; }
  const Dataset* operator->() const { return dataset_.get(); }

 private:
  std::shared_ptr<const Dataset> dataset_;
};

// The rows of tensors of the same length; a batch is one call for each tensor.
class TensorDataset : public Dataset {
 public:
  template <std::convertible_to<const Tensor&>... T>
  explicit TensorDataset(const T&... tensors)
      : TensorDataset(std::vector<Tensor>{static_cast<const Tensor&>(tensors)...}) {}
  explicit TensorDataset(std::vector<Tensor> tensors);
  Sample get(int64_t index) const override;
  int64_t size() const override { return tensors[0].size(0); }
  Batch get_batch(const Tensor& indices) const override;
  Device index_device() const override { return tensors[0].device(); }
  bool gathers() const override { return true; }

  std::vector<Tensor> tensors;
};

// The samples of a dataset at the given indices.
class Subset : public Dataset {
 public:
  Subset(DatasetRef dataset, std::vector<int64_t> indices);
  Sample get(int64_t index) const override;
  int64_t size() const override { return static_cast<int64_t>(indices.size()); }
  Batch get_batch(const Tensor& indices) const override;
  Device index_device() const override { return dataset->index_device(); }
  bool gathers() const override { return dataset->gathers(); }

  DatasetRef dataset;
  std::vector<int64_t> indices;

 private:
  Tensor places_;  // the indices, where the dataset wants them
};

// Datasets one after another.
class ConcatDataset : public Dataset {
 public:
  explicit ConcatDataset(std::vector<DatasetRef> datasets);
  Sample get(int64_t index) const override;
  int64_t size() const override { return cumulative_sizes.back(); }

  std::vector<DatasetRef> datasets;
  std::vector<int64_t> cumulative_sizes;
};

// Subsets of the given lengths, of which each sample is in one.
std::vector<Subset> random_split(DatasetRef dataset, const std::vector<int64_t>& lengths,
                                 Mt19937Generator* generator = nullptr);
// ... of the given shares, which sum to 1.
std::vector<Subset> random_split(DatasetRef dataset, const std::vector<double>& shares,
                                 Mt19937Generator* generator = nullptr);

}  // namespace tessera::data

template <>
struct std::tuple_size<tessera::data::Batch> : std::integral_constant<size_t, 2> {};
template <size_t I>
struct std::tuple_element<I, tessera::data::Batch> {
  using type = tessera::Tensor;
};
