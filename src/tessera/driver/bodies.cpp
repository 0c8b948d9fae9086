#include "tessera/driver/bodies.h"

#include <vector>

namespace tessera {

namespace {

std::vector<const PointwiseBody*>& list() {
  static auto& bodies = *new std::vector<const PointwiseBody*>;
  return bodies;
}

}  // namespace

bool list_body(const PointwiseBody& body) {
  list().push_back(&body);
  return true;
}

const PointwiseBody* const* listed_bodies(int* count) {
  *count = static_cast<int>(list().size());
  return list().data();
}

}  // namespace tessera
