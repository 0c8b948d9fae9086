// fuse_random --programs N --device cpu|virtual|cuda [--seed S] [--shards K] [--mode on|check|off]
//             [--limit SECONDS] [--seconds S] [--reports N] [--nan-bits] [--coverage]
// compares deferral on with deferral off, bit for bit, over random programs. It counts a program
// only if some group of two or more operators really ran. What differs is shrunk and printed. With
// --mode off both runs are alike: what differs then is not deferral's.
// fuse_random --show SEED --device D: one program, printed statement by statement as it runs.
// fuse_random --print N [--seed S] --device D: N programs as Python, for beside_pytorch.py.
// fuse_random --positions --device D: does an operator's result depend on where an element lies?
#include <execinfo.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "program.h"

using namespace tessera;
using namespace random_programs;

namespace {

struct Options {
  int64_t programs = 1000;
  uint64_t seed = 1;
  const char* device = "cpu";
  int shards = 1;
  unsigned limit = 120;  // seconds for one program
  int seconds = 0;       // for all, where programs take long; 0: as long as it takes
  fuse::Mode mode = fuse::Mode::kOn;
  int64_t reports = 3;
  bool show = false;
  bool coverage = false;
  bool positions = false;
  bool print = false;
  Likeness at_least = Likeness::kDifferent;  // what counts as a disagreement
};

// What the processes tell each other.
struct Shared {
  static constexpr int kMostOps = 4096, kMostShards = 64;
  std::atomic<int64_t> counted, ran, different, nan_bits, errors, statements;
  std::atomic<int64_t> groups, fused, dropped, recorded, largest, compiled, cached;
  std::atomic<uint64_t> under_way[kMostShards];  // the seed of each shard's program
  std::atomic<int64_t> worked[kMostOps];         // by operator
};

std::vector<Device> devices_named(const char* name) {
  if (!std::strcmp(name, "cpu")) return {Device{}};
  if (!std::strcmp(name, "virtual")) setenv("TESSERA_VIRTUAL_GPU", "2x1GiB", 0);
  std::vector<Device> out;
  for (int i = 0; i < 2; ++i)  // most work on the first
    out.push_back(resolve_device(parse_device("cuda:0")));
  if (device_count() > 1) out.push_back(resolve_device(parse_device("cuda:1")));
  out.push_back(Device{});
  return out;
}

fuse::Stats total_stats(const std::vector<Device>& devices) {
  fuse::Stats total;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (i > 0 && devices[i] == devices[i - 1]) continue;
    fuse::Stats s = fuse::stream_of(devices[i]).stats();
    total.recorded += s.recorded;
    total.dropped += s.dropped;
    total.groups += s.groups;
    total.fused_groups += s.fused_groups;
    total.largest_group = std::max(total.largest_group, s.largest_group);
  }
  return total;
}

void report(const Program& p, fuse::Mode mode) {
  Outcome off = run_program(p, fuse::Mode::kOff), on = run_program(p, mode);
  std::printf("program %llu: fused and unfused differ\n%s%s",
              static_cast<unsigned long long>(p.seed), to_text(p).c_str(),
              compare(off, on) == Likeness::kSame ? "and agree when run once more\n"
                                                  : describe_difference(p, off, on).c_str());
  std::fflush(stdout);
}

void note(Shared& shared, const Program& p, const Outcome& off) {
  for (size_t i = 0; i < p.statements.size() && i < off.worked.size(); ++i) {
    const Statement& s = p.statements[i];
    if (s.what != Do::kCall) continue;
    if (off.worked[i] && s.op->id < Shared::kMostOps)
      shared.worked[s.op->id].fetch_add(1, std::memory_order_relaxed);
    shared.errors += !off.worked[i];
  }
  shared.statements += static_cast<int64_t>(p.statements.size());
}

// A crash says where.
void on_crash(int signal) {
  void* frames[40];
  int n = backtrace(frames, 40);
  backtrace_symbols_fd(frames, n, STDERR_FILENO);
  std::signal(signal, SIG_DFL);
  ::raise(signal);
}

void run_shard(const Options& o, Shared& shared, int shard) {
  std::vector<Device> devices = devices_named(o.device);
  int64_t fused_before = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(o.seconds);
  for (uint64_t s = o.seed + static_cast<uint64_t>(shard);; s += static_cast<uint64_t>(o.shards)) {
    if (shared.counted >= o.programs || shared.ran >= o.programs * 20) break;
    if (o.seconds > 0 && std::chrono::steady_clock::now() > end) break;
    shared.under_way[shard] = s;
    alarm(o.limit);  // a program that hangs ends its process; its seed is printed
    Outcome off;
    Program p = make_program(s, devices, off);
    Outcome on = run_program(p, o.mode);
    int64_t fused = total_stats(devices).fused_groups;
    shared.counted += fused > fused_before || o.mode == fuse::Mode::kOff;
    fused_before = fused;
    ++shared.ran;
    // One value that is never looked at, larger than the machine: only without deferral it is made.
    if (off.log.find("cannot allocate") != std::string::npos) continue;
    note(shared, p, off);
    Likeness likeness = compare(off, on);
    shared.nan_bits += likeness == Likeness::kOnlyBitsOfNaN;
    if (likeness < o.at_least) continue;
    if (++shared.different > o.reports) continue;
    alarm(0);
    report(shrink(std::move(p), o.mode, o.at_least), o.mode);
  }
  alarm(0);
  fuse::Stats stats = total_stats(devices);
  shared.recorded += stats.recorded;
  shared.groups += stats.groups;
  shared.fused += stats.fused_groups;
  shared.dropped += stats.dropped;
  int64_t largest = shared.largest;
  while (largest < stats.largest_group &&
         !shared.largest.compare_exchange_weak(largest, stats.largest_group)) {
  }
  int64_t compiled = 0, cached = 0;
  backend_of(devices[0]).compile_stats(&compiled, &cached);
  shared.compiled += compiled;
  shared.cached += cached;
}

// Returns how many ended badly.
int run_shards(const Options& o, Shared& shared) {
  std::vector<pid_t> children;
  for (int i = 0; i < o.shards; ++i) {
    pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT}) std::signal(signal, on_crash);
      run_shard(o, shared, i);
      std::fflush(stdout);
      _exit(0);
    }
    children.push_back(child);
  }
  int bad = 0;
  for (int i = 0; i < o.shards; ++i) {
    int status = 0;
    waitpid(children[static_cast<size_t>(i)], &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    ++bad;
    std::printf("the process of program %llu ended by %s\n",
                static_cast<unsigned long long>(shared.under_way[i]),
                WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "itself");
  }
  return bad;
}

void print_coverage(const Shared& shared, bool on_device) {
  int drawn = 0, ran = 0, pointwise = 0, pointwise_ran = 0;
  for (const Op* op : all_ops()) {
    if (!is_drawn(*op, on_device)) continue;
    bool worked = op->id < Shared::kMostOps && shared.worked[op->id] > 0;
    ++drawn;
    ran += worked;
    if (op->kind == Kind::kPointwise) {
      ++pointwise;
      pointwise_ran += worked;
    }
    if (!worked) std::printf("never ran: %s\n", op->record->schema);
  }
  std::printf("%d of %d operators ran, of the pointwise ones %d of %d\n", ran, drawn, pointwise_ran,
              pointwise);
}

bool parse(int argc, char** argv, Options& o) {
  for (int i = 1; i < argc; ++i) {
    std::string_view name = argv[i];
    if (name == "--nan-bits") {
      o.at_least = Likeness::kOnlyBitsOfNaN;
      continue;
    }
    if (name == "--coverage" || name == "--positions") {
      (name == "--coverage" ? o.coverage : o.positions) = true;
      continue;
    }
    if (i + 1 == argc) return false;
    const char* value = argv[++i];
    if (name == "--programs" || name == "--print") {
      o.programs = std::atoll(value);
      o.print |= name == "--print";
    } else if (name == "--seed")
      o.seed = std::strtoull(value, nullptr, 10);
    else if (name == "--limit")
      o.limit = static_cast<unsigned>(std::atoi(value));
    else if (name == "--seconds")
      o.seconds = std::atoi(value);
    else if (name == "--reports")
      o.reports = std::atoll(value);
    else if (name == "--device")
      o.device = value;
    else if (name == "--shards")
      o.shards = std::clamp(std::atoi(value), 1, Shared::kMostShards);
    else if (name == "--mode")
      o.mode = !std::strcmp(value, "check") ? fuse::Mode::kCheck
               : !std::strcmp(value, "off") ? fuse::Mode::kOff
                                            : fuse::Mode::kOn;
    else if (name == "--show") {
      o.seed = std::strtoull(value, nullptr, 10);
      o.programs = 0;
      o.show = true;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  if (!parse(argc, argv, o)) {
    std::fprintf(stderr, "what can be asked for stands at the top of main.cpp\n");
    return 2;
  }
  // What is small would run at once on the CPU; here nearly all is. Some runs have both.
  setenv("TESSERA_FUSE_TINY", o.seed % 4 ? "0" : "40", 0);
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 2;
  Shared& shared = *new (memory) Shared{};
  auto begin = std::chrono::steady_clock::now();
  if (o.show) {
    tracing = true;
    Outcome off;
    Program p = make_program(o.seed, devices_named(o.device), off);
    Outcome on = run_program(p, o.mode);
    bool same = compare(off, on) == Likeness::kSame;
    std::printf("%s", same ? "the same\n" : describe_difference(p, off, on).c_str());
    return same ? 0 : 1;
  }
  if (o.print) {
    const std::vector<Device> devices = devices_named(o.device);
    for (int64_t i = 0; i < o.programs; ++i) {
      Outcome off;
      const Program p = make_program(o.seed + static_cast<uint64_t>(i), devices, off);
      std::printf("# program %llu\n%s", static_cast<unsigned long long>(p.seed),
                  to_text(p, true).c_str());
    }
    return 0;
  }
  if (o.positions) {
    int found = check_positions(devices_named(o.device)[0]);
    std::printf("%d operators depend on where an element lies\n", found);
    return found ? 1 : 0;
  }
  int bad = run_shards(o, shared);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf(
      "%lld programs with fused groups (of %lld run) on %s, %lld statements, %lld errors among "
      "them, %lld operators recorded, %lld groups, %lld of two or more, largest %lld, %lld "
      "operators dropped, %lld kernels compiled, %lld from the cache, %.1f s, %.0f programs/s\n",
      static_cast<long long>(shared.counted), static_cast<long long>(shared.ran), o.device,
      static_cast<long long>(shared.statements), static_cast<long long>(shared.errors),
      static_cast<long long>(shared.recorded), static_cast<long long>(shared.groups),
      static_cast<long long>(shared.fused), static_cast<long long>(shared.largest),
      static_cast<long long>(shared.dropped), static_cast<long long>(shared.compiled),
      static_cast<long long>(shared.cached), seconds,
      static_cast<double>(shared.ran) / std::max(seconds, 1e-9));
  if (o.coverage) print_coverage(shared, std::strcmp(o.device, "cpu") != 0);
  std::printf("%lld programs differ in the bits of a NaN only\n%lld disagreements\n",
              static_cast<long long>(shared.nan_bits), static_cast<long long>(shared.different));
  return shared.different || bad ? 1 : 0;
}
