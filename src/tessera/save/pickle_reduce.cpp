// REDUCE, NEWOBJ and persistent ids: each known function's arguments are checked and become a value
// of the graph. Nothing is called.
#include <algorithm>

#include "tessera/base/device.h"
#include "tessera/save/pickle_reader.h"

namespace tessera::files {

class Reducer {
 public:
  Reducer(PickleReader& reader, const std::vector<Id>& args)
      : r_(reader), g_(reader.graph_), args_(args) {}

  Id run(Function f) {
    switch (f) {
      case Function::kOrderedDict:
        return ordered_dict();
      case Function::kCounter:
        return counter();
      case Function::kSet:
        return set(ValueKind::kSet, "set()");
      case Function::kFrozenSet:
        return set(ValueKind::kFrozenSet, "frozenset()");
      case Function::kComplex:
        count(2, 2, "complex()");
        need(0, ValueKind::kFloat, "complex()");
        need(1, ValueKind::kFloat, "complex()");
        return r_.add_list(ValueKind::kComplex, {args_[0], args_[1]}, true);
      case Function::kByteArray:
        return bytes(ValueKind::kByteArray, "bytearray()");
      case Function::kBytes:
        return bytes(ValueKind::kBytes, "bytes()");
      case Function::kEncode:
        return bytes(ValueKind::kBytes, "_codecs.encode()");
      case Function::kSize:
        return size();
      case Function::kDevice:
        return device();
      case Function::kLayout:
        count(1, 1, "_get_layout()");
        need(0, ValueKind::kText, "_get_layout()");
        if (g_.text(args_[0]) != "torch.strided")
          bad(cat("the layout ", g_.text(args_[0]).substr(0, 50), ", which Tessera has not"));
        return r_.add_text(ValueKind::kConstant, g_.text(args_[0]).substr(6));
      case Function::kTensor:
        return tensor("_rebuild_tensor()", 4, 4, false);
      case Function::kTensorV2:
        return tensor("_rebuild_tensor_v2()", 6, 7, false);
      case Function::kTensorV3:
        return tensor("_rebuild_tensor_v3()", 7, 8, true);
      case Function::kMetaTensor:
        return meta_tensor();
      case Function::kParameter:
        return parameter(false);
      case Function::kParameterWithState:
        return parameter(true);
      case Function::kFromType:
        return from_type();
    }
    bad("an unknown function");
  }

 private:
  [[noreturn]] void bad(std::string_view why) const { r_.refuse_here(why); }
  void count(size_t least, size_t most, std::string_view who) const {
    if (args_.size() < least || args_.size() > most)
      bad(cat(who, " with ", args_.size(), " arguments"));
  }
  void need(size_t i, ValueKind kind, std::string_view who) const {
    if (g_[args_[i]].kind != kind)
      bad(cat("argument ", i + 1, " of ", who, " is ", kind_name(g_[args_[i]].kind), ", not ",
              kind_name(kind)));
  }
  bool flag(size_t i, std::string_view who) const {
    need(i, ValueKind::kBool, who);
    return g_[args_[i]].number != 0;
  }
  void no_hooks(size_t i, std::string_view who) const {
    ValueKind kind = g_[args_[i]].kind;
    bool empty = kind == ValueKind::kNone || (g_.is_dict(args_[i]) && g_.items(args_[i]).empty());
    if (!empty) bad(cat("argument ", i + 1, " of ", who, ": hooks cannot come from a file"));
  }

  Id ordered_dict() {
    count(0, 1, "OrderedDict()");
    std::vector<Id> items;
    if (args_.size() == 1) {  // Python 2 wrote a list of pairs
      need(0, ValueKind::kList, "OrderedDict()");
      for (Id pair : g_.items(args_[0])) {
        ValueKind kind = g_[pair].kind;
        if ((kind != ValueKind::kList && kind != ValueKind::kTuple) || g_.items(pair).size() != 2)
          bad("OrderedDict() of what are not pairs");
        r_.check_key(g_.items(pair)[0]);
        items.insert(items.end(), g_.items(pair).begin(), g_.items(pair).end());
      }
    }
    return r_.add_list(ValueKind::kOrderedDict, std::move(items));
  }
  Id counter() {
    count(0, 1, "Counter()");
    std::vector<Id> items;
    if (args_.size() == 1) {
      need(0, ValueKind::kDict, "Counter()");
      items = g_.items(args_[0]);
      for (size_t i = 0; i < items.size(); i += 2) r_.check_key(items[i]);
    }
    return r_.add_list(ValueKind::kCounter, std::move(items));
  }
  Id set(ValueKind kind, std::string_view who) {
    count(0, 1, who);
    std::vector<Id> items;
    if (args_.size() == 1) {
      ValueKind from = g_[args_[0]].kind;
      if (from != ValueKind::kList && from != ValueKind::kTuple) need(0, ValueKind::kList, who);
      items = g_.items(args_[0]);
    }
    for (Id id : items) r_.check_key(id);
    Id made = r_.add_list(kind, std::move(items), kind == ValueKind::kFrozenSet);
    if (kind == ValueKind::kFrozenSet) r_.set_hash_work(made);
    return made;
  }
  // bytes in protocol 2: text, each character a byte, and "latin1".
  Id bytes(ValueKind kind, std::string_view who) {
    count(0, 2, who);
    if (args_.empty()) return r_.add_copy(kind, {});
    if (args_.size() == 1) {
      need(0, ValueKind::kBytes, who);
      return r_.add_copy(kind, std::string(g_.text(args_[0])));
    }
    need(0, ValueKind::kText, who);
    need(1, ValueKind::kText, who);
    std::string_view encoding = g_.text(args_[1]);
    if (encoding != "latin1" && encoding != "latin-1")
      bad(cat(who, " in another code than latin1"));
    std::string out;
    std::string_view text = g_.text(args_[0]);
    for (size_t i = 0; i < text.size(); ++i) {
      auto c = static_cast<unsigned char>(text[i]);
      if (c >= 0x80) {  // the reader has seen that it is UTF-8
        if (c > 0xc3) bad(cat(who, ": a character beyond latin1"));
        c = static_cast<unsigned char>((c << 6) | (text[++i] & 0x3f));
      }
      out += static_cast<char>(c);
    }
    return r_.add_copy(kind, std::move(out));
  }
  Dims dims(Id id, std::string_view what) {
    ValueKind kind = g_[id].kind;
    if (kind != ValueKind::kTuple && kind != ValueKind::kSize)
      bad(cat(what, " are ", kind_name(kind), ", not a tuple"));
    const std::vector<Id>& items = g_.items(id);
    if (items.size() > static_cast<size_t>(r_.limits_.rank))
      bad(cat(what, " of ", items.size(), " dimensions; at most ", r_.limits_.rank));
    r_.charge(items.size());
    Dims out;
    for (Id item : items) {
      if (!g_.is_int(item) || g_[item].number < 0) bad(cat(what, " that are not ints from 0 on"));
      out.push_back(g_[item].number);
    }
    return out;
  }
  Id size() {
    count(1, 1, "torch.Size()");
    ValueKind kind = g_[args_[0]].kind;
    if (kind != ValueKind::kTuple && kind != ValueKind::kList)
      need(0, ValueKind::kTuple, "torch.Size()");
    for (Id item : g_.items(args_[0]))
      if (!g_.is_int(item)) bad("torch.Size() of what are not ints");
    Id made = r_.add_list(ValueKind::kSize, g_.items(args_[0]), true);
    r_.set_hash_work(made);
    return made;
  }
  Id device() {
    count(1, 2, "torch.device()");
    need(0, ValueKind::kText, "torch.device()");
    if (args_.size() == 2) need(1, ValueKind::kInt, "torch.device()");
    std::string text(g_.text(args_[0]).substr(0, 100));
    try {
      parse_device(text);
    } catch (const Error& e) {
      bad(e.what());
    }
    return r_.add_list(ValueKind::kDevice, args_, true);
  }

  // A tensor takes hundreds of bytes of memory, and its description at least twenty of the file.
  Id add_tensor(TensorInfo info) {
    constexpr size_t kTensorCharge = 64;
    r_.charge(kTensorCharge);
    Node node;
    node.kind = ValueKind::kTensor;
    node.link = static_cast<uint32_t>(g_.tensors.size());
    g_.tensors.push_back(std::move(info));
    return r_.add(node);
  }
  void check_gradient(const TensorInfo& info) const {
    if (info.requires_grad && !is_differentiable(info.dtype))
      bad(cat("a tensor of ", info.dtype, " that requires a gradient"));
  }

  Id tensor(std::string_view who, size_t least, size_t most, bool has_dtype) {
    count(least, most, who);
    need(0, ValueKind::kStorage, who);
    TensorInfo info;
    info.storage = g_[args_[0]].link;
    const StorageInfo& storage = g_.storages[g_[args_[0]].link];
    if (has_dtype) {
      need(6, ValueKind::kDType, who);
      info.dtype = static_cast<DType>(g_[args_[6]].number);
    } else {
      if (storage.type == kUntyped) bad(cat(who, " over a storage without a dtype"));
      info.dtype = static_cast<DType>(storage.type);
    }
    need(1, ValueKind::kInt, who);
    info.offset = g_[args_[1]].number;
    info.sizes = dims(args_[2], "sizes");
    info.strides = dims(args_[3], "strides");
    if (args_.size() > 4) {
      info.requires_grad = flag(4, who);
      no_hooks(5, who);
    }
    if (args_.size() == most && most != 4) {
      Id last = args_.back();
      bool empty =
          g_[last].kind == ValueKind::kNone || (g_.is_dict(last) && g_.items(last).empty());
      if (!empty) bad(cat(who, " with metadata, which Tessera does not know"));
    }
    check_inside(info, storage);
    check_gradient(info);
    return add_tensor(std::move(info));
  }
  void check_inside(const TensorInfo& info, const StorageInfo& storage) const {
    if (info.sizes.size() != info.strides.size())
      bad(cat(info.sizes.size(), " sizes and ", info.strides.size(), " strides"));
    int64_t last = info.offset, numel = 1, bytes = 0, has = 0;
    bool overflow = info.offset < 0, empty = false;
    for (int64_t n : info.sizes) empty |= n == 0;
    for (size_t i = 0; i < info.sizes.size(); ++i) {
      int64_t step = 0;
      overflow |= __builtin_mul_overflow(numel, std::max<int64_t>(info.sizes[i], 1), &numel);
      if (empty)  // nothing is reached; the numbers have to be numbers all the same
        overflow |= info.strides[i] > (int64_t{1} << 56);
      else
        overflow |= __builtin_mul_overflow(info.sizes[i] - 1, info.strides[i], &step) ||
                    __builtin_add_overflow(last, step, &last);
    }
    auto width = static_cast<int64_t>(itemsize(info.dtype));
    int64_t width_there = storage.type == kUntyped
                              ? 1
                              : static_cast<int64_t>(itemsize(static_cast<DType>(storage.type)));
    overflow |= __builtin_add_overflow(last, 1, &last) ||
                __builtin_mul_overflow(last, width, &bytes) ||
                __builtin_mul_overflow(numel, width, &numel) ||
                __builtin_mul_overflow(storage.numel, width_there, &has);
    if (overflow || (!empty && bytes > has))
      bad(cat("a tensor of sizes ", info.sizes, ", strides ", info.strides, " and offset ",
              info.offset, " leaves its storage '", storage.key, "' of ", storage.numel,
              " elements"));
  }

  Id meta_tensor() {
    constexpr std::string_view who = "_rebuild_meta_tensor_no_storage()";
    count(4, 4, who);
    need(0, ValueKind::kDType, who);
    TensorInfo info;
    info.dtype = static_cast<DType>(g_[args_[0]].number);
    info.sizes = dims(args_[1], "sizes");
    info.strides = dims(args_[2], "strides");
    info.requires_grad = flag(3, who);
    check_gradient(info);
    StorageInfo room;
    room.key = "meta";
    room.numel = int64_t{1} << 56;
    check_inside(info, room);
    return add_tensor(std::move(info));
  }

  Id parameter(bool with_state) {
    std::string_view who = with_state ? "_rebuild_parameter_with_state()" : "_rebuild_parameter()";
    count(with_state ? 4 : 3, with_state ? 4 : 3, who);
    need(0, ValueKind::kTensor, who);
    bool requires_grad = flag(1, who);
    no_hooks(2, who);
    if (with_state) r_.check_attributes(args_[3]);
    TensorInfo info = g_.tensors[g_[args_[0]].link];
    info.requires_grad = requires_grad;
    check_gradient(info);
    Id made = r_.add_list(ValueKind::kParameter, {args_[0]}, true);
    g_.nodes[made].number = requires_grad;
    if (with_state) r_.set_state(made, args_[3]);
    return made;
  }

  // A tensor with attributes: function, class, its arguments, state. Subclasses are not data.
  Id from_type() {
    constexpr std::string_view who = "_rebuild_from_type_v2()";
    count(4, 4, who);
    need(0, ValueKind::kFunction, who);
    need(1, ValueKind::kTensorType, who);
    need(2, ValueKind::kTuple, who);
    auto f = static_cast<Function>(g_[args_[0]].number);
    bool is_parameter = f == Function::kParameter;
    if (f != Function::kTensorV2 && f != Function::kTensorV3 && !is_parameter)
      bad("_rebuild_from_type_v2() with a function that makes no tensor");
    if ((g_.text(args_[1]) == "Parameter") != is_parameter)
      bad("_rebuild_from_type_v2() of another class than its function makes");
    Id state = args_[3];
    r_.check_attributes(state);
    std::vector<Id> inner = g_.items(args_[2]);
    Id made = Reducer(r_, inner).run(f);
    r_.set_state(made, state);
    return made;
  }

  PickleReader& r_;
  Graph& g_;
  const std::vector<Id>& args_;
};

void PickleReader::reduce() {
  Id args = pop(), callee = pop();
  if (graph_[args].kind != ValueKind::kTuple)
    refuse_here(cat("REDUCE with ", kind_name(graph_[args].kind), ", not with a tuple"));
  if (graph_[callee].kind == ValueKind::kAllowed) return push(add_object(callee, args, false));
  if (graph_[callee].kind == ValueKind::kTensorType && graph_.text(callee) == "Parameter") {
    // Very old files: Parameter(data, requires_grad).
    std::vector<Id> items = graph_.items(args);
    if (items.size() == 2 && graph_[items[0]].kind == ValueKind::kTensor &&
        graph_[items[1]].kind == ValueKind::kBool) {
      Id made = add_list(ValueKind::kParameter, {items[0]}, true);
      graph_.nodes[made].number = graph_[items[1]].number;
      return push(made);
    }
  }
  if (graph_[callee].kind != ValueKind::kFunction)
    refuse_here(cat("REDUCE of ", kind_name(graph_[callee].kind), "; only the functions that put ",
                    "tensors and plain data together are known"));
  std::vector<Id> items = graph_.items(args);
  push(Reducer(*this, items).run(static_cast<Function>(graph_[callee].number)));
}

void PickleReader::new_object() {
  Id args = pop(), cls = pop();
  if (graph_[args].kind != ValueKind::kTuple)
    refuse_here(cat("NEWOBJ with ", kind_name(graph_[args].kind), ", not with a tuple"));
  const Node& node = graph_[cls];
  if (node.kind == ValueKind::kAllowed) return push(add_object(cls, args, true));
  bool ordered = node.kind == ValueKind::kFunction &&
                 static_cast<Function>(node.number) == Function::kOrderedDict;
  if (!ordered || !graph_.items(args).empty())
    refuse_here(cat("NEWOBJ of ", kind_name(node.kind), "; objects cannot come from a file"));
  push(add_list(ValueKind::kOrderedDict, {}));
}

void PickleReader::persistent_id() {
  Id id = pop();
  if (graph_[id].kind != ValueKind::kTuple) refuse_here("a persistent id that is not a tuple");
  std::vector<Id> parts = graph_.items(id);
  // The older form has a sixth part, for storages that are part of another.
  bool old_form = parts.size() == 6 && graph_[parts[5]].kind == ValueKind::kNone;
  if ((parts.size() != 5 && !old_form) || !graph_.is_text(parts[0]) ||
      graph_.text(parts[0]) != "storage")
    refuse_here("a persistent id that is not ('storage', class, key, location, size)");
  if (graph_[parts[1]].kind != ValueKind::kStorageType || !graph_.is_text(parts[2]) ||
      !graph_.is_text(parts[3]) || !graph_.is_int(parts[4]) || graph_[parts[4]].number < 0)
    refuse_here("a persistent id whose parts are not a class, two strings and a size");
  constexpr size_t kLongest = 200;
  if (graph_.text(parts[2]).size() > kLongest || graph_.text(parts[3]).size() > kLongest)
    refuse_here("a persistent id with a key or a location of more than 200 bytes");
  StorageInfo info;
  info.key = graph_.text(parts[2]);
  info.location = graph_.text(parts[3]);
  info.type = graph_[parts[1]].number;
  info.numel = graph_[parts[4]].number;
  info.byte = static_cast<uint32_t>(opcode_at_);
  auto [found, fresh] =
      storage_of_.emplace(info.key, static_cast<uint32_t>(graph_.storages.size()));
  uint32_t link = found->second;
  if (fresh) {
    graph_.storages.push_back(std::move(info));
  } else {
    const StorageInfo& first = graph_.storages[link];
    if (first.type != info.type || first.numel != info.numel || first.location != info.location)
      refuse_here(cat("storage '", info.key, "' is described in two ways"));
  }
  Node node;
  node.kind = ValueKind::kStorage;
  node.link = link;
  push(add(node));
}

}  // namespace tessera::files
