// What modes a call finds itself in, for the few records that choose by them: answered by the
// stages above.
#pragma once
#include "tessera/base/device.h"

namespace tessera {

// Is autocast on for this kind of device?
bool autocasts(DeviceType type);

// Would a call be recorded for backward, if an argument wants a gradient?
bool records_gradients();
// In a backward: is the graph kept for another one? A gradient that wears out what was saved for it
// must then use a copy.
bool graph_is_retained();

}  // namespace tessera
