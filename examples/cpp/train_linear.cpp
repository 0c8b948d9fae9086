// A linear model trained on random data with SGD, in shuffled batches.
// Prints what tests/seeds/blocks/002_02_train_linear.py prints.
#include <tessera/tessera.h>

#include <cstdio>

using namespace tessera;

int main() {
  manual_seed(0);
  Device device = best_device();

  // Data and model are moved once, before the loop.
  Tensor X = randn({100, 10}).to(device);
  Tensor y = randn({100, 1}).to(device);
  nn::Linear model(10, 1);
  model.to(device);

  nn::MSELoss criterion;
  optim::SGD optimizer(model.parameters(), {.lr = 0.01});
  data::DataLoader dataloader(data::TensorDataset(X, y), {.batch_size = 32, .shuffle = true});

  int num_epochs = 100;
  for (int epoch = 1; epoch <= num_epochs; ++epoch) {
    Tensor loss;
    for (auto [batch_x, batch_y] : dataloader) {
      optimizer.zero_grad();
      loss = criterion(model(batch_x), batch_y);
      loss.backward();
      optimizer.step();
    }
    if (epoch % 10 == 0) std::printf("Epoch [%d/%d], Loss: %.4f\n", epoch, num_epochs, loss.item());
  }
  std::printf("Training complete\n");
}
