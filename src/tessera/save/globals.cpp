// The names that a file may use, and what each stands for. Everything else is refused.
#include <unordered_map>

#include "tessera/save/pickle_reader.h"

namespace tessera::files {

namespace {

struct StorageName {
  const char* title;
  DType dtype;
};
constexpr StorageName kStorages[] = {
    {"BoolStorage", DType::kBool},
    {"ByteStorage", DType::kUInt8},
    {"CharStorage", DType::kInt8},
    {"ShortStorage", DType::kInt16},
    {"IntStorage", DType::kInt32},
    {"LongStorage", DType::kInt64},
    {"HalfStorage", DType::kFloat16},
    {"BFloat16Storage", DType::kBFloat16},
    {"FloatStorage", DType::kFloat32},
    {"DoubleStorage", DType::kFloat64},
    {"ComplexFloatStorage", DType::kComplex64},
    {"ComplexDoubleStorage", DType::kComplex128},
};
// PyTorch has them, and Tessera has not.
constexpr const char* kRefusedTorch[] = {
    "uint16",          "uint32",          "uint64",         "float8_e4m3fn",   "float8_e5m2",
    "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "complex32",       "qint8",
    "quint8",          "qint32",          "quint4x2",       "quint2x4",        "bits8",
    "QInt8Storage",    "QUInt8Storage",   "QInt32Storage",  "QUInt4x2Storage", "QUInt2x4Storage",
    "sparse_coo",      "sparse_csr",      "sparse_csc",     "sparse_bsr",      "sparse_bsc"};
constexpr const char* kRefusedUtils[] = {"_rebuild_sparse_tensor",
                                         "_rebuild_sparse_csr_tensor",
                                         "_rebuild_qtensor",
                                         "_rebuild_nested_tensor",
                                         "_rebuild_wrapper_subclass",
                                         "_rebuild_device_tensor_from_numpy",
                                         "_rebuild_device_tensor_from_cpu_tensor",
                                         "_rebuild_meta_tensor"};

using Table = std::unordered_map<std::string, KnownGlobal>;

Table make_table() {
  Table t;
  auto function = [&](const char* name, Function f) {
    t[name] = {ValueKind::kFunction, static_cast<int64_t>(f)};
  };
  function("collections.OrderedDict", Function::kOrderedDict);
  function("collections.Counter", Function::kCounter);
  for (std::string module : {"builtins.", "__builtin__."}) {
    function((module + "set").c_str(), Function::kSet);
    function((module + "frozenset").c_str(), Function::kFrozenSet);
    function((module + "complex").c_str(), Function::kComplex);
    function((module + "bytearray").c_str(), Function::kByteArray);
    function((module + "bytes").c_str(), Function::kBytes);
  }
  function("_codecs.encode", Function::kEncode);
  function("torch.Size", Function::kSize);
  function("torch.device", Function::kDevice);
  function("torch.serialization._get_layout", Function::kLayout);
  function("torch._utils._rebuild_tensor", Function::kTensor);
  function("torch._utils._rebuild_tensor_v2", Function::kTensorV2);
  function("torch._utils._rebuild_tensor_v3", Function::kTensorV3);
  function("torch._utils._rebuild_meta_tensor_no_storage", Function::kMetaTensor);
  function("torch._utils._rebuild_parameter", Function::kParameter);
  function("torch._utils._rebuild_parameter_with_state", Function::kParameterWithState);
  function("torch._tensor._rebuild_from_type_v2", Function::kFromType);
  for (int i = 0; i < kNumDTypes; ++i)
    t[cat("torch.", dtype_name(static_cast<DType>(i)))] = {ValueKind::kDType, i};
  for (const StorageName& s : kStorages)
    for (const char* module : {"torch.", "torch.cuda.", "torch.storage."})
      t[cat(module, s.title)] = {ValueKind::kStorageType, static_cast<int64_t>(s.dtype)};
  t["torch.UntypedStorage"] =
      t["torch.storage.UntypedStorage"] = {ValueKind::kStorageType, kUntyped};
  for (const char* name : {"torch.Tensor", "torch.nn.parameter.Parameter"})
    t[name] = {ValueKind::kTensorType, 0};
  for (const char* name :
       {"strided", "contiguous_format", "preserve_format", "channels_last", "channels_last_3d"})
    t[cat("torch.", name)] = {ValueKind::kConstant, 0};
  for (const char* name : kRefusedTorch) t[cat("torch.", name)].refused = true;
  for (const char* name : kRefusedUtils) t[cat("torch._utils.", name)].refused = true;
  return t;
}

const Table& table() {
  static const Table& made = *new Table(make_table());
  return made;
}

}  // namespace

bool find_global(std::string_view module, std::string_view name, KnownGlobal& out) {
  auto found = table().find(cat(module, ".", name));
  // A dot inside a name would let two ways of writing lead to one entry.
  if (found == table().end() || name.find('.') != std::string_view::npos) return false;
  out = found->second;
  return true;
}

std::string function_name(Function f) {
  for (const auto& [name, known] : table())
    if (known.kind == ValueKind::kFunction && known.number == static_cast<int64_t>(f) &&
        !name.starts_with("__builtin__"))
      return name;
  return {};
}

}  // namespace tessera::files
