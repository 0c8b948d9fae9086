// Scaling a loss, so that small gradients of float16 do not become zero:
//
//   amp::GradScaler scaler;
//   { amp::autocast mode(DeviceType::kCUDA);  loss = criterion(model(x), y); }
//   scaler.scale(loss).backward();
//   scaler.step(optimizer);   // false where a gradient was not finite, and nothing was done
//   scaler.update();
#pragma once
#include <map>
#include <optional>

#include "tessera/face/scopes.h"
#include "tessera/optim/optimizer.h"

namespace tessera::amp {

using autocast = AutocastMode;

struct GradScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int64_t growth_interval = 2000;  // good steps after which the scale grows
  bool enabled = true;
};

class GradScaler {
 public:
  explicit GradScaler(GradScalerOptions options = {});

  Tensor scale(const Tensor& loss);
  // Divides the gradients by the scale; before clipping them, say.
  void unscale_(optim::Optimizer& optimizer);
  // Whether the optimizer stepped: not where a gradient is not finite. Unscales first where needed.
  bool step(optim::Optimizer& optimizer);
  // The scale for the next iteration.
  void update(std::optional<double> new_scale = std::nullopt);

  double get_scale() const;
  bool is_enabled() const { return options_.enabled; }
  // "scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker".
  StateDict state_dict() const;
  void load_state_dict(const StateDict& state);

 private:
  struct Seen {
    bool unscaled = false, stepped = false;
    std::vector<Tensor> found;  // on each device: not 0 where a gradient is not finite
  };
  Seen& seen(const optim::Optimizer& optimizer, const char* caller);

  GradScalerOptions options_;
  int64_t tracked_ = 0;     // at the start, and after a state was loaded
  Tensor scale_, tracker_;  // on the device of the first loss
  std::map<const optim::Optimizer*, Seen> seen_;
};

}  // namespace tessera::amp
