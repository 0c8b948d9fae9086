// fuse_random --programs N --device cpu|virtual|cuda [--seed S] [--show SEED]
// Compares deferral on with deferral off, bit for bit, over random programs. Counts a program only
// if some group of two or more operators really ran.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "program.h"

using namespace tessera;
using random_programs::Log;

namespace {

// cpu, cuda, or virtual: the same device name, on a GPU of host memory.
Device device_named(const char* name) {
  if (!std::strcmp(name, "virtual")) {
    setenv("TESSERA_VIRTUAL_GPU", "1x1GiB", 0);
    name = "cuda";
  }
  return resolve_device(parse_device(name));
}

int64_t fused_groups(Device d) { return fuse::stream_of(d).stats().fused_groups; }

Log run_in(fuse::Mode mode, uint64_t seed, Device device) {
  fuse::set_mode(mode);
  Log log = random_programs::run_program(seed, device);
  fuse::set_mode(fuse::Mode::kOff);
  return log;
}

// Index of the first difference, or -1.
int first_difference(const Log& a, const Log& b) {
  for (size_t i = 0; i < a.entries.size() && i < b.entries.size(); ++i)
    if (a.entries[i] != b.entries[i]) return static_cast<int>(i);
  return a.entries.size() == b.entries.size() ? -1 : 0;
}

void report(uint64_t seed, const Log& off, const Log& on, int at) {
  std::printf("program %llu: fused and unfused differ at entry %d\n",
              static_cast<unsigned long long>(seed), at);
  for (const std::string& s : on.steps) std::printf("  %s\n", s.c_str());
  size_t from = 0;
  if (static_cast<size_t>(at) < off.entries.size() && static_cast<size_t>(at) < on.entries.size()) {
    const std::string& a = off.entries[static_cast<size_t>(at)];
    const std::string& b = on.entries[static_cast<size_t>(at)];
    while (from < a.size() && from < b.size() && a[from] == b[from]) ++from;
    std::printf("  first different byte %zu of %s\n", from, a.substr(0, a.find(' ')).c_str());
    from -= std::min<size_t>(from, 8);
  }
  auto show = [at, from](const char* name, const Log& log) {
    if (static_cast<size_t>(at) >= log.entries.size()) return;
    const std::string& e = log.entries[static_cast<size_t>(at)];
    std::printf("  %s: ", name);
    bool text = e.rfind("error", 0) == 0;
    for (size_t i = text ? 0 : from; i < e.size() && i < from + 96; ++i)
      std::printf(text ? "%c" : "%02x", static_cast<unsigned char>(e[i]));
    std::printf("\n");
  };
  show("unfused", off);
  show("fused  ", on);
}

}  // namespace

int main(int argc, char** argv) {
  int64_t programs = 1000;
  uint64_t seed = 1;
  Device device{};
  bool show = false;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!std::strcmp(argv[i], "--programs"))
      programs = std::atoll(argv[i + 1]);
    else if (!std::strcmp(argv[i], "--seed"))
      seed = std::strtoull(argv[i + 1], nullptr, 10);
    else if (!std::strcmp(argv[i], "--device"))
      device = device_named(argv[i + 1]);
    else if (!std::strcmp(argv[i], "--show")) {
      seed = std::strtoull(argv[i + 1], nullptr, 10);
      programs = 1;
      show = true;
    } else {
      std::fprintf(stderr, "unknown option %s\n", argv[i]);
      return 2;
    }
  }
  auto begin = std::chrono::steady_clock::now();
  int64_t counted = 0, ran = 0, different = 0, errors = 0;
  for (uint64_t s = seed; counted < programs && ran < programs * 20; ++s, ++ran) {
    Log off = run_in(fuse::Mode::kOff, s, device);
    int64_t before = fused_groups(device);
    Log on = run_in(fuse::Mode::kOn, s, device);
    bool fused = fused_groups(device) > before;
    counted += fused;
    for (const std::string& e : on.entries) errors += e.rfind("error", 0) == 0;
    int at = first_difference(off, on);
    if (show) report(s, off, on, std::max(at, 0));
    if (at < 0) continue;
    if (++different <= 3) report(s, off, on, at);
  }
  const Backend& b = backend_of(device);
  int64_t compiled = 0, cached = 0;
  b.compile_stats(&compiled, &cached);
  fuse::Stats stats = fuse::stream_of(device).stats();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf(
      "%lld programs with fused groups (of %lld run), %lld errors among their steps, "
      "%lld groups, %lld of two or more, largest %lld, %lld operators dropped, "
      "%lld kernels compiled, %lld from the cache, %.1f s\n",
      static_cast<long long>(counted), static_cast<long long>(ran), static_cast<long long>(errors),
      static_cast<long long>(stats.groups), static_cast<long long>(stats.fused_groups),
      static_cast<long long>(stats.largest_group), static_cast<long long>(stats.dropped),
      static_cast<long long>(compiled), static_cast<long long>(cached), seconds);
  std::printf("%lld disagreements\n", static_cast<long long>(different));
  return different ? 1 : 0;
}
