#include "tessera/save/pickle_reader.h"

#include <algorithm>
#include <bit>

#include "tessera/save/json_cursor.h"
#include "tessera/save/little_endian.h"
#include "tessera/save/opcodes.h"

namespace tessera::files {

PickleReader::PickleReader(std::span<const uint8_t> bytes, Graph& graph, std::string file,
                           std::string entry, const AllowedNames* allowed, PickleLimits limits)
    : bytes_(bytes),
      graph_(graph),
      file_(std::move(file)),
      entry_(std::move(entry)),
      allowed_(allowed),
      limits_(limits),
      // Python's pickler spends a byte at least on every item; twice where a set or a Counter is
      // made of a list or a dict, and a shape's numbers are kept once more.
      budget_(4 * bytes.size() + 64),
      copies_(bytes.size()),
      // A key costs the bytes of its parts, or a few bytes that name it again.
      hash_budget_(4 * bytes.size() + (1 << 20)) {}

void PickleReader::refuse_at(size_t byte, std::string_view why) const {
  refuse(Refused::What::kPickle, file_, entry_, byte, why);
}

Id PickleReader::read(size_t& at) {
  at_ = at;
  stopped_ = false;
  opcodes_ = 0;
  stack_.clear();
  marks_.clear();
  memo_.clear();
  while (!stopped_) {
    opcode_at_ = at_;
    if (at_ >= bytes_.size()) refuse_here("the pickle ends before its STOP; the file was cut");
    ++opcodes_;
    step(bytes_[at_++]);
  }
  if (stack_.size() != 1 || !marks_.empty())
    refuse_here(cat("STOP with ", stack_.size(), " values on the stack"));
  at = at_;
  return stack_[0];
}

void PickleReader::step(uint8_t op) {
  using namespace pickle;
  switch (op) {
    case kProto: {
      uint8_t version = *take(1);
      if (version != 2 && version != 3)  // 3 is 2 with an opcode for bytes
        refuse_here(
            cat("pickle protocol ", int{version},
                "; only 2, which torch.save writes, is read with weights_only. Save with "
                "pickle_protocol=2, or load with weights_only=False if you trust the file"));
      return;
    }
    case kStop:
      stopped_ = true;
      return;
    case kMark:
      if (marks_.size() >= limits_.marks)
        refuse_here(cat("nested more than ", limits_.marks, " deep"));
      marks_.push_back(stack_.size());
      return;
    case kNone:
    case kTrue:
    case kFalse:
    case kInt4:
    case kInt1:
    case kInt2:
    case kLong1:
    case kFloat:
      return read_number(op);
    case kUnicode: {
      uint32_t n = get<uint32_t>(take(4));
      return read_text(n, true);
    }
    case kShortString: {
      uint8_t n = *take(1);
      return read_text(n, false);
    }
    case kEmptyDict:
      return push(add_list(ValueKind::kDict, {}));
    case kEmptyList:
      return push(add_list(ValueKind::kList, {}));
    case kEmptySet:
      return push(add_list(ValueKind::kSet, {}));
    case kEmptyTuple:
      return make_tuple(0);
    case kTuple1:
    case kTuple2:
    case kTuple3:
      return make_tuple(size_t{op} - kTuple1 + 1);
    case kTuple:
      return make_tuple(stack_.size() - pop_mark());
    case kAppend:
    case kAppends:
      return append(op == kAppends);
    case kSetItem:
    case kSetItems:
      return set_items(op == kSetItems);
    case kGet:
      return recall(*take(1));
    case kLongGet:
      return recall(get<uint32_t>(take(4)));
    case kPut:
      return remember(*take(1));
    case kLongPut:
      return remember(get<uint32_t>(take(4)));
    case kGlobal:
      return read_global();
    case kReduce:
      return reduce();
    case kBuild:
      return build();
    case kNewObject:
      return new_object();
    case kPersistent:
      return persistent_id();
    default:
      break;
  }
  constexpr char digits[] = "0123456789abcdef";
  char hex[] = {digits[op >> 4], digits[op & 15], 0};
  refuse_here(cat("Unsupported operand: opcode 0x", hex,
                  op > 32 && op < 127 ? cat(" ('", static_cast<char>(op), "')") : "",
                  " is not among those that files of tensors need. Load with weights_only=False "
                  "only if you trust whoever made the file: that runs what it says"));
}

const uint8_t* PickleReader::take(size_t n) {
  if (n > bytes_.size() - at_)
    refuse_here(cat("an operand of ", n, " bytes, where ", bytes_.size() - at_,
                    " are left; the file was cut or changed"));
  const uint8_t* out = bytes_.data() + at_;
  at_ += n;
  return out;
}

std::string_view PickleReader::line() {
  constexpr size_t kLongest = 1000;
  size_t left = std::min(bytes_.size() - at_, kLongest);
  const auto* begin = reinterpret_cast<const char*>(bytes_.data() + at_);
  const char* end = std::find(begin, begin + left, '\n');
  if (end == begin + left) refuse_here("a name without an end");
  at_ += static_cast<size_t>(end - begin) + 1;
  return {begin, static_cast<size_t>(end - begin)};
}

Id PickleReader::add(Node node) {
  if (graph_.nodes.size() >= limits_.nodes)
    refuse_here(cat("more than ", limits_.nodes, " values"));
  node.byte = static_cast<uint32_t>(opcode_at_);
  graph_.nodes.push_back(node);
  return static_cast<Id>(graph_.nodes.size() - 1);
}

void PickleReader::charge(size_t items) {
  if (items > budget_)
    refuse_here("the same values are copied over and over: no pickler writes that");
  budget_ -= items;
}

Id PickleReader::add_list(ValueKind kind, std::vector<Id> items, bool hashable) {
  charge(items.size());
  Node node;
  node.kind = kind;
  node.hashable = hashable;
  node.length = static_cast<uint32_t>(items.size());
  if (!items.empty()) {
    graph_.lists.push_back(std::move(items));
    node.link = static_cast<uint32_t>(graph_.lists.size());
  }
  return add(node);
}

Id PickleReader::add_object(Id callee, Id args, bool by_new) {
  charge(graph_.items(args).size());
  Id made = add_list(ValueKind::kObject, {callee, args}, true);
  graph_.nodes[made].number = by_new;
  graph_.nodes[made].length =
      static_cast<uint32_t>(std::min<uint64_t>(1 + graph_.hash_work(args), UINT32_MAX));
  return made;
}

void PickleReader::set_hash_work(Id id) {
  constexpr int64_t kMax = INT64_MAX / 2;
  int64_t work = 1;
  for (Id item : graph_.items(id))
    work = std::min(work + static_cast<int64_t>(graph_.hash_work(item)), kMax);
  graph_.nodes[id].number = work;
}

Id PickleReader::add_text(ValueKind kind, std::string_view text) {
  Node node;
  node.kind = kind;
  node.hashable = kind != ValueKind::kByteArray;
  node.text = text.data();
  node.length = static_cast<uint32_t>(text.size());
  return add(node);
}

Id PickleReader::add_copy(ValueKind kind, std::string text) {
  if (text.size() > copies_)
    refuse_here("the same bytes are copied over and over: no pickler writes that");
  copies_ -= text.size();
  graph_.texts.push_back(std::move(text));
  return add_text(kind, graph_.texts.back());
}

void PickleReader::push(Id id) {
  if (stack_.size() >= limits_.stack)
    refuse_here(cat("more than ", limits_.stack, " values on the stack"));
  stack_.push_back(id);
}

Id PickleReader::top() const {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back()))
    refuse_here("a value is needed and none is there");
  return stack_.back();
}

Id PickleReader::pop() {
  Id id = top();
  stack_.pop_back();
  return id;
}

size_t PickleReader::pop_mark() {
  if (marks_.empty()) refuse_here("the opcode needs a MARK and there is none");
  size_t at = marks_.back();
  marks_.pop_back();
  return at;
}

void PickleReader::remember(size_t index) {
  if (index > opcodes_) refuse_here(cat("memo ", index, " after ", opcodes_, " opcodes"));
  if (memo_.size() <= index) memo_.resize(index + 1);
  memo_[index] = top() + 1;
}

void PickleReader::recall(size_t index) {
  if (index >= memo_.size() || !memo_[index]) refuse_here(cat("nothing is in memo ", index));
  push(memo_[index] - 1);
}

void PickleReader::read_number(uint8_t op) {
  using namespace pickle;
  Node node;
  node.kind = ValueKind::kInt;
  switch (op) {
    case kNone:
      node.kind = ValueKind::kNone;
      break;
    case kTrue:
    case kFalse:
      node.kind = ValueKind::kBool;
      node.number = op == kTrue;
      break;
    case kInt4:
      node.number = get<int32_t>(take(4));
      break;
    case kInt1:
      node.number = *take(1);
      break;
    case kInt2:
      node.number = get<uint16_t>(take(2));
      break;
    case kFloat:
      node.kind = ValueKind::kFloat;
      node.real = std::bit_cast<double>(__builtin_bswap64(get<uint64_t>(take(8))));
      break;
    default: {  // LONG1
      uint8_t n = *take(1);
      const uint8_t* p = take(n);
      if (n > 8) return push(add_text(ValueKind::kBigInt, {reinterpret_cast<const char*>(p), n}));
      uint64_t v = n && p[n - 1] & 0x80 ? ~uint64_t{0} : 0;
      for (int i = n; i-- > 0;) v = (v << 8) | p[i];
      node.number = static_cast<int64_t>(v);
    }
  }
  push(add(node));
}

void PickleReader::read_text(size_t n, bool utf8) {
  const uint8_t* p = take(n);
  // Python 2's strings: text where they are ASCII, which is all that state dicts hold.
  bool fits = utf8 ? is_utf8({reinterpret_cast<const char*>(p), n}, true)
                   : std::all_of(p, p + n, [](uint8_t c) { return c < 0x80; });
  if (!fits) refuse_here(utf8 ? "a string that is not UTF-8" : "a string that is not ASCII");
  push(add_text(ValueKind::kText, {reinterpret_cast<const char*>(p), n}));
}

void PickleReader::make_tuple(size_t n) {
  if (n > stack_.size() - (marks_.empty() ? 0 : marks_.back()))
    refuse_here(cat("a tuple of ", n, " values, which are not there"));
  std::vector<Id> items(stack_.end() - static_cast<ptrdiff_t>(n), stack_.end());
  stack_.resize(stack_.size() - n);
  bool hashable = true;
  uint16_t depth = 0;
  for (Id id : items) {
    hashable &= graph_[id].hashable;
    depth = std::max(depth, graph_[id].depth);
  }
  if (depth >= limits_.depth) refuse_here(cat("tuples nested more than ", limits_.depth, " deep"));
  Id id = add_list(ValueKind::kTuple, std::move(items), hashable);
  graph_.nodes[id].depth = static_cast<uint16_t>(depth + 1);
  set_hash_work(id);
  push(id);
}

// Moves what lies above `from` into the items of `target`.
void PickleReader::grow(Id target, size_t from, Change::What what) {
  size_t n = stack_.size() - from;
  if (n == 0) return;
  charge(n);
  Node& node = graph_.nodes[target];
  if (!node.link) {
    graph_.lists.emplace_back();
    node.link = static_cast<uint32_t>(graph_.lists.size());
  }
  std::vector<Id>& items = graph_.lists[node.link - 1];
  auto begin = static_cast<uint32_t>(items.size());
  items.insert(items.end(), stack_.begin() + static_cast<ptrdiff_t>(from), stack_.end());
  stack_.resize(from);
  graph_.changes.push_back({what, target, static_cast<uint32_t>(graph_.nodes.size()), begin,
                            static_cast<uint32_t>(items.size())});
}

void PickleReader::append(bool many) {
  size_t from;
  if (many) {
    from = pop_mark();
  } else {
    top();
    from = stack_.size() - 1;
  }
  if (from <= (marks_.empty() ? 0 : marks_.back())) refuse_here("there is no list to append to");
  Id target = stack_[from - 1];
  ValueKind kind = graph_[target].kind;
  if (kind != ValueKind::kList && kind != ValueKind::kObject)
    refuse_here(cat("can only append to lists, not to ", kind_name(kind)));
  grow(target, from, Change::What::kAppend);
}

void PickleReader::check_key(Id key) {
  if (!graph_[key].hashable)
    refuse_here(cat(kind_name(graph_[key].kind), " cannot be a key or in a set"));
  uint64_t work = graph_.hash_work(key);
  if (work > hash_budget_)
    refuse_here(cat(
        "hashing the keys of this file, and the elements of its sets, takes more steps than its ",
        bytes_.size(), " bytes account for: no pickler writes that"));
  hash_budget_ -= work;
}

void PickleReader::set_items(bool many) {
  size_t from;
  if (many) {
    from = pop_mark();
  } else {
    if (stack_.size() < 2 + (marks_.empty() ? 0 : marks_.back()))
      refuse_here("a key and a value are needed");
    from = stack_.size() - 2;
  }
  if (from <= (marks_.empty() ? 0 : marks_.back())) refuse_here("there is no dict to set items of");
  Id target = stack_[from - 1];
  ValueKind kind = graph_[target].kind;
  if (!graph_.is_dict(target) && kind != ValueKind::kObject)
    refuse_here(cat("can only set items of dicts, not of ", kind_name(kind)));
  if ((stack_.size() - from) % 2) refuse_here("a key without a value");
  for (size_t i = from; i < stack_.size(); i += 2) check_key(stack_[i]);
  grow(target, from, Change::What::kSetItems);
}

void PickleReader::read_global() {
  std::string_view module = line(), name = line();
  KnownGlobal known;
  if (find_global(module, name, known) && !known.refused) {
    Node node;
    node.kind = known.kind;
    if (known.kind == ValueKind::kConstant || known.kind == ValueKind::kTensorType) {
      node.text = name.data();
      node.length = static_cast<uint32_t>(name.size());
    } else {
      node.number = known.number;
    }
    return push(add(node));
  }
  std::string full = cat(module, ".", name);
  // Never, whatever the user allows: a class of the user's needs none of these.
  bool blocked = module == "os" || module == "sys" || module == "posix" || module == "nt";
  if (blocked && !unknown_ && allowed_ && allowed_->contains(full))
    refuse_here(cat("GLOBAL ", full, ", whose module ", module, " is blocked"));
  if (unknown_ && !known.refused) unknown_->insert(full);
  if (unknown_ || (allowed_ && allowed_->contains(full))) {
    charge(full.size());
    graph_.texts.push_back(std::move(full));
    return push(add_text(ValueKind::kAllowed, graph_.texts.back()));
  }
  for (char& c : full)
    if (c < ' ' || c > '~') c = '?';
  if (known.refused) refuse_here(cat("GLOBAL ", full, ": Tessera cannot read this kind yet"));
  refuse_here(cat("Unsupported global: GLOBAL ", full,
                  " was not an allowed global by default. If you trust it, allow it with "
                  "`torch.serialization.add_safe_globals([",
                  name.substr(name.rfind('.') + 1),
                  "])`; or load with weights_only=False, which runs whatever the file says"));
}

void PickleReader::build() {
  Id state = pop(), target = top();
  ValueKind kind = graph_[target].kind;
  bool attributes = kind == ValueKind::kOrderedDict || kind == ValueKind::kParameter ||
                    kind == ValueKind::kTensor;
  if (!attributes && kind != ValueKind::kObject)
    refuse_here(cat("BUILD on ", kind_name(kind), "; only OrderedDicts and parameters have it"));
  if (attributes) check_attributes(state);
  set_state(target, state);
}

void PickleReader::check_attributes(Id state) {
  if (graph_[state].kind != ValueKind::kDict)
    refuse_here(cat("attributes in ", kind_name(graph_[state].kind), ", not in a dict"));
  const std::vector<Id>& items = graph_.items(state);
  for (size_t i = 0; i + 1 < items.size(); i += 2)
    if (!graph_.is_text(items[i]) || graph_.text(items[i]).starts_with("__"))
      refuse_here("an attribute that is not named as attributes are, or begins with __");
}

void PickleReader::set_state(Id target, Id state) {
  charge(graph_.items(state).size());  // each is set on this target too
  graph_.changes.push_back(
      {Change::What::kState, target, static_cast<uint32_t>(graph_.nodes.size()), state, state + 1});
}

}  // namespace tessera::files
