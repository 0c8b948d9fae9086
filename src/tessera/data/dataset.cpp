#include "tessera/data/dataset.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tessera/face/build.h"

namespace tessera::data {

void Batch::check_size(size_t wanted) const {
  TS_CHECK_VALUE(size() == wanted, "a batch of ", size(), " tensors was unpacked into ", wanted);
}

Batch Batch::to(Device device, bool non_blocking) const {
  Batch out;
  for (const Tensor& t : tensors_) out.push_back(t.to(device, non_blocking));
  return out;
}

Batch Batch::pin_memory() const {
  Batch out;
  for (const Tensor& t : tensors_) out.push_back(t.device().is_cpu() ? t.pin_memory() : t);
  return out;
}

Tensor index_tensor(const std::vector<int64_t>& indices) { return tensor(indices); }

std::vector<int64_t> numbers_of(const Tensor& indices) {
  Tensor host = indices.cpu().contiguous();
  const auto* at = host.data_ptr<int64_t>();
  return {at, at + host.numel()};
}

Batch default_collate(const std::vector<Sample>& samples) {
  TS_CHECK_VALUE(!samples.empty(), "default_collate: there are no samples");
  Batch out;
  for (size_t column = 0; column < samples[0].size(); ++column) {
    std::vector<TensorBase> parts;
    for (const Sample& sample : samples) {
      TS_CHECK(sample.size() == samples[0].size(),
               "each element in list of batch should be of equal size");
      parts.push_back(sample[column]);
    }
    out.push_back(Tensor(op::stack(parts)));
  }
  return out;
}

Batch Dataset::get_batch(const Tensor& indices) const {
  std::vector<Sample> samples;
  for (int64_t i : numbers_of(indices)) samples.push_back(get(i));
  return default_collate(samples);
}

TensorDataset::TensorDataset(std::vector<Tensor> given) : tensors(std::move(given)) {
  TS_CHECK_VALUE(!tensors.empty(), "TensorDataset: there are no tensors");
  for (const Tensor& t : tensors)
    TS_CHECK_VALUE(t.dim() > 0 && t.size(0) == tensors[0].size(0), "Size mismatch between tensors");
}

Sample TensorDataset::get(int64_t index) const {
  Sample out;
  for (const Tensor& t : tensors) out.push_back(t[index]);
  return out;
}

Batch TensorDataset::get_batch(const Tensor& indices) const {
  Batch out;
  for (const Tensor& t : tensors)
    out.push_back(
        t.index_select(0, indices.device() == t.device() ? indices : indices.to(t.device())));
  return out;
}

Subset::Subset(DatasetRef whole, std::vector<int64_t> some)
    : dataset(std::move(whole)), indices(std::move(some)) {
  if (dataset->gathers()) places_ = index_tensor(indices).to(dataset->index_device());
}

Sample Subset::get(int64_t index) const {
  TS_CHECK_INDEX(index >= -size() && index < size(), "list index out of range");
  return dataset->get(indices[static_cast<size_t>(index < 0 ? index + size() : index)]);
}

Batch Subset::get_batch(const Tensor& which) const {
  if (places_.defined()) return dataset->get_batch(places_.index_select(0, which));
  return Dataset::get_batch(which);
}

ConcatDataset::ConcatDataset(std::vector<DatasetRef> given) : datasets(std::move(given)) {
  TS_CHECK_VALUE(!datasets.empty(), "datasets should not be an empty iterable");
  for (const DatasetRef& dataset : datasets)
    cumulative_sizes.push_back((cumulative_sizes.empty() ? 0 : cumulative_sizes.back()) +
                               dataset->size());
}

Sample ConcatDataset::get(int64_t index) const {
  if (index < 0) {
    TS_CHECK_VALUE(-index <= size(), "absolute value of index should not exceed dataset length");
    index += size();
  }
  TS_CHECK_INDEX(index < size(), "list index out of range");
  auto at = std::upper_bound(cumulative_sizes.begin(), cumulative_sizes.end(), index);
  auto which = static_cast<size_t>(at - cumulative_sizes.begin());
  return datasets[which]->get(index - (which ? cumulative_sizes[which - 1] : 0));
}

std::vector<Subset> random_split(DatasetRef dataset, const std::vector<int64_t>& lengths,
                                 Mt19937Generator* generator) {
  for (int64_t length : lengths)
    TS_CHECK_VALUE(length >= 0, "random_split: a length is negative: ", length);
  int64_t total = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  TS_CHECK_VALUE(total == dataset->size(),
                 "Sum of input lengths does not equal the length of the input dataset!");
  std::vector<int64_t> order = numbers_of(randperm(total, {}, {}, false, generator));
  std::vector<Subset> parts;
  auto at = order.begin();
  for (int64_t length : lengths) {
    parts.emplace_back(dataset, std::vector<int64_t>(at, at + length));
    at += length;
  }
  return parts;
}

std::vector<Subset> random_split(DatasetRef dataset, const std::vector<double>& shares,
                                 Mt19937Generator* generator) {
  double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  TS_CHECK_VALUE(std::abs(sum - 1) <= 1e-9 && sum <= 1,
                 "Sum of input lengths does not equal the length of the input dataset!");
  int64_t total = dataset->size(), given = 0;
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < shares.size(); ++i) {
    TS_CHECK_VALUE(shares[i] >= 0 && shares[i] <= 1, "Fraction at index ", i,
                   " is not between 0 and 1");
    lengths.push_back(static_cast<int64_t>(std::floor(static_cast<double>(total) * shares[i])));
    given += lengths.back();
  }
  // The rest is given out one by one.
  for (int64_t i = 0; i < total - given; ++i) ++lengths[static_cast<size_t>(i) % lengths.size()];
  return random_split(std::move(dataset), lengths, generator);
}

}  // namespace tessera::data
