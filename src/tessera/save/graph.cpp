#include "tessera/save/graph.h"

namespace tessera::files {

bool Graph::has_items(ValueKind k) {
  switch (k) {
    case ValueKind::kComplex:
    case ValueKind::kTuple:
    case ValueKind::kList:
    case ValueKind::kSet:
    case ValueKind::kFrozenSet:
    case ValueKind::kDict:
    case ValueKind::kOrderedDict:
    case ValueKind::kCounter:
    case ValueKind::kSize:
    case ValueKind::kDevice:
    case ValueKind::kParameter:
    case ValueKind::kObject:
      return true;
    default:
      return false;
  }
}

uint64_t Graph::hash_work(Id id) const {
  constexpr uint32_t kBytesAtOnce = 64;  // compared in about the time of one element
  const Node& node = nodes[id];
  switch (node.kind) {
    case ValueKind::kTuple:
    case ValueKind::kFrozenSet:
    case ValueKind::kSize:
      return static_cast<uint64_t>(node.number);
    case ValueKind::kText:
    case ValueKind::kBytes:
      return 1 + node.length / kBytesAtOnce;
    case ValueKind::kBigInt:
      return 1 + node.length / 8;
    case ValueKind::kObject:
      return node.length;
    default:
      return 1;
  }
}

const std::vector<Id>& Graph::items(Id id) const {
  static const auto& none = *new std::vector<Id>;
  uint32_t link = nodes[id].link;
  return has_items(nodes[id].kind) && link ? lists[link - 1] : none;
}

const char* kind_name(ValueKind k) {
  constexpr const char* names[] = {
      "None",        "a bool",     "an int",          "a large int",    "a float",    "a complex",
      "a string",    "bytes",      "a bytearray",     "a tuple",        "a list",     "a set",
      "a frozenset", "a dict",     "an OrderedDict",  "a Counter",      "a Size",     "a device",
      "a dtype",     "a constant", "a storage class", "a tensor class", "a function", "a class",
      "a storage",   "a tensor",   "a parameter",     "an object"};
  return names[static_cast<int>(k)];
}

}  // namespace tessera::files
