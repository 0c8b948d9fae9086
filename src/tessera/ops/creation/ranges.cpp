// Numbers in steps.
#include <cmath>

#include "tessera/driver/current.h"
#include "tessera/ops/creation/options.h"

namespace tessera {

namespace {

TensorBase ramp(const char* kernel, int64_t count, DType dtype, const CreationOptions& o,
                std::span<const int64_t> ints, std::span<const double> doubles) {
  TensorBase out = o.unallocated({count}, dtype);
  allocate(out.storage());
  if (count > 0) launch(kernel, {&out, 1}, {}, ints, doubles);
  return o.finish(std::move(out));
}

TensorBase arange(Scalar start, Scalar end, Scalar step, const CreationOptions& o) {
  bool whole = !start.is_double() && !end.is_double() && !step.is_double();
  DType dtype = o.dtype.value_or(whole ? DType::kInt64 : default_dtype());
  TS_CHECK_IMPLEMENTED(!is_complex(dtype) && dtype != DType::kBool,
                       "\"arange_cpu\" not implemented for '", dtype_title(dtype), "'");
  TS_CHECK(!start.is_complex() && !end.is_complex() && !step.is_complex(),
           "arange(): complex numbers have no order");
  double count;
  double from = start.to_double(), to = end.to_double(), by = step.to_double();
  TS_CHECK(by > 0 || by < 0, "step must be nonzero");
  TS_CHECK(std::isfinite(from) && std::isfinite(to), "unsupported range: ", from, " -> ", to);
  TS_CHECK(by > 0 ? to >= from : to <= from,
           "upper bound and lower bound inconsistent with step sign");
  if (dtype == DType::kInt64 && std::trunc(by) == by) {
    // In whole steps between whole numbers, exact where they leave what a double can tell apart.
    // Everything else counts by the numbers given.
    using Wide = __int128;
    const int64_t stride = step.to_int();
    Wide length = static_cast<Wide>(end.to_int()) - start.to_int() + stride;
    count = static_cast<double>((length - (stride > 0 ? 1 : -1)) / stride);
  } else {
    count = std::ceil((to - from) / by);
  }
  TS_CHECK(count >= 0 && count <= 0x1p62, "invalid size, possible overflow?");
  int64_t ints[] = {start.to_int(), step.to_int()};
  double doubles[] = {start.to_double(), step.to_double()};
  return ramp("arange", static_cast<int64_t>(count), dtype, o, ints, doubles);
}

// An end of linspace: a number, or a tensor of one.
Scalar end_of(const Call& c, int arg) {
  return c.args[arg].is_tensor() ? host_scalar(c.tensor(arg)) : c.scalar(arg);
}

TensorBase spaced(const Call& c, const char* kernel, double base, int options_at) {
  auto dims = [&](int i) { return c.args[i].is_tensor() ? c.tensor(i).dim() : 0; };
  if (dims(0) > 0 || dims(1) > 0) {
    if (c.args[0].is_tensor() && c.args[1].is_tensor())
      raise(ErrorKind::kRuntime,
            cat(kernel, " only supports 0-dimensional start and end tensors, but got start with ",
                dims(0), " dimension(s) and end with ", dims(1), " dimension(s)."));
    raise(ErrorKind::kRuntime, cat(kernel,
                                   " only supports 0-dimensional start and end tensors, "
                                   "but got ",
                                   c.args[0].is_tensor() ? "start" : "end", " with ",
                                   dims(0) + dims(1), " dimension(s)."));
  }
  Scalar start = end_of(c, 0), end = end_of(c, 1);
  int64_t steps = c.integer(2);
  TS_CHECK(steps >= 0, "number of steps must be non-negative");
  CreationOptions o(c, options_at);
  DType natural =
      start.is_complex() || end.is_complex() ? complex_dtype(default_dtype()) : default_dtype();
  DType dtype = o.dtype.value_or(natural);
  TS_CHECK(!is_complex(natural) || is_complex(dtype), kernel, "(): inferred dtype ",
           dtype_title(natural), " can't be safely cast to passed dtype ", dtype_title(dtype));
  TS_CHECK_IMPLEMENTED(dtype != DType::kBool, "\"", kernel, "_cpu\" not implemented for 'Bool'");
  if (steps > 0) check_fits(start, dtype);
  if (steps > 1) check_fits(end, dtype);
  int64_t ints[] = {start.to_int(), end.to_int()};
  double doubles[] = {start.to_double(), start.im, end.to_double(), end.im, base};
  return ramp(kernel, steps, dtype, o, ints, doubles);
}

}  // namespace

TS_OP({
    .schema = "arange(Scalar end, *, dtype? dtype=None, device? device=None, bool "
              "requires_grad=False, layout? layout=None, bool? pin_memory=False) -> Tensor",
    .doc = "Numbers from start (0) up to but without end, in steps.",
    .example = "torch.arange(5)",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      return arange(Scalar(0), c.scalar(0), Scalar(1), CreationOptions(c, 1));
    },
    .samples = {{"5"}, {"2.5"}, {"0"}},
});
TS_OP({
    .schema = "arange(Scalar start, Scalar end, *, dtype? dtype=None, device? device=None, bool "
              "requires_grad=False, layout? layout=None, bool? pin_memory=False) -> Tensor",
    .doc = "Numbers from start up to but without end, in steps of one.",
    .example = "torch.arange(1, 4)",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      return arange(c.scalar(0), c.scalar(1), Scalar(1), CreationOptions(c, 2));
    },
    .samples = {{"1, 4"}, {"-1, 2.5"}},
});
TS_OP({
    .schema = "arange(Scalar start, Scalar end, Scalar step, *, dtype? dtype=None, device? "
              "device=None, bool requires_grad=False, layout? layout=None, bool? "
              "pin_memory=False) -> Tensor",
    .doc = "Numbers from start up to but without end, in steps.",
    .example = "torch.arange(1, 2.5, 0.5)",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      return arange(c.scalar(0), c.scalar(1), c.scalar(2), CreationOptions(c, 3));
    },
    .samples = {{"1, 2.5, 0.5"}, {"5, 0, -2"}},
});

TS_OP({
    .schema = "range(Scalar start, Scalar end, Scalar step=1, *, dtype? dtype=None, device? "
              "device=None, bool requires_grad=False, layout? layout=None, bool? "
              "pin_memory=False) -> Tensor",
    .doc = "Numbers from start to end inclusive, in steps. arange is the one to use.",
    .example = "torch.range(1, 4)",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      double from = c.number(0), to = c.number(1), by = c.number(2);
      TS_CHECK(by > 0 || by < 0, "step must be nonzero");
      TS_CHECK(std::isfinite(from) && std::isfinite(to), "unsupported range: ", from, " -> ", to);
      TS_CHECK(by > 0 ? to >= from : to <= from,
               "upper bound and lower bound inconsistent with step sign");
      CreationOptions o(c, 3);
      int64_t ints[] = {c.scalar(0).to_int(), c.scalar(2).to_int()};
      double doubles[] = {from, by};
      return ramp("arange", static_cast<int64_t>((to - from) / by) + 1,
                  o.dtype.value_or(default_dtype()), o, ints, doubles);
    },
    .samples = {{"1, 4"}, {"0, 1, 0.25"}},
});

TS_OP({
    .schema = "linspace(Tensor|Scalar start, Tensor|Scalar end, int steps, *, dtype? dtype=None, "
              "device? device=None, bool requires_grad=False, layout? layout=None, bool? "
              "pin_memory=False) -> Tensor",
    .doc = "So many numbers at even distances, from start to end inclusive.",
    .example = "torch.linspace(3, 10, steps=5)",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs { return spaced(c, "linspace", 0, 3); },
    .not_differentiable = true,
    .samples = {{"3, 10, 5"}, {"-1.0, 1.0, 4"}, {"0, 1, 1"}, {"0, 1, 0"}},
});

TS_OP({
    .schema = "logspace(Tensor|Scalar start, Tensor|Scalar end, int steps, float base=10.0, *, "
              "dtype? dtype=None, device? device=None, bool requires_grad=False, layout? "
              "layout=None, bool? pin_memory=False) -> Tensor",
    .doc = "Powers of a base whose exponents are at even distances, from start to end inclusive.",
    .example = "torch.logspace(0, 2, steps=3)",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs { return spaced(c, "logspace", c.number(3), 4); },
    .not_differentiable = true,
    .samples = {{"0, 2, 3"}, {"-1.0, 1.0, 4, 2.0"}},
});

}  // namespace tessera
