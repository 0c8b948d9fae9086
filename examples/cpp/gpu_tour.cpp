// Tensors on devices, transfers, streams, memory and the error of two devices: the device programs
// of a tutorial (tests/seeds/blocks/004_*.py) in C++. Where there is no GPU:
//   TESSERA_VIRTUAL_GPU=2x2GiB gpu_tour
#include <tessera/tessera.h>

#include <cstdio>

using namespace tessera;

namespace {

void show(const char* what, const Tensor& t) {
  std::printf("%s: %s\n", what, cat(t.device()).c_str());
}

void check_setup() {
  DeviceProps props = cuda::device_properties(0);
  cuda::MemoryInfo memory = cuda::mem_get_info(0);
  std::printf("%d %d %s\n", cuda::device_count(), cuda::current_device(), props.name);
  std::printf("Total memory: %.2f GB\n", static_cast<double>(props.total_memory) / 1e9);
  std::printf("Compute capability: %d.%d\n", props.major, props.minor);
  std::printf("Free: %s\n", memory.free <= memory.total ? "some" : "more than there is");
}

void create_and_move(Device device) {
  Tensor x = randn({1000, 1000}, DType::kFloat32, device);
  show("created", x);
  Tensor y = randn({1000, 1000}).to(device);
  show("moved", y);
  show("like", zeros_like(x));
  show("back", x.cpu());
  nn::Linear model(1000, 100);
  model.to(device);
  show("output", model(x));
}

void transfer(Device device) {
  Tensor source = randn({1000, 1000});
  Tensor pinned = source.pin_memory();
  Tensor there = pinned.to(device, /*non_blocking=*/true);
  std::printf("pinned: %d, arrived: %d\n", pinned.is_pinned(), equal(there.cpu(), source));
}

void streams(Device device) {
  cuda::Stream side;
  cuda::Event begin({.enable_timing = true}), end({.enable_timing = true});
  Tensor x = ones({1000, 1000}, DType::kFloat32, device), y;
  side.wait_stream(cuda::current_stream());
  {
    cuda::StreamGuard guard(side);
    begin.record();
    y = x * 2;
    end.record();
  }
  cuda::current_stream().wait_stream(side);
  y.record_stream(cuda::current_stream());
  end.synchronize();
  std::printf("sum: %.0f, timed: %d\n", y.sum().item(), begin.elapsed_time(end) >= 0);
}

void count_memory() {
  cuda::MemoryTracker tracker;
  // Zeros that nobody looks at would take no memory at all.
  Tensor kept = rand({1000, 1000}, DType::kFloat32, Device{DeviceType::kCUDA, 0});
  { Tensor large = rand({2000, 1000}, DType::kFloat32, Device{DeviceType::kCUDA, 0}); }
  tracker.stop();
  std::printf("Peak memory: %s 12 MB, net change: %s 4 MB\n",
              tracker.peak_memory_mb() >= 12 ? "at least" : "below",
              tracker.memory_delta_mb() >= 4 && tracker.memory_delta_mb() < 8 ? "about" : "not");
  kept = Tensor();
  cuda::empty_cache();
}

void mismatch(Device device) {
  nn::Linear model(100, 10);
  model.to(device);
  try {
    model(randn({32, 100}));
  } catch (const Error& e) {
    std::printf("RuntimeError: %s\n", e.what());
  }
}

}  // namespace

int main() {
  if (!cuda::is_available()) {
    std::printf("no GPU: %s\n", cuda::why_unavailable().c_str());
    return 0;
  }
  Device device = best_device();
  check_setup();
  create_and_move(device);
  transfer(device);
  streams(device);
  count_memory();
  mismatch(device);
}
