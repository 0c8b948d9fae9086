// The restricted pickle machine: builds a Graph and calls nothing.
//
// Note [Work in proportion to a file's size]
// A pickle can name one value many times, so that a few bytes stand for much work: tuples in tuples
// are hashed part by part, the attributes of a dict are set on a million objects. The reader counts
// such work and refuses a file in which it exceeds a small multiple of the bytes. Keys with equal
// hashes are counted by the code that builds Python's dicts (python/src/saved_values.cpp).
#pragma once
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>

#include "tessera/save/errors.h"
#include "tessera/save/graph.h"

namespace tessera::files {

// What a file may name beside tensors and plain data: "module.name".
using AllowedNames = std::unordered_set<std::string>;

// A number that this thread's reading of one pickle may not pass.
struct PickleLimits {
  size_t stack = 1 << 20;
  size_t marks = 10'000;
  size_t nodes = 10'000'000;
  uint16_t depth = 1'000;  // of tuples in tuples
  int rank = 64;           // of tensors
};

// What a global stands for.
enum class Function : uint8_t {
  kOrderedDict,
  kCounter,
  kSet,
  kFrozenSet,
  kComplex,
  kByteArray,
  kBytes,
  kEncode,
  kSize,
  kDevice,
  kLayout,
  kTensor,
  kTensorV2,
  kTensorV3,
  kMetaTensor,
  kParameter,
  kParameterWithState,
  kFromType,
};

// A known global. `refused` is one that PyTorch has and Tessera cannot read yet.
struct KnownGlobal {
  ValueKind kind = ValueKind::kNone;
  int64_t number = 0;
  bool refused = false;
};
// False where no such global is known.
bool find_global(std::string_view module, std::string_view name, KnownGlobal& out);
// "collections.OrderedDict": the name of a function, as PyTorch has it.
std::string function_name(Function f);

class PickleReader {
 public:
  // Reads from `bytes`, which are the graph's or live as long. `base` is where they stand in the
  // file, and `entry` what that part of it is called.
  PickleReader(std::span<const uint8_t> bytes, Graph& graph, std::string file, std::string entry,
               const AllowedNames* allowed = nullptr, PickleLimits limits = {});
  // Names that are neither known nor allowed are put here instead of being refused: for asking what
  // a file wants, not for using what it holds.
  void collect_unknown(std::set<std::string>* names) { unknown_ = names; }
  // One pickle, from byte `at` to its STOP; `at` is then behind it.
  Id read(size_t& at);
  [[noreturn]] void refuse_at(size_t byte, std::string_view why) const;

 private:
  friend class Reducer;

  void step(uint8_t op);
  void read_number(uint8_t op);
  void read_text(size_t n, bool utf8);
  void read_global();
  void make_tuple(size_t n);
  void append(bool many);
  void set_items(bool many);
  void build();
  void new_object();
  void reduce();
  void persistent_id();
  void remember(size_t index);
  void recall(size_t index);

  const uint8_t* take(size_t n);
  std::string_view line();
  Id add(Node node);
  Id add_list(ValueKind kind, std::vector<Id> items, bool hashable = false);
  Id add_object(Id callee, Id args, bool by_new);
  // Keeps hash_work() of a tuple, a frozenset or a size that is complete.
  void set_hash_work(Id id);
  Id add_text(ValueKind kind, std::string_view text);  // text lives as long as the graph
  Id add_copy(ValueKind kind, std::string text);
  void charge(size_t items);
  void grow(Id target, size_t from, Change::What what);
  // Every use of a value as a key or as an element of a set passes here.
  void check_key(Id key);
  void check_attributes(Id state);
  void set_state(Id target, Id state);
  void push(Id id);
  Id pop();
  Id top() const;
  size_t pop_mark();
  [[noreturn]] void refuse_here(std::string_view why) const { refuse_at(opcode_at_, why); }

  std::span<const uint8_t> bytes_;
  Graph& graph_;
  std::string file_, entry_;
  const AllowedNames* allowed_;
  std::set<std::string>* unknown_ = nullptr;
  PickleLimits limits_;
  size_t at_ = 0, opcode_at_ = 0;
  uint64_t opcodes_ = 0;
  size_t budget_;         // ids that lists may still hold
  size_t copies_;         // bytes that may still be copied
  uint64_t hash_budget_;  // sum of hash_work() that keys and elements of sets may still have
  bool stopped_ = false;
  std::vector<Id> stack_;
  std::vector<size_t> marks_;
  std::vector<Id> memo_;                        // id + 1, 0 where there is none
  std::map<std::string, uint32_t> storage_of_;  // by key; ordered, as hashes of text collide
};

}  // namespace tessera::files
