#include "tessera/base/source.h"

namespace tessera {
SourceHooks source_hooks;
}  // namespace tessera
