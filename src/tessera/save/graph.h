// What a pickle describes, as data: values that name each other by number. Nothing in it has been
// called, and no class was looked up.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/dims.h"
#include "tessera/base/dtype.h"

namespace tessera::files {

enum class ValueKind : uint8_t {
  kNone,
  kBool,
  kInt,
  kBigInt,  // text: bytes, little-endian, two's complement
  kFloat,
  kComplex,  // items: two floats
  kText,     // UTF-8, surrogates allowed as Python's pickles have them
  kBytes,
  kByteArray,
  kTuple,  // number: hash_work(), also of frozensets and sizes
  kList,
  kSet,
  kFrozenSet,
  kDict,  // items: key, value, key, value ...
  kOrderedDict,
  kCounter,
  kSize,         // items: ints
  kDevice,       // items: text, and an int where the device has an index
  kDType,        // number: DType
  kConstant,     // text: name of a layout or memory format
  kStorageType,  // number: DType, or kUntyped
  kTensorType,   // torch.Tensor or torch.nn.parameter.Parameter; text: which
  kFunction,     // number: Function
  kAllowed,      // text: "module.name", which the caller allows
  kStorage,      // link: of Graph::storages
  kTensor,       // link: of Graph::tensors
  kParameter,    // items: the tensor; number: requires_grad
  kObject,       // items: an allowed thing, its arguments; number: 0 called, 1 cls.__new__;
                 // length: hash_work()
};
inline constexpr int64_t kUntyped = -1;

using Id = uint32_t;

struct Node {
  ValueKind kind = ValueKind::kNone;
  bool hashable = true;
  uint16_t depth = 0;  // of what cannot change: tuples in tuples
  uint32_t link = 0;   // of Graph::lists where the kind has items, or as the kind says
  union {
    int64_t number = 0;
    double real;
    const char* text;
  };
  uint32_t length = 0;  // of text; of items: how many it was made with
  uint32_t byte = 0;    // where in the pickle it was made: for messages
};

// Numbers in memory that tensors lie over; read from the file when all is known to be well.
struct StorageInfo {
  std::string key;
  std::string location;
  int64_t type = kUntyped;  // DType
  int64_t numel = 0;
  uint32_t byte = 0;
};
struct TensorInfo {
  int64_t storage = -1;  // none: on the meta device
  DType dtype = DType::kFloat32;
  int64_t offset = 0;
  Dims sizes, strides;
  bool requires_grad = false;
};
// Something that changed a value after it was made, in the order of the file. Whoever builds
// objects of these values makes node after node, and does a change before node `before`.
struct Change {
  enum class What : uint8_t { kAppend, kSetItems, kState };
  What what;
  Id target;
  uint32_t before;
  uint32_t begin, end;  // of the target's items; of a state: its node
};

class Graph {
 public:
  std::vector<Node> nodes;
  std::deque<std::vector<Id>> lists;
  std::vector<StorageInfo> storages;
  std::vector<TensorInfo> tensors;
  std::vector<Change> changes;
  std::deque<std::string> texts;  // bytes that do not stand in the file as they are
  std::vector<uint8_t> pickle;    // what texts point into
  Id root = 0;

  const Node& operator[](Id id) const { return nodes[id]; }
  std::string_view text(Id id) const { return {nodes[id].text, nodes[id].length}; }
  // Elements that Python visits to hash the value once, or to compare it with an equal one: shared
  // parts count each time, because tuples do not keep their hash.
  uint64_t hash_work(Id id) const;
  static bool has_items(ValueKind k);
  const std::vector<Id>& items(Id id) const;
  bool is_dict(Id id) const {
    ValueKind k = nodes[id].kind;
    return k == ValueKind::kDict || k == ValueKind::kOrderedDict || k == ValueKind::kCounter;
  }
  bool is_int(Id id) const { return nodes[id].kind == ValueKind::kInt; }
  bool is_text(Id id) const { return nodes[id].kind == ValueKind::kText; }
};

// "a dict", "a tensor": for messages.
const char* kind_name(ValueKind k);

}  // namespace tessera::files
