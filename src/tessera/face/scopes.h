// Modes that hold until the end of a block.
#pragma once
#include "tessera/amp/autocast.h"
#include "tessera/amp/weight_cache.h"
#include "tessera/autograd/node.h"

namespace tessera {

using autograd::GradMode;
// Within it, nothing is kept for backward.
struct NoGrad : GradMode {
  NoGrad() : GradMode(false) {}
};

// Within it, operators on this kind of device run in the precision their records name.
class AutocastMode {
 public:
  explicit AutocastMode(DeviceType type) : AutocastMode(type, usual(type)) {}
  AutocastMode(DeviceType type, DType dtype, bool enabled = true, bool cache_enabled = true)
      : type_(type),
        enabled_(amp::autocast_enabled(type)),
        dtype_(amp::autocast_dtype(type)),
        cached_(amp::cache_enabled()) {
    amp::set_autocast(type, enabled, dtype);
    amp::set_cache_enabled(cache_enabled);
    amp::enter_region();
  }
  ~AutocastMode() {
    amp::leave_region();
    amp::set_cache_enabled(cached_);
    amp::set_autocast(type_, enabled_, dtype_);
  }
  AutocastMode(const AutocastMode&) = delete;
  AutocastMode& operator=(const AutocastMode&) = delete;

 private:
  static DType usual(DeviceType type) {
    return type == DeviceType::kCPU ? DType::kBFloat16 : DType::kFloat16;
  }

  DeviceType type_;
  bool enabled_;
  DType dtype_;
  bool cached_;
};

}  // namespace tessera
