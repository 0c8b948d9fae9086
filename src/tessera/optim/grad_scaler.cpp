#include "tessera/optim/grad_scaler.h"

#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/optim.h"
#include "tessera/gen/unary.h"

namespace tessera::amp {

namespace {

Tensor number_on(double value, DType dtype, Device device) {
  return Tensor(op::scalar_tensor(Scalar(value), dtype, device));
}

}  // namespace

GradScaler::GradScaler(GradScalerOptions options) : options_(options) {
  TS_CHECK_VALUE(options.growth_factor > 1, "The growth factor must be > 1.0.");
  TS_CHECK_VALUE(options.backoff_factor < 1, "The backoff factor must be < 1.0.");
}

Tensor GradScaler::scale(const Tensor& loss) {
  if (!options_.enabled) return loss;
  if (!scale_.defined()) {
    scale_ = number_on(options_.init_scale, DType::kFloat32, loss.device());
    tracker_ = number_on(static_cast<double>(tracked_), DType::kInt32, loss.device());
  }
  return loss * Value(scale_.to(loss.device()));
}

GradScaler::Seen& GradScaler::seen(const optim::Optimizer& optimizer, const char* caller) {
  TS_CHECK(scale_.defined(), "Attempted ", caller,
           " but _scale is None: scaler.scale(loss) comes first.");
  return seen_[&optimizer];
}

void GradScaler::unscale_(optim::Optimizer& optimizer) {
  if (!options_.enabled) return;
  Seen& s = seen(optimizer, "unscale_");
  TS_CHECK(!s.stepped, "unscale_() is being called after step().");
  TS_CHECK(!s.unscaled,
           "unscale_() has already been called on this optimizer since the last update().");
  NoGrad off;
  std::vector<std::pair<Device, std::vector<TensorBase>>> by_device;
  for (const optim::ParamGroup& group : optimizer.param_groups())
    for (const Tensor& p : group.params) {
      const Tensor g = p.grad();
      if (!g.defined()) continue;
      TS_CHECK_VALUE(g.dtype() != DType::kFloat16, "Attempting to unscale FP16 gradients.");
      auto at = std::find_if(by_device.begin(), by_device.end(),
                             [&](const auto& d) { return d.first == g.device(); });
      if (at == by_device.end()) at = by_device.insert(at, {g.device(), {}});
      at->second.push_back(g);
    }
  // In float64: the reciprocal of a large scale loses nothing.
  const TensorBase inverse =
      op::_to_dtype(op::reciprocal(op::_to_dtype(scale_, DType::kFloat64)), DType::kFloat32);
  for (auto& [device, grads] : by_device) {
    Tensor found = number_on(0, DType::kFloat32, device);
    op::_amp_foreach_non_finite_check_and_unscale_(grads, found, op::_to_device(inverse, device));
    s.found.push_back(found);
  }
  s.unscaled = true;
}

bool GradScaler::step(optim::Optimizer& optimizer) {
  if (!options_.enabled) {
    optimizer.step();
    return true;
  }
  Seen& s = seen(optimizer, "step");
  TS_CHECK(!s.stepped, "step() has already been called since the last update().");
  if (!s.unscaled) unscale_(optimizer);
  TS_CHECK(!s.found.empty(),
           "No inf checks were recorded for this optimizer: none of its parameters has a "
           "gradient.");
  bool finite = true;
  for (const Tensor& f : s.found) finite = finite && f.item() == 0;
  if (finite) optimizer.step();
  s.stepped = true;
  return finite;
}

void GradScaler::update(std::optional<double> new_scale) {
  if (!options_.enabled) return;
  TS_CHECK(scale_.defined(),
           "Attempted update but _scale is None: scaler.scale(loss) comes first.");
  NoGrad off;
  if (new_scale) {
    fill(scale_, Scalar(*new_scale));
  } else {
    TensorBase found;
    for (auto& [optimizer, s] : seen_)
      for (const Tensor& f : s.found) {
        TensorBase here = op::_to_device(f, scale_.device());
        found = found.defined() ? op::add(found, here) : here;
      }
    TS_CHECK(found.defined(), "No inf checks were recorded prior to update.");
    op::_amp_update_scale_(scale_, tracker_, found, options_.growth_factor, options_.backoff_factor,
                           options_.growth_interval);
  }
  seen_.clear();
}

double GradScaler::get_scale() const {
  if (!options_.enabled) return 1;
  return scale_.defined() ? scale_.item() : options_.init_scale;
}

StateDict GradScaler::state_dict() const {
  if (!options_.enabled) return {};
  auto number = [](double v) { return number_on(v, DType::kFloat64, Device{}); };
  const double tracked = tracker_.defined() ? tracker_.item() : static_cast<double>(tracked_);
  return {{"scale", number(get_scale())},
          {"growth_factor", number(options_.growth_factor)},
          {"backoff_factor", number(options_.backoff_factor)},
          {"growth_interval", number(static_cast<double>(options_.growth_interval))},
          {"_growth_tracker", number(tracked)}};
}

void GradScaler::load_state_dict(const StateDict& state) {
  if (!options_.enabled) return;
  TS_CHECK(!state.empty(),
           "The source state dict is empty, possibly because it was saved from a disabled instance "
           "of GradScaler.");
  options_.init_scale = state.at("scale").item();
  options_.growth_factor = state.at("growth_factor").item();
  options_.backoff_factor = state.at("backoff_factor").item();
  options_.growth_interval = static_cast<int64_t>(state.at("growth_interval").item());
  tracked_ = static_cast<int64_t>(state.at("_growth_tracker").item());
  scale_ = tracker_ = Tensor();  // made anew for the next loss
}

}  // namespace tessera::amp
