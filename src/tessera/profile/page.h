// A trace as the data of a page that shows it: columns of numbers and a table of names, as JSON.
#pragma once
#include <string>

#include "tessera/profile/trace.h"

namespace tessera::profile {

// At most so many events, the longest.
std::string page_data(const Trace& trace, size_t most_events = 300'000);

}  // namespace tessera::profile
