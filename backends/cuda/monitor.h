// What a device is doing, as NVML tells it.
#pragma once
#include "context.h"

namespace tessera::cuda {

// kUnsupported, and why, where NVML is not there or does not know the device.
Status monitor_on(Device& d, DeviceMonitor* out);

}  // namespace tessera::cuda
