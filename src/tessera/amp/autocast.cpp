#include "tessera/amp/autocast.h"

#include "tessera/amp/weight_cache.h"
#include "tessera/gen/copy.h"
#include "tessera/ops/modes.h"

namespace tessera::amp {

namespace {

struct State {
  bool enabled[2] = {false, false};
  DType dtype[2] = {DType::kBFloat16, DType::kFloat16};
  bool any = false;
};
// Read by every operator: see t_grad_enabled.
constinit thread_local State t_state;

bool has_autocast(DeviceType t) { return t == DeviceType::kCPU || t == DeviceType::kCUDA; }
int slot(DeviceType t) { return t == DeviceType::kCPU ? 0 : 1; }

bool is_castable(const TensorBase& t, DeviceType type) {
  return t.defined() && is_floating(t.dtype()) && t.dtype() != DType::kFloat64 &&
         t.device().type == type;
}

// Every tensor of the call, those of lists too.
template <class F>
void each_tensor(Args args, F&& f) {
  for (const Value& v : args) {
    if (v.is_tensor()) f(*v.tensor);
    if (v.tag == Value::Tag::kTensors)
      for (const TensorBase& t : v.tensors)
        if (t.defined()) f(t);
  }
}

// A GPU's, if one of the tensors is there.
DeviceType device_type(Args args) {
  std::optional<DeviceType> found;
  each_tensor(args, [&](const TensorBase& t) {
    if (!found || t.device().type == DeviceType::kCUDA) found = t.device().type;
  });
  return found.value_or(DeviceType::kCPU);
}

bool names_dtype(const Op& op, Args args) {
  for (size_t i = 0; i < args.size(); ++i)
    if (op.args[i].type == ArgSpec::Type::kDType && !args[i].is_none()) return true;
  return false;
}

}  // namespace

bool any_autocast() { return t_state.any; }
bool autocast_enabled(DeviceType type) { return has_autocast(type) && t_state.enabled[slot(type)]; }
DType autocast_dtype(DeviceType type) { return t_state.dtype[slot(type)]; }

void set_autocast(DeviceType type, bool enabled, DType dtype) {
  TS_CHECK(has_autocast(type), "autocast is for cpu and cuda devices");
  TS_CHECK(!enabled || is_floating(dtype), "autocast needs a floating-point dtype, not ", dtype);
  t_state.enabled[slot(type)] = enabled;
  t_state.dtype[slot(type)] = dtype;
  t_state.any = t_state.enabled[0] || t_state.enabled[1];
}

Casts::Casts(const Op& op, Args args) : args_(args) {
  const Autocast rule = op.record->autocast;
  if (rule.gpu == Cast::kNone && rule.cpu == Cast::kNone) return;
  type_ = device_type(args);
  if (!autocast_enabled(type_)) return;
  const Cast cast = type_ == DeviceType::kCPU ? rule.cpu : rule.gpu;
  if (cast == Cast::kNone || (cast == Cast::kFloat32 && names_dtype(op, args))) return;
  TS_CHECK(cast != Cast::kRefuse, "torch.", op.paths[0],
           " is unsafe to autocast: logarithms of numbers near 0 and 1 are not finite in ",
           autocast_dtype(type_),
           ".\nMany models use a sigmoid layer right before the binary cross entropy layer.\nIn "
           "this case, combine the two layers using "
           "torch.nn.functional.binary_cross_entropy_with_logits\nor torch.nn.BCEWithLogitsLoss, "
           "which are safe to autocast.");
  const DType lower = autocast_dtype(type_);
  DType target = cast == Cast::kLower ? lower : DType::kFloat32;
  if (cast == Cast::kPromote) {
    target = lower;
    each_tensor(args, [&](const TensorBase& t) {
      if (is_castable(t, type_)) target = promote(target, t.dtype());
    });
  }
  if (cast != Cast::kKeep) cast_to(target, cast == Cast::kLower);
  off_ = true;
  set_autocast(type_, false, lower);
}

Casts::~Casts() {
  if (off_) set_autocast(type_, true, autocast_dtype(type_));
}

TensorBase Casts::one(const TensorBase& t, DType target, bool lower) {
  if (!is_castable(t, type_) || t.dtype() == target) return t;
  changed_ = true;
  return lower ? lowered(t, target) : op::_to_dtype(t, target);
}

void Casts::cast_to(DType target, bool lower) {
  size_t singles = 0, lists = 0;
  for (const Value& v : args_) {
    singles += v.is_tensor();
    lists += v.tag == Value::Tag::kTensors;
  }
  keep_.reserve(singles);  // values point into both
  lists_.reserve(lists);
  out_.assign(args_.begin(), args_.end());
  for (Value& v : out_) {
    if (v.is_tensor()) {
      keep_.push_back(one(*v.tensor, target, lower));
      v = Value(keep_.back());
    } else if (v.tag == Value::Tag::kTensors) {
      auto& list = lists_.emplace_back();
      list.reserve(v.tensors.size());
      for (const TensorBase& t : v.tensors) list.push_back(one(t, target, lower));
      v = Value(std::span<const TensorBase>(list));
    }
  }
}

}  // namespace tessera::amp

namespace tessera {
bool autocasts(DeviceType type) { return amp::autocast_enabled(type); }
}  // namespace tessera
