// What recording a deferred operator costs beyond the call path. The call path alone is the same
// call on tensors without elements: every rule runs, nothing is recorded and nothing computed.
#include <tessera/tessera.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

using namespace tessera;

namespace {

template <class F>
double nanoseconds(F f) {
  constexpr int kTimes = 100000;
  std::vector<double> rounds;
  for (int r = 0; r < 9; ++r) {
    auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kTimes; ++i) f();
    auto end = std::chrono::steady_clock::now();
    rounds.push_back(std::chrono::duration<double, std::nano>(end - begin).count() / kTimes);
  }
  std::sort(rounds.begin(), rounds.end());
  return rounds[rounds.size() / 2];
}

}  // namespace

int main() {
  Dims size{16, 16}, none{0, 16};
  Tensor a = rand(size.span()), b = rand(size.span());
  Tensor c = rand(none.span()), d = rand(none.span());
  double path = nanoseconds([&] { Tensor y = c + d; });
  double eager = nanoseconds([&] { Tensor y = a + b; });
  fuse::set_mode(fuse::Mode::kOn);
  double recorded = nanoseconds([&] { Tensor y = a + b; });
  Tensor x = a;
  double chain = nanoseconds([&] { x = x + b; });
  x.data_ptr<float>();
  double forced = nanoseconds([&] {
    Tensor y = a + b;
    y.data_ptr<float>();
  });
  std::printf("call path alone              %7.0f ns\n", path);
  std::printf("run at once (16 x 16)        %7.0f ns\n", eager);
  std::printf("recorded, then dropped       %7.0f ns: %.0f beyond the call path\n", recorded,
              recorded - path);
  std::printf("recorded and run in groups   %7.0f ns\n", chain);
  std::printf("recorded and forced at once  %7.0f ns\n", forced);
  return 0;
}
