// CUDA_VISIBLE_DEVICES, as the CUDA driver and PyTorch read it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tessera::vgpu {

// Sixteen bytes that no real device has; they name the number before any selection.
void device_uuid(int number, uint8_t out[16]);

// Which of `count` devices a program sees, in its order. Null: all of them. "2,0" selects and
// reorders; "GPU-..." may be given by any beginning that fits one device; the list ends before the
// first entry that names none ("0,-1,1" is "0"); an entry given twice makes it empty.
std::vector<int> visible_devices(const char* text, int count);

}  // namespace tessera::vgpu
