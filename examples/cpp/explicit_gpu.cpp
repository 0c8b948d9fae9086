// Model and data are moved to the GPU, where there is one.
// Prints what tests/seeds/blocks/003_02_explicit_gpu.py prints.
#include <tessera/tessera.h>

#include <cstdio>

using namespace tessera;

struct SimpleModel : nn::Module {
  nn::Linear fc = register_module("fc", nn::Linear(10, 2));
  Tensor forward(const Tensor& x) override { return fc(x); }
};

int main() {
  manual_seed(0);
  Device device = best_device();
  SimpleModel model;
  model.to(device);
  nn::MSELoss criterion;
  optim::SGD optimizer(model.parameters(), {.lr = 0.01});
  Tensor data = randn({100, 10}).to(device);
  Tensor labels = randn({100, 2}).to(device);

  for (int epoch = 0; epoch < 5; ++epoch) {
    optimizer.zero_grad();
    Tensor loss = criterion(model(data), labels);
    loss.backward();
    optimizer.step();
    std::printf("Epoch: %d, Loss: %.17g\n", epoch, loss.item());
  }
}
