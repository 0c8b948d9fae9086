// NVML is part of the driver, not of CUDA: its header may be missing where CUDA's are there, so the
// few functions are declared here.
#include "monitor.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "dynlib.h"
#include "tessera/driver/gpus.h"

namespace tessera::cuda {
namespace {

using NvmlDevice = void*;
struct Utilization {
  unsigned gpu, memory;
};

struct Memory {
  unsigned long long total, free, used;
};
// Of the third version of the call: the last two are of parts of a GPU.
struct Process {
  unsigned pid;
  unsigned long long memory;
  unsigned instance, compute_instance;
};
struct Pci {
  char legacy[16];
  unsigned domain, bus, device, ids, subsystem;
  char text[32];
};

struct Nvml {
  int (*init)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*by_index)(unsigned, NvmlDevice*) = nullptr;
  int (*name)(NvmlDevice, char*, unsigned) = nullptr;
  int (*pci)(NvmlDevice, Pci*) = nullptr;
  int (*memory)(NvmlDevice, Memory*) = nullptr;
  int (*power_limit)(NvmlDevice, unsigned*) = nullptr;
  int (*processes)(NvmlDevice, unsigned*, Process*) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*cuda_version)(int*) = nullptr;
  int (*by_uuid)(const char*, NvmlDevice*) = nullptr;
  int (*utilization)(NvmlDevice, Utilization*) = nullptr;
  int (*temperature)(NvmlDevice, int sensor, unsigned*) = nullptr;
  int (*power)(NvmlDevice, unsigned*) = nullptr;
  int (*fan)(NvmlDevice, unsigned*) = nullptr;
  int (*clock)(NvmlDevice, int type, unsigned*) = nullptr;
  int (*state)(NvmlDevice, int*) = nullptr;
  bool ready = false;
  std::string why;
};

template <class F>
void load(void* library, const char* name, F* out) {
  *out = reinterpret_cast<F>(dlsym(library, name));
}

const Nvml& nvml() {
  static Nvml* n = [] {
    auto* fresh = new Nvml;
    void* library = open_library({"libnvidia-ml.so.1"}, &fresh->why);
    if (!library) return fresh;
    load(library, "nvmlInit_v2", &fresh->init);
    load(library, "nvmlDeviceGetHandleByUUID", &fresh->by_uuid);
    load(library, "nvmlDeviceGetUtilizationRates", &fresh->utilization);
    load(library, "nvmlDeviceGetTemperature", &fresh->temperature);
    load(library, "nvmlDeviceGetPowerUsage", &fresh->power);
    load(library, "nvmlDeviceGetFanSpeed", &fresh->fan);
    load(library, "nvmlDeviceGetClockInfo", &fresh->clock);
    load(library, "nvmlDeviceGetPerformanceState", &fresh->state);
    load(library, "nvmlDeviceGetCount_v2", &fresh->count);
    load(library, "nvmlDeviceGetHandleByIndex_v2", &fresh->by_index);
    load(library, "nvmlDeviceGetName", &fresh->name);
    load(library, "nvmlDeviceGetPciInfo_v3", &fresh->pci);
    load(library, "nvmlDeviceGetMemoryInfo", &fresh->memory);
    load(library, "nvmlDeviceGetEnforcedPowerLimit", &fresh->power_limit);
    load(library, "nvmlDeviceGetComputeRunningProcesses_v3", &fresh->processes);
    load(library, "nvmlSystemGetDriverVersion", &fresh->driver_version);
    load(library, "nvmlSystemGetCudaDriverVersion_v2", &fresh->cuda_version);
    if (!fresh->init || !fresh->by_uuid)
      fresh->why = "libnvidia-ml.so.1 lacks functions";
    else if (int r = fresh->init(); r != 0)
      fresh->why = "NVML could not be initialised (error " + std::to_string(r) + ")";
    else
      fresh->ready = true;
    return fresh;
  }();
  return *n;
}

// "GPU-xxxxxxxx-xxxx-...", as NVML spells it.
std::string uuid_text(const CUuuid& id) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(id.bytes[i]));
    text += two;
    if (i == 3 || i == 5 || i == 7 || i == 9) text += '-';
  }
  return text;
}

DeviceMonitor ask(const Nvml& n, NvmlDevice device) {
  DeviceMonitor now = {-1, -1, -1, -1, -1, -1, -1, -1}, *out = &now;
  Utilization u{};
  if (n.utilization && n.utilization(device, &u) == 0) {
    out->busy_percent = static_cast<int>(u.gpu);
    out->memory_busy_percent = static_cast<int>(u.memory);
  }
  unsigned v = 0;
  if (n.temperature && n.temperature(device, 0, &v) == 0) out->temperature = static_cast<int>(v);
  if (n.power && n.power(device, &v) == 0) out->power_mw = v;
  if (n.fan && n.fan(device, &v) == 0) out->fan_percent = static_cast<int>(v);
  if (n.clock && n.clock(device, 1, &v) == 0) out->clock_mhz = static_cast<int>(v);
  if (n.clock && n.clock(device, 2, &v) == 0) out->memory_clock_mhz = static_cast<int>(v);
  int state = 0;
  if (n.state && n.state(device, &state) == 0) out->performance_state = state;
  return now;
}

void fill(const Nvml& n, NvmlDevice device, GpuState* out) {
  *out = {};
  if (n.name) n.name(device, out->name, sizeof out->name);
  if (Pci pci{}; n.pci && n.pci(device, &pci) == 0)
    std::snprintf(out->bus, sizeof out->bus, "%.20s", pci.text);
  if (Memory memory{}; n.memory && n.memory(device, &memory) == 0) {
    out->memory_used = static_cast<int64_t>(memory.used);
    out->memory_total = static_cast<int64_t>(memory.total);
  }
  out->power_limit_mw = -1;
  if (unsigned v = 0; n.power_limit && n.power_limit(device, &v) == 0) out->power_limit_mw = v;
  out->now = ask(n, device);
  Process found[kMaxGpuProcesses] = {};
  unsigned count = kMaxGpuProcesses;
  if (!n.processes || n.processes(device, &count, found) != 0) return;
  out->num_processes = static_cast<int>(std::min<unsigned>(count, kMaxGpuProcesses));
  for (int i = 0; i < out->num_processes; ++i) {
    const bool known = found[i].memory != ~0ull;
    out->processes[i] = {static_cast<int32_t>(found[i].pid), -1,
                         known ? static_cast<int64_t>(found[i].memory) : -1};
  }
}

}  // namespace

Status monitor_on(Device& d, DeviceMonitor* out) {
  const Nvml& n = nvml();
  if (!n.ready) return fail(Code::kUnsupported, "NVML: %s", n.why.c_str());
  CUuuid id{};
  TS_TRY(check(d, driver().cuDeviceGetUuid(&id, d.device), "asking for the device's uuid"));
  NvmlDevice device = nullptr;
  if (int r = n.by_uuid(uuid_text(id).c_str(), &device); r != 0)
    return fail(Code::kUnsupported, "NVML does not know the device (error %d)", r);
  *out = ask(n, device);
  return ok();
}

}  // namespace tessera::cuda

// Every GPU that NVML knows, whatever CUDA_VISIBLE_DEVICES says; none is initialised for it.
extern "C" __attribute__((visibility("default"))) int tessera_backend_gpus(
    tessera::GpuState* out, int capacity, tessera::GpuDriver* driver) {
  using namespace tessera::cuda;
  *driver = {};
  const Nvml& n = nvml();
  unsigned count = 0;
  if (n.ready && n.driver_version) n.driver_version(driver->driver, sizeof driver->driver);
  if (int v = 0; n.ready && n.cuda_version && n.cuda_version(&v) == 0)
    std::snprintf(driver->cuda, sizeof driver->cuda, "%d.%d", v / 1000, v % 1000 / 10);
  if (!n.ready || !n.count || !n.by_index || n.count(&count) != 0) {
    std::snprintf(driver->why, sizeof driver->why, "%s",
                  n.ready ? "NVML does not say how many GPUs there are" : n.why.c_str());
    return 0;
  }
  int filled = 0;
  for (unsigned i = 0; i < count && filled < capacity; ++i)
    if (NvmlDevice device = nullptr; n.by_index(i, &device) == 0) fill(n, device, &out[filled++]);
  if (filled == 0) std::snprintf(driver->why, sizeof driver->why, "the driver knows no GPU");
  return filled;
}
