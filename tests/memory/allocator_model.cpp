// Random operations on the allocator, compared with a shadow model after each:
//   allocator_model [--ops 10000000] [--seed 1]
#include <cstring>

#include "paged_device.h"

int main(int argc, char** argv) {
  using namespace tessera::memory;
  int64_t operations = 1000000;
  unsigned seed = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!std::strcmp(argv[i], "--ops")) operations = static_cast<int64_t>(std::atof(argv[i + 1]));
    if (!std::strcmp(argv[i], "--seed")) seed = static_cast<unsigned>(std::atoi(argv[i + 1]));
  }
  constexpr int64_t kRun = 100000;
  int64_t done = 0, ooms = 0;
  for (unsigned run = 0; done < operations; ++run) {
    paged = PagedDevice{};
    paged.total = (int64_t{64} << 20) << run % 4;
    DeviceAllocator a(paged_backend(), 0, Config{});
    PagedModel model(a, seed + run);
    for (int64_t i = 0; i < kRun && done < operations; ++i, ++done)
      if (std::string wrong = model.step(); !wrong.empty()) {
        std::printf("run %u, operation %lld: %s\n", seed + run, static_cast<long long>(i),
                    wrong.c_str());
        return 1;
      }
    model.release_all();
    a.empty_cache();
    if (paged.used != 0) {
      std::printf("run %u: %lld bytes were lost\n", seed + run, static_cast<long long>(paged.used));
      return 1;
    }
    ooms += model.ooms();
  }
  std::printf("%lld operations, %lld of them out of memory, no violation\n",
              static_cast<long long>(done), static_cast<long long>(ooms));
  return 0;
}
