// Which ways to compute attention a program allows: torch.backends.cuda's settings.
#pragma once
#include <cstdint>

namespace tessera::attention {

enum Way : int64_t { kFlash = 1, kMath = 2, kEfficient = 4, kCudnn = 8 };

// Bits of Way; all at the start. The one fused kernel goes by any name but kMath.
int64_t ways();
void set_ways(int64_t bits);

}  // namespace tessera::attention
