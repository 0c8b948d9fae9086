// Is there a GPU? A tensor and a model are moved there, and the result comes back.
// Prints what tests/seeds/blocks/002_01_move_to_gpu.py prints.
#include <tessera/tessera.h>

#include <iostream>

using namespace tessera;

int main() {
  manual_seed(0);
  // 1. Is a CUDA GPU available?
  Device device = cuda::is_available() ? Device{DeviceType::kCUDA} : Device{};
  if (device.is_cuda()) {
    std::cout << "CUDA GPU is available, using device: cuda\n";
    std::cout << "Number of available GPUs: " << cuda::device_count() << "\n";
  } else {
    std::cout << "CUDA GPU is not available, using device: cpu\n";
  }

  // 2. A tensor, and 3. moved to the GPU
  Tensor a = randn({10, 10});
  std::cout << "Tensor 'a' initial device: " << cat(a.device()) << "\n";
  Tensor a_gpu = a.to(device);
  std::cout << "Tensor 'a' device after moving to GPU: " << cat(a_gpu.device()) << "\n";

  // 4. A simple linear model, and 5. moved too
  nn::Linear model(10, 1);
  std::cout << "Model's parameter initial device: " << cat(model.weight().device()) << "\n";
  model.to(device);
  std::cout << "Model's parameter device after moving to GPU: " << cat(model.weight().device())
            << "\n";

  // 6. Calculations on the GPU
  Tensor output;
  {
    NoGrad guard;
    output = model(a_gpu);
  }
  std::cout << "Output Tensor device " << cat(output.device()) << "\n";

  // 7. The output back on the CPU
  std::cout << "Output tensor device after moving to CPU " << cat(output.cpu().device()) << "\n";
}
