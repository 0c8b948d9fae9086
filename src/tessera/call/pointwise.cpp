#include "tessera/call/pointwise.h"

#include <algorithm>

#include "tessera/base/blocking.h"
#include "tessera/base/half.h"
#include "tessera/call/mismatch.h"
#include "tessera/call/overlap.h"
#include "tessera/call/types.h"
#include "tessera/driver/current.h"
#include "tessera/fuse/stream.h"

namespace tessera {

namespace {

using fuse::Pointwise;

struct Prepared {
  Pointwise p;
  Device device;
  TensorBase copies[kMaxSources];  // sources that had to be copied first
};

void collect(const Op& op, Args args, Pointwise& p) {
  for (size_t i = 0; i < args.size(); ++i) {
    const Value& v = args[i];
    switch (op.args[i].type) {
      case ArgSpec::Type::kTensor:
      case ArgSpec::Type::kTensorOrScalar:
      case ArgSpec::Type::kNumber:
        if (v.is_tensor())
          p.sources[p.num_sources++].tensor = v.tensor;
        else if (v.is_scalar())
          p.sources[p.num_sources++].immediate = v.scalar;
        break;
      case ArgSpec::Type::kScalar:
      case ArgSpec::Type::kFloat:
        // One that is None is not there: the body was chosen so.
        if (v.is_scalar() && p.num_scalars < fuse::kMaxScalars)
          p.scalars[p.num_scalars++] = v.scalar;
        break;
      default:
        break;  // an argument that only chooses the body
    }
  }
}

// Numbers join elements of the common dtype as the record says: they wrap to a narrow integer, and
// those compared are rounded first (a float16 tensor of 0.1 equals 0.1). A 0-d tensor beside half
// floats is a number too: it keeps the precision that they are computed in.
void fit_numbers(const Op& op, Pointwise& p) {
  DType t = p.common;
  Numbers how = op.record->numbers;
  bool compares = op.record->types == TypeRule::kCompare;
  bool narrow = is_integral(t, false) && t != DType::kInt64;
  bool rounds = is_reduced_floating(t) && (compares || how == Numbers::kRound);
  bool wide = is_reduced_floating(t) && !rounds;
  if (!narrow && !rounds && !wide && how != Numbers::kFit) return;
  for (int k = 0; k < p.num_sources; ++k) {
    if (p.body->sources[k] == 'b') continue;
    if (const TensorBase* tensor = p.sources[k].tensor) {
      p.sources[k].wide = wide && tensor->dim() == 0 && is_floating(tensor->dtype());
      continue;
    }
    Scalar& s = p.sources[k].immediate;
    if (how == Numbers::kFit) check_fits(s, is_reduced_floating(t) ? DType::kFloat32 : t);
    if (narrow && compares) check_fits(s, t);
    if (!narrow && !rounds) continue;
    if (rounds) {
      float f = static_cast<float>(s.to_double());
      s = t == DType::kFloat16 ? half_to_float(float_to_half(f))
                               : bfloat16_to_float(float_to_bfloat16(f));
      continue;
    }
    if (how == Numbers::kBound) {
      IntRange range = int_range(t);
      s = std::clamp(s.to_int(), range.low, range.high);
      continue;
    }
    int shift = 64 - 8 * static_cast<int>(itemsize(t));
    auto bits = static_cast<uint64_t>(s.to_int()) << shift;
    s = t == DType::kUInt8 ? static_cast<int64_t>(bits >> shift)
                           : static_cast<int64_t>(bits) >> shift;
  }
}

void apply_type_rule(const Op& op, Pointwise& p) {
  Promotion promotion;
  DType first = DType::kFloat32;
  bool seen = false;
  for (int k = 0; k < p.num_sources; ++k) {
    bool is_condition = p.body->sources[k] == 'b';
    if (const TensorBase* t = p.sources[k].tensor) {
      if (is_condition) continue;
      promotion.add(*t);
      if (!seen) first = t->dtype();
      seen = true;
    } else if (!is_condition) {
      promotion.add(p.sources[k].immediate);
    }
  }
  p.common = promotion.result();
  switch (op.record->types) {
    case TypeRule::kPromote:
      break;
    case TypeRule::kPromoteFloat:
      if (is_integral(p.common, true)) p.common = default_dtype();
      break;
    case TypeRule::kSame:
      p.common = first;
      break;
    case TypeRule::kCompare:
      break;
    case TypeRule::kBool:
      p.common = p.result = DType::kBool;
      return;
  }
  switch (p.body->result) {
    case 'b':
      p.result = DType::kBool;
      break;
    case 'r':
      p.result = real_dtype(p.common);
      break;
    case 'c':
      p.result = complex_dtype(p.common);
      break;
    default:
      p.result = p.common;
  }
}

void check_scalars(const Op& op, Args args, DType common) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (op.args[i].type != ArgSpec::Type::kScalar || !args[i].is_scalar()) continue;
    const Scalar& s = args[i].scalar;
    TS_CHECK(s.kind != Scalar::Kind::kBool || common == DType::kBool || op.args[i].name != "alpha",
             "Boolean alpha only supported for Boolean results.");
    if (op.args[i].name == "alpha") {
      TS_CHECK(!s.is_double() || is_differentiable(common),
               "For integral input tensors, argument alpha must not be a floating point number.");
      TS_CHECK(!s.is_complex() || is_complex(common),
               "For non-complex input tensors, argument alpha must not be a complex number.");
    }
    check_fits(s, is_reduced_floating(common) ? DType::kFloat32 : common);
  }
}

[[noreturn]] void refuse_output(const Op& op, Args args, const TensorBase& out,
                                const TensorBase& input) {
  std::string name = "self";
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i].is_tensor() && args[i].tensor->is_same(input)) name = op.args[i].name;
  throw DeviceMismatch(op.name, {std::move(name), input}, {"out", out});
}

// All tensors on one device, but a 0-d one from the CPU may join others: it is read as a number.
Device apply_device_rule(const Op& op, Args args, Pointwise& p, const TensorBase& out) {
  Device device{};
  bool found = false;
  if (out.defined()) {
    device = out.device();
    found = true;
  }
  bool mixed = false;
  for (int k = 0; k < p.num_sources; ++k) {
    const TensorBase* t = p.sources[k].tensor;
    if (!t) continue;
    if (!found) {
      device = t->device();
      found = true;
    } else if (!(t->device() == device)) {
      mixed = true;
      if (device.is_cpu()) device = t->device();
    }
  }
  if (!mixed) return device;
  for (int k = 0; k < p.num_sources; ++k) {
    const TensorBase* t = p.sources[k].tensor;
    if (!t || t->device() == device) continue;
    if (!t->device().is_cpu() || t->dim() != 0) {
      check_same_device(op, args);  // raises, unless it is the output that is elsewhere
      refuse_output(op, args, out, *t);
    }
    fuse::ensure_readable(*t, fuse::Reason::kHostRead);
    p.sources[k] = {nullptr, read_scalar(*t)};
  }
  if (out.defined() && !(out.device() == device))
    for (const Value& v : args)
      if (v.is_tensor() && v.tensor->device() == device) refuse_output(op, args, out, *v.tensor);
  return device;
}

Dims shape_of(const Pointwise& p) {
  Dims shape;
  bool first = true;
  for (int k = 0; k < p.num_sources; ++k) {
    const TensorBase* t = p.sources[k].tensor;
    if (!t) continue;
    if (first)
      shape = t->sizes();
    else if (!(t->sizes() == shape))
      shape = broadcast_shapes(shape, t->sizes());
    first = false;
  }
  return shape;
}

// A fresh result is laid out as its inputs are, in the order of the first one's strides, so that a
// transposed chain stays dense and what is transposed back can be viewed.
TensorBase fresh_result(const Pointwise& p, const Dims& shape, Device device) {
  TensorBase out = new_unallocated(shape, p.result, device);
  const TensorBase* inputs[kMaxSources];
  size_t n = 0;
  bool alike = true;
  for (int k = 0; k < p.num_sources; ++k) {
    const TensorBase* t = p.sources[k].tensor;
    if (!t || t->dim() == 0) continue;
    const bool whole = t->sizes() == shape;
    if (n == 0 && whole && t->is_contiguous()) return out;
    alike &= whole && (n == 0 || t->strides() == inputs[0]->strides());
    inputs[n++] = t;
  }
  if (n == 0) return out;
  Dims strides = alike ? preserved_strides(*inputs[0]) : preserved_strides({inputs, n}, shape);
  return strides == out.strides() ? out : alias(out, shape, std::move(strides), 0);
}

void run(Prepared& c, const TensorBase& out, bool may_defer) {
  Pointwise& p = c.p;
  if (out.device().is_meta()) return;
  if (out.numel() == 0) {
    allocate(out.storage());
    return;
  }
  if (has_marks()) [[unlikely]] {
    PassedMarks marks;
    for (int k = 0; k < p.num_sources; ++k)
      if (p.sources[k].tensor) marks.read(*p.sources[k].tensor);
    marks.write(out, true);
  }
  if (may_defer && fuse::defers(c.device) && !p.op->record->raises_on_data) {
    bool exposed = out.storage().exposed.load(std::memory_order_relaxed);
    bool pending = out.storage().pending.load(std::memory_order_relaxed);
    for (int k = 0; k < p.num_sources; ++k)
      if (const TensorBase* t = p.sources[k].tensor) {
        exposed |= t->storage().exposed.load(std::memory_order_relaxed);
        pending |= t->storage().pending.load(std::memory_order_relaxed) != nullptr;
      }
    if (!exposed && (pending || !c.device.is_cpu() || out.numel() > fuse::tiny())) {
      fuse::stream_of(c.device).record(p, out);
      return;
    }
  }
  for (int k = 0; k < p.num_sources; ++k)
    if (p.sources[k].tensor) fuse::ensure_readable(*p.sources[k].tensor);
  fuse::ensure_writable(out);
  if (!out.storage().data) allocate(out.storage());
  if (out.numel() < (1 << 15)) {
    fuse::run_now(p, out);
  } else {
    BlockingScope scope;
    fuse::run_now(p, out);
  }
}

}  // namespace

TensorBase call_pointwise(const Op& op, Args args, Target target, const TensorBase& given) {
  Prepared c{};
  Pointwise& p = c.p;
  p.op = &op;
  if (op.record->check) op.record->check(Call{op, args});
  p.body = op.record->choose ? op.record->choose(args) : op.record->body;
  collect(op, args, p);
  c.device = apply_device_rule(op, args, p, given);
  apply_type_rule(op, p);
  fit_numbers(op, p);
  if (p.num_scalars) check_scalars(op, args, p.common);
  p.num_scalars = std::min(p.num_scalars, p.body->num_scalars);  // of alpha=1 there is nothing left
  fuse::compute_class(op, *p.body, p.common);
  Dims shape = shape_of(p);
  p.shape = &shape;
  if (target == Target::kFresh) {
    TensorBase out = fresh_result(p, shape, c.device);
    run(c, out, true);
    return out;
  }
  check_result_fits(op, p.result, given.dtype());
  // An output that is read too keeps its shape: resized, it would be read as what it is not.
  bool resizable = target == Target::kOut;
  for (int k = 0; k < p.num_sources; ++k)
    resizable &= !p.sources[k].tensor || !p.sources[k].tensor->is_same(given);
  if (resizable) {
    resize_output(given, shape);
  } else {
    TS_CHECK(shape == given.sizes(), "output with shape ", given.sizes(),
             " doesn't match the broadcast shape ", shape);
  }
  check_writable(op, given);
  for (int k = 0; k < p.num_sources; ++k) {
    const TensorBase* t = p.sources[k].tensor;
    if (!t || !needs_copy_before_write(op, *t, given)) continue;
    c.copies[k] = copy_of(*t);
    p.sources[k].tensor = &c.copies[k];
  }
  run(c, given, true);
  count_write(given);
  return given;
}

TensorBase unallocated_like(const TensorBase& self, DType dtype) {
  TensorBase out = new_unallocated(self.sizes(), dtype, self.device());
  if (self.is_contiguous()) return out;
  return alias(out, out.sizes(), preserved_strides(self), 0);
}

void pointwise_into(const Op& op, const PointwiseBody& body, Args sources, DType common,
                    const TensorBase& out) {
  Prepared c{};
  Pointwise& p = c.p;
  p.op = &op;
  p.body = &body;
  p.common = common;
  p.result = common;
  p.shape = &out.sizes();
  c.device = out.device();
  for (const Value& v : sources) {
    if (v.is_tensor())
      p.sources[p.num_sources++].tensor = v.tensor;
    else
      p.sources[p.num_sources++].immediate = v.scalar;
  }
  run(c, out, true);
}

}  // namespace tessera
