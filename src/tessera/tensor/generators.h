// The default random generator of each device.
#pragma once
#include "tessera/base/device.h"
#include "tessera/tensor/rng.h"

namespace tessera {

Mt19937Generator& default_generator(Device device);
// Seeds every device's generator, as torch.manual_seed does.
void manual_seed(uint64_t seed);

}  // namespace tessera
