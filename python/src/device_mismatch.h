#pragma once
#include "py.h"

namespace tessera {
class DeviceMismatch;
}

namespace tessera::python {

// Sets Python's RuntimeError for two devices in one operator.
void set_mismatch_error(const DeviceMismatch& e) noexcept;

}  // namespace tessera::python
