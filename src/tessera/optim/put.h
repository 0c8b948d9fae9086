// For schedulers: an option of a group, set or added.
#pragma once
#include "tessera/optim/optimizer.h"

namespace tessera::optim {

void put(ParamGroup& group, const char* name, double value);

}  // namespace tessera::optim
