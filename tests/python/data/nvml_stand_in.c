// NVML as far as `tessera top` asks it, of two GPUs that are always the same. With nvml.h's
// layouts.
#include <string.h>

typedef struct {
  unsigned gpu, memory;
} Utilization;
typedef struct {
  unsigned long long total, free, used;
} Memory;
typedef struct {
  unsigned pid;
  unsigned long long memory;
  unsigned gi, ci;
} Process;
typedef struct {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char text[32];
} Pci;

static int at(void* device) { return (int)(long)device - 1; }

int nvmlInit_v2(void) { return 0; }
int nvmlSystemGetDriverVersion(char* out, unsigned size) {
  return strncpy(out, "570.86.15", size) == 0;
}
int nvmlSystemGetCudaDriverVersion_v2(int* out) { return (*out = 12080), 0; }
int nvmlDeviceGetCount_v2(unsigned* out) { return (*out = 2), 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void** out) {
  return (*out = (void*)(long)(i + 1)), 0;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** out) { return (*out = (void*)1), uuid == 0; }
int nvmlDeviceGetName(void* d, char* out, unsigned size) {
  return strncpy(out, at(d) ? "GPU of tests B" : "GPU of tests A", size) == 0;
}
int nvmlDeviceGetPciInfo_v3(void* d, Pci* out) {
  strcpy(out->text, at(d) ? "00000000:02:00.0" : "00000000:01:00.0");
  return 0;
}
int nvmlDeviceGetMemoryInfo(void* d, Memory* out) {
  out->total = 2048ull << 20;
  out->used = at(d) ? 0 : 340ull << 20;
  out->free = out->total - out->used;
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* d, Utilization* out) {
  out->gpu = at(d) ? 0 : 97;
  out->memory = 12;
  return 0;
}
int nvmlDeviceGetTemperature(void* d, int sensor, unsigned* out) {
  return (*out = 40 - 14 * at(d)), sensor;
}
int nvmlDeviceGetPowerUsage(void* d, unsigned* out) { return (*out = 17300), 0; }
int nvmlDeviceGetEnforcedPowerLimit(void* d, unsigned* out) { return (*out = 19000), 0; }
int nvmlDeviceGetFanSpeed(void* d, unsigned* out) {
  return at(d) ? 3 : ((*out = 35), 0);
}  // 3: not supported
int nvmlDeviceGetClockInfo(void* d, int type, unsigned* out) {
  return (*out = type == 1 ? 1468 : 3004), 0;
}
int nvmlDeviceGetPerformanceState(void* d, int* out) { return (*out = at(d) ? 8 : 0), 0; }
int nvmlDeviceGetComputeRunningProcesses_v3(void* d, unsigned* count, Process* out) {
  if (at(d)) return (*count = 0), 0;
  *count = 2;
  out[0].pid = 1, out[0].memory = 336ull << 20;
  out[1].pid = 2, out[1].memory = ~0ull;  // not known
  return 0;
}
