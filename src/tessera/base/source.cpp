#include "tessera/base/source.h"

namespace tessera {
SourceHooks source_hooks;
thread_local const SourceRef* SourceRef::deferred = nullptr;
}  // namespace tessera
