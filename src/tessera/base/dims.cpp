#include "tessera/base/dims.h"

#include "tessera/base/error.h"

namespace tessera {

void append(std::string& out, const Dims& d) {
  out += '[';
  for (size_t i = 0; i < d.size(); ++i) {
    if (i) out += ", ";
    detail::append(out, d[i]);
  }
  out += ']';
}

}  // namespace tessera
