// What is here, and moving a model to one of the GPUs: the C++ of
// tests/seeds/blocks/001_02_setup.py.
#include <tessera/tessera.h>

#include <cstdio>
#include <cstdlib>

using namespace tessera;

namespace {

void display_cuda_info() {
  std::printf("CUDA is available: %s\n", cuda::is_available() ? "True" : "False");
  if (!cuda::is_available()) {
    std::printf("  because: %s\n", cuda::why_unavailable().c_str());
    return;
  }
  std::printf("Current GPU ID: %d\n", cuda::current_device());
  std::printf("Number of GPUs: %d\n", cuda::device_count());
  for (int i = 0; i < cuda::device_count(); ++i) {
    std::printf("\nGPU %d info:\n", i);
    std::printf("Name: %s\n", cuda::device_name(i).c_str());
    std::printf("Memory allocated: %.2f GB\n",
                static_cast<double>(cuda::memory_allocated(i)) / 1e9);
    std::printf("Memory cached: %.2f GB\n", static_cast<double>(cuda::memory_reserved(i)) / 1e9);
  }
}

void switch_gpu(int gpu_id) {
  TS_CHECK(cuda::is_available(), "CUDA is not available");
  TS_CHECK_VALUE(gpu_id < cuda::device_count(), "GPU ", gpu_id, " not found. Available GPUs: 0-",
                 cuda::device_count() - 1);
  cuda::set_device(gpu_id);
  std::printf("Switched to GPU %d: %s\n", gpu_id, cuda::device_name(gpu_id).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  display_cuda_info();
  nn::Linear model(10, 10);  // Simple example model
  try {
    switch_gpu(argc > 1 ? std::atoi(argv[1]) : 0);
    model.to(Device{DeviceType::kCUDA, -1});
    std::printf("Model successfully moved to GPU\n");
    std::printf("%s\n", cat(model.weight().device()).c_str());
  } catch (const Error& e) {
    std::printf("Error moving model to GPU: %s\n", e.what());
  }
}
