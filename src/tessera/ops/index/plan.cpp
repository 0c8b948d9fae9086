#include "tessera/base/deterministic.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/index.h"
#include "tessera/ops/index/advanced.h"

namespace tessera {

namespace {

// One dimension of the tensor to be indexed, with its index where it has one.
struct Axis {
  int64_t size, stride;
  int number;
  TensorBase index;
};

bool is_mask(const TensorBase& t) {
  return t.dtype() == DType::kBool || t.dtype() == DType::kUInt8;
}

// Do these dimensions step through memory as one?
bool merges(const TensorBase& self, int first, int n) {
  for (int d = first; d + 1 < first + n; ++d)
    if (self.strides()[d] != self.strides()[d + 1] * self.sizes()[d + 1]) return false;
  return true;
}

// A mask becomes one index over its dimensions taken together where they lie so, else one for each.
void add_mask(std::vector<Axis>& axes, const TensorBase& self, const TensorBase& mask_, int first) {
  TensorBase mask = mask_;
  int n = mask.dim();
  for (int d = 0; d < n; ++d)
    TS_CHECK_INDEX(mask.sizes()[d] == self.sizes()[first + d], "The shape of the mask ",
                   mask.sizes(), " at index ", d,
                   " does not match the shape of the indexed tensor ", self.sizes(), " at index ",
                   first + d);
  if (!(mask.device() == self.device())) mask = op::_to_device(mask, self.device());
  if (n > 0 && merges(self, first, n)) {
    axes.push_back({mask.numel(), self.strides()[first + n - 1], first, op::_flat_nonzero(mask)});
    return;
  }
  TensorBase positions = op::nonzero(mask);
  for (int d = 0; d < n; ++d) {
    TensorBase column = alias(positions, {positions.sizes()[0]}, {positions.strides()[0]},
                              positions.storage_offset() + d * positions.strides()[1]);
    axes.push_back({self.sizes()[first + d], self.strides()[first + d], first + d, column});
  }
}

std::vector<Axis> axes_of(const TensorBase& self, std::span<const TensorBase> indices) {
  int taken = 0;
  for (const TensorBase& t : indices) {
    if (t.defined())
      TS_CHECK_INDEX(is_mask(t) || t.dtype() == DType::kInt64 || t.dtype() == DType::kInt32,
                     "tensors used as indices must be long, int, byte or bool tensors");
    taken += t.defined() && is_mask(t) ? t.dim() : 1;
  }
  TS_CHECK_INDEX(taken <= self.dim(), "too many indices for tensor of dimension ", self.dim(),
                 " (got ", taken, ")");
  std::vector<Axis> axes;
  int next = 0;
  for (const TensorBase& t : indices) {
    if (t.defined() && is_mask(t)) {
      add_mask(axes, self, t, next);
      next += t.dim();
      continue;
    }
    axes.push_back({self.sizes()[next], self.strides()[next], next,
                    t.defined() ? as_index(t, self) : TensorBase()});
    ++next;
  }
  for (; next < self.dim(); ++next)
    axes.push_back({self.sizes()[next], self.strides()[next], next, {}});
  return axes;
}

// The common shape of the indices; raises where there is none.
Dims index_shape(const std::vector<Axis>& axes) {
  Dims shape;
  auto all_shapes = [&] {
    std::string text;
    for (const Axis& a : axes)
      if (a.index.defined()) text += cat(text.empty() ? "" : ", ", a.index.sizes());
    return text;
  };
  for (const Axis& a : axes) {
    if (!a.index.defined()) continue;
    const Dims& s = a.index.sizes();
    Dims longer = s.size() > shape.size() ? s : shape;
    const Dims& shorter = s.size() > shape.size() ? shape : s;
    size_t lead = longer.size() - shorter.size();
    for (size_t d = 0; d < shorter.size(); ++d) {
      int64_t& to = longer[lead + d];
      TS_CHECK_INDEX(
          to == shorter[d] || to == 1 || shorter[d] == 1,
          "shape mismatch: indexing tensors could not be broadcast together with shapes ",
          all_shapes());
      if (to == 1) to = shorter[d];
    }
    shape = longer;
  }
  return shape;
}

}  // namespace

std::vector<int64_t> IndexPlan::ints(IndexError error, const Combine* combine) const {
  std::vector<int64_t> all = {before, static_cast<int64_t>(indices.size()),
                              static_cast<int64_t>(error)};
  if (combine) all.push_back(static_cast<int64_t>(*combine));
  all.insert(all.end(), numbers.begin(), numbers.end());
  if (combine) all.push_back(deterministic());
  return all;
}

IndexPlan plan_index(const TensorBase& self, std::span<const TensorBase> indices) {
  std::vector<Axis> axes = axes_of(self, indices);
  Dims common = index_shape(axes);
  // Indexed dimensions that are not neighbours go to the front.
  auto indexed = [](const Axis& a) { return a.index.defined(); };
  auto first = std::find_if(axes.begin(), axes.end(), indexed);
  auto end = std::find_if_not(first, axes.end(), indexed);
  if (std::find_if(end, axes.end(), indexed) != axes.end())
    std::stable_partition(axes.begin(), axes.end(), indexed);
  IndexPlan plan;
  Dims sizes, strides;
  int64_t points = 1;
  for (int64_t n : common) points *= n;
  bool seen = false;
  for (const Axis& a : axes) {
    sizes.push_back(a.size);
    strides.push_back(a.stride);
    if (!a.index.defined()) {
      plan.shape.push_back(a.size);
      if (!seen) ++plan.before;
      continue;
    }
    TS_CHECK_INDEX(a.size > 0 || points == 0, "index is out of bounds for dimension with size 0");
    if (!seen)
      for (int64_t n : common) plan.shape.push_back(n);
    seen = true;
    plan.numbers.push_back(a.number);
    plan.indices.push_back(alias(a.index, common,
                                 broadcast_strides(a.index.sizes(), a.index.strides(), common),
                                 a.index.storage_offset()));
  }
  plan.view = alias(self, sizes, strides, self.storage_offset());
  return plan;
}

}  // namespace tessera
