// A trace as JSON that Perfetto and chrome://tracing open, with PyTorch's names.
#pragma once
#include <string>

#include "tessera/profile/trace.h"

namespace tessera::profile {

struct Written {
  int64_t events = 0;    // of the trace
  int64_t left_out = 0;  // the shortest, where the file would be larger than allowed
};

// Bytes before compression; TESSERA_PROFILE_MAX_BYTES, 512 MiB.
int64_t most_trace_bytes();
Written write_chrome_trace(const Trace& trace, const std::string& path,
                           int64_t most_bytes = most_trace_bytes());

// "..." with what JSON wants escaped; bytes that are no UTF-8 become U+FFFD.
void append_json(std::string& out, std::string_view text);

}  // namespace tessera::profile
