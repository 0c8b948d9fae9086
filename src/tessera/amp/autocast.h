// Mixed precision: which dtype an operator's inputs are cast to, by the class on its record.
#pragma once
#include <vector>

#include "tessera/ops/record.h"

namespace tessera::amp {

bool autocast_enabled(DeviceType type);
DType autocast_dtype(DeviceType type);
void set_autocast(DeviceType type, bool enabled, DType dtype);

// True when autocast is on for some device in this thread: the only check on the way of a call.
bool any_autocast();

// Casts tensor arguments as the operator's class asks; `keep` owns the casts. Returns false when
// nothing changed.
bool cast_arguments(const Op& op, Args args, std::vector<Value>& out,
                    std::vector<TensorBase>& keep);

}  // namespace tessera::amp
