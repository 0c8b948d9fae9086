// Timing: how long a product and a chain of pointwise operators take, by size and device.
//   benchmark_timer [seconds for each measurement]
// Where there is no GPU:  TESSERA_VIRTUAL_GPU=1x2GiB benchmark_timer
#include <tessera/tessera.h>

#include <cstdio>
#include <cstdlib>

using namespace tessera;

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0.05;
  std::vector<Device> devices = {Device{}};
  if (cuda::is_available()) devices.push_back(Device{DeviceType::kCUDA, 0});

  std::vector<benchmark::Measurement> results;
  for (Device device : devices) {
    for (int64_t n : {64, 256}) {
      Tensor a = randn({n, n}, DType::kFloat32, device), b = randn({n, n}, DType::kFloat32, device);
      benchmark::TaskSpec names{.sub_label = cat(n, " x ", n), .description = cat(device)};
      // What the function returns is computed, though nobody reads it.
      names.label = "matmul";
      results.push_back(
          benchmark::Timer([&] { return a.matmul(b); }, names).blocked_autorange(seconds));
      names.label = "relu(a + b) * a";
      results.push_back(
          benchmark::Timer([&] { return relu(a + b) * a; }, names).blocked_autorange(seconds));
    }
  }
  std::printf("%s\n\n", results.front().to_string().c_str());
  benchmark::Compare compare(results);
  compare.trim_significant_figures();
  std::printf("%s", compare.to_string().c_str());
}
