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

bool cast_arguments(const Op& op, Args args, std::vector<Value>& out,
                    std::vector<TensorBase>& keep) {
  Autocast cls = op.record->autocast;
  if (cls == Autocast::kNone) return false;
  DeviceType type = DeviceType::kCPU;
  for (const Value& v : args) {
    if (!v.is_tensor()) continue;
    type = v.tensor->device().type;
    if (type == DeviceType::kCUDA) break;
  }
  if (!autocast_enabled(type)) return false;
  if (cls == Autocast::kFloat32Gpu && type == DeviceType::kCPU) return false;
  DType target = cls == Autocast::kLower ? autocast_dtype(type) : DType::kFloat32;
  if (cls == Autocast::kPromote) {
    // The widest of the inputs, starting from the lower precision.
    target = autocast_dtype(type);
    for (const Value& v : args)
      if (is_castable(v, type)) target = promote(target, v.tensor->dtype());
  }
  bool changed = false;
  out.assign(args.begin(), args.end());
  keep.reserve(args.size());
  for (Value& v : out) {
    if (!is_castable(v, type) || v.tensor->dtype() == target) continue;
    keep.push_back(op::_to_dtype(*v.tensor, target));
    v = Value(keep.back());
    changed = true;
  }
  return changed;
}

}  // namespace tessera::amp

namespace tessera {
std::optional<DType> autocast_to(DeviceType type) {
  if (!amp::autocast_enabled(type)) return std::nullopt;
  return amp::autocast_dtype(type);
}
}  // namespace tessera
