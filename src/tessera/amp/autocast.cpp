#include "tessera/amp/autocast.h"

#include "tessera/gen/copy.h"
#include "tessera/ops/modes.h"

namespace tessera::amp {

namespace {

struct State {
  bool enabled[2] = {false, false};
  DType dtype[2] = {DType::kBFloat16, DType::kFloat16};
  bool any = false;
};
thread_local State t_state;

int slot(DeviceType t) { return t == DeviceType::kCPU ? 0 : 1; }

bool is_castable(const Value& v, DeviceType type) {
  return v.is_tensor() && is_floating(v.tensor->dtype()) && v.tensor->dtype() != DType::kFloat64 &&
         v.tensor->device().type == type;
}

}  // namespace

bool any_autocast() { return t_state.any; }
bool autocast_enabled(DeviceType type) { return t_state.enabled[slot(type)]; }
DType autocast_dtype(DeviceType type) { return t_state.dtype[slot(type)]; }

void set_autocast(DeviceType type, bool enabled, DType dtype) {
  TS_CHECK(!enabled || is_floating(dtype), "autocast needs a floating-point dtype, not ", dtype);
  t_state.enabled[slot(type)] = enabled;
  t_state.dtype[slot(type)] = dtype;
  t_state.any = t_state.enabled[0] || t_state.enabled[1];
}

Casts::Casts(const Op& op, Args args) : args_(args) {
  Autocast cls = op.record->autocast;
  if (cls == Autocast::kNone) return;
  for (const Value& v : args) {
    if (!v.is_tensor()) continue;
    type_ = v.tensor->device().type;
    if (type_ == DeviceType::kCUDA) break;
  }
  if (!autocast_enabled(type_)) return;
  if (cls == Autocast::kFloat32Gpu && type_ == DeviceType::kCPU) return;
  DType target = cls == Autocast::kLower ? autocast_dtype(type_) : DType::kFloat32;
  if (cls == Autocast::kPromote) {
    // The widest of the inputs, starting from the lower precision.
    target = autocast_dtype(type_);
    for (const Value& v : args)
      if (is_castable(v, type_)) target = promote(target, v.tensor->dtype());
  }
  out_.assign(args.begin(), args.end());
  keep_.reserve(args.size());
  for (Value& v : out_) {
    if (!is_castable(v, type_) || v.tensor->dtype() == target) continue;
    keep_.push_back(op::_to_dtype(*v.tensor, target));
    v = Value(keep_.back());
    changed_ = true;
  }
  off_ = true;
  set_autocast(type_, false, autocast_dtype(type_));
}

Casts::~Casts() {
  if (off_) set_autocast(type_, true, autocast_dtype(type_));
}

}  // namespace tessera::amp

namespace tessera {
std::optional<DType> autocast_to(DeviceType type) {
  if (!amp::autocast_enabled(type)) return std::nullopt;
  return amp::autocast_dtype(type);
}
}  // namespace tessera
