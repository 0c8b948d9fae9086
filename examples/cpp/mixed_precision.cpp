// Training in mixed precision: autocast for the forward pass, a scaler for small gradients.
// On a GPU in float16, on the CPU in bfloat16, which needs no scaler but may have one.
#include <tessera/tessera.h>

#include <cstdio>

using namespace tessera;

int main() {
  manual_seed(0);
  Device device = best_device();
  nn::Sequential model{nn::Linear(8, 64), nn::ReLU(), nn::Linear(64, 64), nn::ReLU(),
                       nn::Linear(64, 1)};
  model.to(device);
  Tensor x = randn({256, 8}).to(device);
  Tensor y = (x.select(1, 0) * Value(x.select(1, 1))).unsqueeze(1);

  nn::MSELoss criterion;
  optim::Adam optimizer(model.parameters(), {.lr = 1e-2});
  amp::GradScaler scaler({.init_scale = 1024});

  int skipped = 0;
  for (int step = 1; step <= 100; ++step) {
    optimizer.zero_grad();
    Tensor loss;
    {
      amp::autocast mode(device.type);
      loss = criterion(model(x), y);
    }
    scaler.scale(loss).backward();
    scaler.unscale_(optimizer);
    nn::utils::clip_grad_norm_(model.parameters(), 1.0);
    if (!scaler.step(optimizer)) ++skipped;  // a gradient was not finite
    scaler.update();
    if (step % 20 == 0) std::printf("step %d, loss %.4f\n", step, loss.item());
  }
  std::printf("skipped %d steps, scale %.0f\n", skipped, scaler.get_scale());
}
