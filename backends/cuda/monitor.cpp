// NVML is part of the driver, not of CUDA: its header may be missing where CUDA's are there, so the
// few functions are declared here.
#include "monitor.h"

#include <dlfcn.h>

#include <cstdio>
#include <string>

#include "dynlib.h"

namespace tessera::cuda {
namespace {

using NvmlDevice = void*;
struct Utilization {
  unsigned gpu, memory;
};

struct Nvml {
  int (*init)() = nullptr;
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

}  // namespace

Status monitor_on(Device& d, DeviceMonitor* out) {
  *out = {-1, -1, -1, -1, -1, -1, -1, -1};
  const Nvml& n = nvml();
  if (!n.ready) return fail(Code::kUnsupported, "NVML: %s", n.why.c_str());
  CUuuid id{};
  TS_TRY(check(d, driver().cuDeviceGetUuid(&id, d.device), "asking for the device's uuid"));
  NvmlDevice device = nullptr;
  if (int r = n.by_uuid(uuid_text(id).c_str(), &device); r != 0)
    return fail(Code::kUnsupported, "NVML does not know the device (error %d)", r);
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
  return ok();
}

}  // namespace tessera::cuda
