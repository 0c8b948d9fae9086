// Tensors in C++: made, moved, indexed, differentiated; a small network trained; an error caught.
// Runs on the best device there is; with TESSERA_VIRTUAL_GPU=1x2GiB on a GPU made of host memory.
#include <tessera/tessera.h>

#include <cstdio>
#include <iostream>

using namespace tessera;

namespace {

void tensors(Device device) {
  Tensor a = tensor({{1.0, 2.0}, {3.0, 4.0}});
  Tensor b = a.to(device);
  std::cout << b.matmul(b.t()) << "\n";
  std::cout << "first row " << a[0] << ", last column " << a.select(1, -1) << ", one element "
            << b.at({1, 0}) << "\n";
}

// y = 3 x0 - 2 x1 + 1 with noise, learned by two layers.
double train(Device device) {
  manual_seed(0);
  Tensor x = randn({256, 2}).to(device);
  Tensor y = (x.select(1, 0) * 3.0 - x.select(1, 1) * 2.0 + 1.0).unsqueeze(1);
  y += randn({256, 1}).to(device) * 0.01;

  nn::Sequential net{nn::Linear(2, 16), nn::ReLU(), nn::Linear(16, 1)};
  net.to(device);
  nn::MSELoss criterion;
  optim::SGD optimizer(net.parameters(), {.lr = 0.05});

  double last = 0;
  for (int step = 0; step <= 200; ++step) {
    optimizer.zero_grad();
    Tensor loss = criterion(net(x), y);
    loss.backward();
    optimizer.step();
    if (step % 50 == 0) std::printf("step %3d: loss %.4f\n", step, last = loss.item());
  }
  return last;
}

}  // namespace

int main() {
  Device device = best_device();
  std::cout << "device: " << cat(device);
  if (device.is_cuda())
    std::cout << ", " << cuda::device_name();
  else
    std::cout << " (" << cuda::why_unavailable() << ")";
  std::cout << "\n";
  tensors(device);
  double loss = train(device);
  if (device.is_cuda()) {
    try {
      ones({2}) + ones({2}, {}, device);
      std::cout << "two devices in one operator raised nothing\n";
      return 1;
    } catch (const Error& e) {
      std::cout << "two devices in one operator: " << e.what() << "\n";
    }
    cuda::synchronize();
    std::printf("device memory: %lld bytes in use, %lld at most\n",
                static_cast<long long>(cuda::memory_allocated()),
                static_cast<long long>(cuda::max_memory_allocated()));
  }
  return loss < 0.05 ? 0 : 1;
}
