// A small convolutional network trained on random images with Adam.
// Prints what tests/seeds/blocks/002_03_train_cnn.py prints.
#include <tessera/tessera.h>

#include <cstdio>

using namespace tessera;

struct SimpleCNN : nn::Module {
  nn::Conv2d conv1 = register_module("conv1", nn::Conv2d(3, 16, 3, {.padding = 1}));
  nn::ReLU relu = register_module("relu", nn::ReLU());
  nn::MaxPool2d pool = register_module("pool", nn::MaxPool2d(2, {.stride = 2}));
  nn::Linear fc = register_module("fc", nn::Linear(16 * 7 * 7, 10));  // 10 classes

  Tensor forward(const Tensor& x) override {
    Tensor h = pool(relu(conv1(x)));
    return fc(h.view({h.size(0), -1}));
  }
};

int main() {
  manual_seed(0);
  Device device = best_device();

  // A small batch of images: samples, channels, height, width.
  Tensor X = randn({32, 3, 14, 14}).to(device);
  Tensor y = randint(0, 10, {32}).to(device);
  SimpleCNN model;
  model.to(device);

  nn::CrossEntropyLoss criterion;
  optim::Adam optimizer(model.parameters(), {.lr = 0.001});
  data::DataLoader dataloader(data::TensorDataset(X, y), {.batch_size = 16, .shuffle = true});

  int num_epochs = 50;
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
