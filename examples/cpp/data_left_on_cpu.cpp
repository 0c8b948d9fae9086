// The model is moved to the GPU and the data is not: an error says so. Without a GPU all is well.
// Prints what tests/seeds/blocks/003_03_data_left_on_cpu.py prints.
#include <tessera/tessera.h>

#include <cstdio>

using namespace tessera;

struct SimpleModel : nn::Module {
  nn::Linear fc = register_module("fc", nn::Linear(10, 2));
  Tensor forward(const Tensor& x) override { return fc(x); }
};

int main() {
  manual_seed(0);
  SimpleModel model;
  model.to(best_device());
  nn::MSELoss criterion;
  optim::SGD optimizer(model.parameters(), {.lr = 0.01});
  Tensor data = randn({100, 10});  // still on the CPU
  Tensor labels = randn({100, 2});

  try {
    for (int epoch = 0; epoch < 5; ++epoch) {
      optimizer.zero_grad();
      Tensor loss = criterion(model(data), labels);
      loss.backward();
      optimizer.step();
      std::printf("Epoch: %d, Loss: %.17g\n", epoch, loss.item());
    }
  } catch (const Error& e) {
    std::printf("RuntimeError: %s\n", e.what());
  }
}
