// The first question of GPU computing: how long does a chain of pointwise operators take here?
//   seed_loop [cpu|cuda] [size] [float16|float32]
// Runs the loop with deferral off and on and prints the time of an iteration.
#include <tessera/tessera.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

using namespace tessera;

namespace {

Tensor crunch(const Tensor& a, const Tensor& b, const Tensor& c) {
  Tensor y0 = a + b;
  Tensor y1 = y0 + c;
  Tensor y2 = y1 * a;
  Tensor y3 = y2 - b;
  Tensor y4 = y2 + y3;
  Tensor y5 = 0.33 * a + 0.66 * b + c * 0.9;
  Tensor y = y1 + y2;
  y = y2 + y3;
  y = y3 + y4;
  y = y4 + y5;
  return y;
}

double microseconds(const Tensor& a, const Tensor& b, const Tensor& c, int times) {
  auto wait = [&] {
    if (a.device().is_cuda()) cuda::synchronize(a.device().index);
  };
  for (int i = 0; i < 3; ++i) crunch(a, b, c).data_ptr<void>();
  wait();
  auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) crunch(a, b, c).data_ptr<void>();
  wait();
  auto end = std::chrono::steady_clock::now();
  return std::chrono::duration<double, std::micro>(end - begin).count() / times;
}

}  // namespace

int main(int argc, char** argv) {
  Device device = argc > 1 ? resolve_device(parse_device(argv[1])) : Device{};
  int64_t n = argc > 2 ? std::atoll(argv[2]) : 512;
  DType dtype = argc > 3 && std::string(argv[3]) == "float32" ? DType::kFloat32 : DType::kFloat16;
  int times = device.is_cuda() ? 200 : 5;
  Tensor a = rand({n, n}, dtype, device);
  Tensor b = rand({n, n}, dtype, device);
  Tensor c = rand({n, n}, dtype, device);
  fuse::set_mode(fuse::Mode::kOff);
  double off = microseconds(a, b, c, times);
  fuse::set_mode(fuse::Mode::kOn);
  double on = microseconds(a, b, c, times);
  std::printf("%s %lld x %lld %s: %.1f us an iteration, deferred and fused %.1f us\n",
              cat(device).c_str(), static_cast<long long>(n), static_cast<long long>(n),
              dtype_name(dtype), off, on);
  return 0;
}
