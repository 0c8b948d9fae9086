#include "tessera/face/build.h"

#include <cstring>

namespace tessera {

namespace {

// Sizes from the first items; the walk below raises where others differ.
Dims sizes_of(const Nested& data) {
  Dims sizes;
  for (const Nested* n = &data; n->is_list();) {
    sizes.push_back(static_cast<int64_t>(n->items().size()));
    if (n->items().empty()) break;
    n = &n->items()[0];
  }
  return sizes;
}

template <class Visit>
void walk(const Nested& data, const Dims& sizes, size_t depth, Visit& visit) {
  if (depth == sizes.size()) {
    TS_CHECK_VALUE(!data.is_list(), "too many dimensions: a list stands where dimension ", depth,
                   " has numbers");
    visit(data.value());
    return;
  }
  TS_CHECK_TYPE(data.is_list(), "not a sequence: a number stands where dimension ", depth,
                " has lists");
  int64_t n = static_cast<int64_t>(data.items().size());
  TS_CHECK_VALUE(n == sizes[depth], "expected sequence of length ", sizes[depth], " at dim ", depth,
                 " (got ", n, ")");
  for (const Nested& item : data.items()) walk(item, sizes, depth + 1, visit);
}

DType dtype_of(const std::vector<Scalar>& values) {
  Scalar::Kind kind = Scalar::Kind::kBool;
  for (const Scalar& s : values) kind = std::max(kind, s.kind);
  if (values.empty() || kind == Scalar::Kind::kDouble) return default_dtype();
  return kind == Scalar::Kind::kInt ? DType::kInt64 : DType::kBool;
}

Tensor placed(TensorBase host, std::optional<DType> dtype, std::optional<Device> device,
              bool requires_grad) {
  // Whatever mode surrounds the call, what the program writes down is a leaf.
  autograd::GradMode off(false);
  Tensor t{std::move(host)};
  if (dtype) t = t.to(*dtype);
  if (device) t = t.to(*device);
  if (requires_grad) t.requires_grad_();
  return t;
}

template <class T>
constexpr DType kDTypeOf = std::is_same_v<T, float>     ? DType::kFloat32
                           : std::is_same_v<T, double>  ? DType::kFloat64
                           : std::is_same_v<T, int32_t> ? DType::kInt32
                                                        : DType::kInt64;

template <class T>
TensorBase copied(const T* values, const Dims& sizes) {
  TensorBase t = new_empty(sizes, kDTypeOf<T>, Device{});
  if (t.numel()) std::memcpy(t.raw(), values, t.nbytes());
  return t;
}

}  // namespace

Tensor tensor(const Nested& data, std::optional<DType> dtype, std::optional<Device> device,
              bool requires_grad) {
  Dims sizes = sizes_of(data);
  std::vector<Scalar> values;
  auto keep = [&](Scalar s) { values.push_back(s); };
  walk(data, sizes, 0, keep);
  DType to = dtype.value_or(dtype_of(values));
  // Through the widest type of the target's kind, so that it is rounded once.
  if (is_floating(to)) {
    std::vector<double> wide;
    for (const Scalar& s : values) wide.push_back(s.to_double());
    return placed(copied(wide.data(), sizes), to, device, requires_grad);
  }
  std::vector<int64_t> wide;
  for (const Scalar& s : values)
    wide.push_back(to == DType::kBool ? s.to_double() != 0 : s.to_int());
  return placed(copied(wide.data(), sizes), to, device, requires_grad);
}

template <class T>
Tensor tensor(const std::vector<T>& values, std::optional<DType> dtype,
              std::optional<Device> device, bool requires_grad) {
  DType usual = std::is_floating_point_v<T> ? default_dtype() : DType::kInt64;
  return placed(copied(values.data(), Dims{static_cast<int64_t>(values.size())}),
                dtype.value_or(usual), device, requires_grad);
}
template Tensor tensor(const std::vector<float>&, std::optional<DType>, std::optional<Device>,
                       bool);
template Tensor tensor(const std::vector<double>&, std::optional<DType>, std::optional<Device>,
                       bool);
template Tensor tensor(const std::vector<int>&, std::optional<DType>, std::optional<Device>, bool);
template Tensor tensor(const std::vector<int64_t>&, std::optional<DType>, std::optional<Device>,
                       bool);

}  // namespace tessera
