// All pointwise bodies: for backends that make something of each before a program names it.
#pragma once
#include "tessera/driver/program.h"

namespace tessera {

// Called when the library is loaded, by each body. True.
bool list_body(const PointwiseBody& body);
const PointwiseBody* const* listed_bodies(int* count);

}  // namespace tessera
