#include "tessera/driver/bodies.h"

#include <vector>

namespace tessera {

namespace {

std::vector<const PointwiseBody*>& list() {
  static std::vector<const PointwiseBody*> bodies;
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
