// Profiles three steps of a training: the table, and a trace for Perfetto or chrome://tracing.
//   profile_step [trace.json.gz]
#include <tessera/tessera.h>

#include <iostream>

using namespace tessera;

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "trace.json.gz";
  const Device device(cuda::is_available() ? DeviceType::kCUDA : DeviceType::kCPU);
  manual_seed(0);
  nn::Sequential model{nn::Linear(64, 128), nn::ReLU(), nn::Linear(128, 10)};
  model.to(device);
  optim::SGD optimizer(model.parameters(), {.lr = 0.1});
  Tensor x = randn({32, 64}).to(device);
  Tensor y = randint(10, {32}).to(device);

  auto step = [&] {
    profiler::RecordFunction all("step");
    optimizer.zero_grad();
    Tensor loss;
    {
      profiler::RecordFunction scope("forward");
      loss = nn::functional::cross_entropy(model.forward(x), y);
    }
    loss.backward();
    optimizer.step();
    return loss.item<float>();
  };

  step();  // kernels are compiled, memory is found
  profiler::Profile profile({.record_shapes = true, .profile_memory = true});
  for (int i = 0; i < 3; ++i) step();
  profile.stop();

  std::cout << profile.table("self_cpu_time_total", 10);
  for (const profile::Row& row : profile.key_averages())
    if (row.user) std::cout << row.key << ": " << row.count << " times\n";
  profile.export_chrome_trace(path);
  std::cout << "The trace is in " << path << "\n";
}
