// The current device and the current stream of each device, per thread.
#pragma once
#include "tessera/base/device.h"
#include "tessera/driver/cpu.h"

namespace tessera {

int current_device();
void set_current_device(int index);
// The stream new work of this thread goes to; null is the device's default stream.
StreamHandle current_stream(int device);
void set_current_stream(int device, StreamHandle stream);
int device_count();

// "cuda" without an index means the current one; raises when the device does not exist, with the
// reason why there is none.
Device resolve_device(Device d);

// The backend and the place a launch for tensors on `d` goes to.
inline const Backend& backend_of(Device d) { return d.is_cpu() ? cpu() : *accelerator(); }
inline Exec exec_for(Device d) {
  return d.is_cpu() ? Exec{0, nullptr} : Exec{d.index, current_stream(d.index)};
}

}  // namespace tessera
