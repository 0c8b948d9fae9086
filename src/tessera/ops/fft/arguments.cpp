#include "tessera/ops/fft/arguments.h"

#include <cmath>

#include "tessera/gen/copy.h"
#include "tessera/gen/fft.h"

namespace tessera::fft {

double scale_of(int64_t norm, const Dims& sizes, const Dims& dims) {
  if (norm == kNone) return 1;
  double n = 1;
  for (int64_t d : dims) n *= static_cast<double>(sizes[static_cast<size_t>(d)]);
  return norm == kRoot ? 1 / std::sqrt(n) : 1 / n;
}

int64_t norm_of(const Call& c, int arg, bool forward) {
  std::string_view norm = c.has(arg) ? c.text(arg) : "backward";
  if (norm == "ortho") return kRoot;
  if (norm == "backward") return forward ? kNone : kFull;
  TS_CHECK(norm == "forward", "Invalid normalization mode: \"", norm, "\"");
  return forward ? kFull : kNone;
}

TensorBase promoted(const TensorBase& t) {
  if (is_integral(t.dtype(), true)) return op::_to_dtype(t, default_dtype());
  TS_CHECK(!is_reduced_floating(t.dtype()), "Unsupported dtype ", dtype_title(t.dtype()));
  return t;
}

void check_real(const Call& c, const TensorBase& t) {
  std::string_view name = c.op.name;
  name.remove_prefix(std::min<size_t>(name.find('_') + 1, name.size()));
  TS_CHECK(!is_complex(t.dtype()), name, " expects a real input tensor, but got ",
           dtype_title(t.dtype()));
}

namespace {

int64_t checked_length(int64_t n) {
  TS_CHECK(n >= 1, "Invalid number of data points (", n, ") specified");
  return n;
}

int checked_dim(int64_t d, const TensorBase& t) {
  TS_CHECK_INDEX(t.dim() > 0, "Dimension specified as ", d, " but tensor has no dimensions");
  return wrap_dim(d, t.dim());
}

}  // namespace

Axes one_axis(const Call& c, int n, int dim) {
  const TensorBase& self = c.tensor(0);
  int64_t d = checked_dim(c.integer(dim), self);
  int64_t length = c.has(n) ? c.integer(n) : self.size(d);
  return {{d}, {checked_length(length)}};
}

namespace {

// As the arguments say; lengths that they do not give are -1.
Axes given_axes(const Call& c, int s, int dim, Default otherwise) {
  const TensorBase& self = c.tensor(0);
  Axes out;
  const bool has_dims = c.has(dim) || otherwise == kTwo;
  if (has_dims) {
    out.dims = c.has(dim) ? c.ints(dim) : Dims{-2, -1};
    uint64_t seen = 0;
    for (int64_t& d : out.dims) {
      d = checked_dim(d, self);
      TS_CHECK(!(seen >> d & 1), "FFT dims must be unique");
      seen |= uint64_t{1} << d;
    }
  }
  if (c.has(s)) {
    out.sizes = c.ints(s);
    TS_CHECK(!has_dims || out.dims.size() == out.sizes.size(),
             "When given, dim and shape arguments must have the same length");
    TS_CHECK(out.sizes.ndim() <= self.dim(), "Got shape with ", out.sizes.size(),
             " values but input tensor only has ", self.dim(), " dimensions.");
    if (!has_dims)
      for (int d = self.dim() - out.sizes.ndim(); d < self.dim(); ++d) out.dims.push_back(d);
    return out;
  }
  if (!has_dims)
    for (int d = 0; d < self.dim(); ++d) out.dims.push_back(d);
  out.sizes = Dims(out.dims.size(), -1);
  return out;
}

void complete(const TensorBase& self, Axes& axes) {
  for (size_t i = 0; i < axes.sizes.size(); ++i) {
    if (axes.sizes[i] == -1) axes.sizes[i] = self.size(axes.dims[i]);
    checked_length(axes.sizes[i]);
  }
}

}  // namespace

Axes many_axes(const Call& c, int s, int dim, Default otherwise) {
  Axes out = given_axes(c, s, dim, otherwise);
  complete(c.tensor(0), out);
  return out;
}

Axes axes_to_real(const Call& c, int s, int dim, Default otherwise, int64_t* last) {
  Axes out = given_axes(c, s, dim, otherwise);
  if (out.dims.empty()) return out;
  int64_t& given = out.sizes[out.sizes.size() - 1];
  *last = given == -1 ? 2 * (c.tensor(0).size(out.dims.back()) - 1) : given;
  given = checked_length(*last) / 2 + 1;
  complete(c.tensor(0), out);
  return out;
}

TensorBase resized(const TensorBase& t, const Axes& axes) {
  Dims sizes = t.sizes();
  for (size_t i = 0; i < axes.dims.size(); ++i)
    sizes[static_cast<size_t>(axes.dims[i])] = axes.sizes[i];
  return sizes == t.sizes() ? t : op::_fft_resize(t, sizes.span());
}

}  // namespace tessera::fft
