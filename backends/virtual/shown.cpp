#include "shown.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "tessera/driver/gpus.h"

namespace tessera::vgpu {
namespace {

// Only this user's: who else may look at what runs is not for us to say.
std::string folder() {
  if (const char* named = std::getenv("TESSERA_TOP_DIR"); named && *named) return named;
  const std::string name = "/tessera-gpus-" + std::to_string(getuid());
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  for (const char* parent : {"/dev/shm", runtime, "/tmp"}) {
    if (!parent || access(parent, W_OK) != 0) continue;
    const std::string path = parent + name;
    struct stat s {};
    if ((mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) && lstat(path.c_str(), &s) == 0 &&
        S_ISDIR(s.st_mode) && s.st_uid == getuid())
      return path;
  }
  return "";
}

// When a process began, in the system's ticks; 0 where it is not known.
int64_t start_of(int pid) {
  char text[1024] = {};
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t n = read(file, text, sizeof text - 1);
  close(file);
  // The name, in parentheses, may hold anything; then comes the third field, and it is the 22nd.
  const char* at = n > 0 ? std::strrchr(text, ')') : nullptr;
  for (int field = 2; at && field < 22; ++field) at = std::strchr(at + 1, ' ');
  return at ? std::strtoll(at, nullptr, 10) : 0;
}

char my_file[512];  // no destructor: see [The end of the process]
int my_pid = 0;

void remove_file() {
  if (getpid() == my_pid) unlink(my_file);
}

Shown* make() {
  const std::string place = folder();
  my_pid = getpid();
  std::snprintf(my_file, sizeof my_file, "%s/%d", place.c_str(), my_pid);
  int file =
      place.empty() ? -1 : open(my_file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  void* page = MAP_FAILED;
  if (file >= 0 && ftruncate(file, sizeof(Shown)) == 0)
    page = mmap(nullptr, sizeof(Shown), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file >= 0) close(file);
  if (page == MAP_FAILED) return new Shown;
  std::atexit(remove_file);
  auto* s = new (page) Shown;
  s->pid.store(my_pid);
  s->started.store(start_of(my_pid));
  s->magic.store(Shown::kMagic);
  return s;
}

// The pages of all processes that live; those of dead ones are removed.
std::vector<Shown*> open_all() {
  std::vector<Shown*> all;
  const std::string place = folder();
  DIR* entries = place.empty() ? nullptr : opendir(place.c_str());
  while (entries) {
    const dirent* e = readdir(entries);
    if (!e) break;
    const int pid = std::atoi(e->d_name);
    if (pid <= 0) continue;
    const std::string path = place + "/" + e->d_name;
    if (kill(pid, 0) != 0 && errno == ESRCH) {
      unlink(path.c_str());
      continue;
    }
    int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) continue;
    struct stat s {};
    void* page = MAP_FAILED;
    if (fstat(file, &s) == 0 && s.st_size == static_cast<off_t>(sizeof(Shown)))
      page = mmap(nullptr, sizeof(Shown), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (page == MAP_FAILED) continue;
    auto* shown = static_cast<Shown*>(page);
    if (shown->magic.load() == Shown::kMagic && shown->pid.load() == pid &&
        shown->started.load() == start_of(pid)) {
      all.push_back(shown);
    } else {
      munmap(page, sizeof(Shown));
    }
  }
  if (entries) closedir(entries);
  return all;
}

}  // namespace

int64_t monotonic_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

Shown& shown() {
  static Shown* s = make();
  return *s;
}

Shown::Device& shown(int device) { return shown().device[std::min(device, kShownDevices - 1)]; }

// Two workers that begin or end at the same moment may count a moment twice, or not at all.
void begin_work(int device) {
  Shown::Device& d = shown(device);
  if (d.workers.fetch_add(1) == 0) d.since.store(monotonic_ns());
}

void end_work(int device) {
  Shown::Device& d = shown(device);
  if (d.workers.fetch_sub(1) != 1) return;
  const int64_t since = d.since.exchange(0);
  if (since) d.busy_ns.fetch_add(monotonic_ns() - since);
}

int64_t busy_ns(const Shown::Device& d, int64_t now) {
  const int64_t since = d.since.load();
  return d.busy_ns.load() + (since && since < now ? now - since : 0);
}

}  // namespace tessera::vgpu

// Virtual GPUs of all processes of this user; each process has its own, and those of one number are
// shown as one. Busy: over a tenth of a second.
extern "C" __attribute__((visibility("default"))) int tessera_backend_gpus(
    tessera::GpuState* out, int capacity, tessera::GpuDriver* driver) {
  using namespace tessera;
  using namespace tessera::vgpu;
  *driver = {};
  std::vector<Shown*> all = open_all();
  std::vector<int64_t> before;
  const int64_t begin = monotonic_ns();
  for (Shown* s : all)
    for (const Shown::Device& d : s->device) before.push_back(busy_ns(d, begin));
  timespec tenth{0, 100'000'000};
  if (!all.empty()) nanosleep(&tenth, nullptr);
  const int64_t now = monotonic_ns();
  int count = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const int devices = std::clamp(all[i]->count.load(), 0, std::min(kShownDevices, capacity));
    for (int d = 0; d < devices; ++d) {
      GpuState& g = out[d];
      for (; count <= d; ++count) {
        out[count] = {};
        std::snprintf(out[count].name, sizeof out[count].name, "Virtual GPU");
        std::snprintf(out[count].bus, sizeof out[count].bus, "host memory");
        out[count].is_virtual = true;
        out[count].power_limit_mw = -1;
        out[count].now = {0, -1, -1, -1, -1, -1, -1, -1};
      }
      const Shown::Device& device = all[i]->device[d];
      const int64_t spent =
          busy_ns(device, now) - before[i * kShownDevices + static_cast<size_t>(d)];
      const int busy = static_cast<int>(std::clamp<int64_t>(spent * 100 / (now - begin), 0, 100));
      g.memory_total = std::max(g.memory_total, device.total.load());
      g.memory_used += device.used.load();
      g.now.busy_percent = std::min(g.now.busy_percent + busy, 100);
      if (g.num_processes < kMaxGpuProcesses)
        g.processes[g.num_processes++] = {all[i]->pid.load(), busy, device.used.load()};
    }
  }
  for (Shown* s : all) munmap(s, sizeof(Shown));
  if (count == 0) std::snprintf(driver->why, sizeof driver->why, "no process uses a virtual GPU");
  return count;
}
