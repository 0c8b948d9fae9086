// Statuses with their message kept for the calling thread.
#pragma once
#include "tessera/driver/backend.h"

namespace tessera::cuda {

inline Status ok() { return Status{}; }
[[gnu::format(printf, 2, 3)]] Status fail(Code code, const char* format, ...);

#define TS_TRY(expression)                                        \
  do {                                                            \
    if (::tessera::Status s_ = (expression); !s_.ok()) return s_; \
  } while (0)

}  // namespace tessera::cuda
