// Files of PyTorch before 1.6: pickles one after another (a magic number, the version, the machine,
// the object, the storages' keys), then the storages.
#include <cstring>
#include <map>

#include "tessera/save/little_endian.h"
#include "tessera/save/loaded.h"

namespace tessera::files {

namespace {

// PROTO 2, LONG1 of ten bytes: how the magic number is pickled.
constexpr uint8_t kMagic[] = {0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46,
                              0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, 0x2e};
constexpr int64_t kVersion = 1001;
constexpr const char* kEntry = "legacy stream";

bool says_big_endian(const Graph& g, Id machine) {
  if (!g.is_dict(machine)) return false;
  const std::vector<Id>& items = g.items(machine);
  for (size_t i = 0; i + 1 < items.size(); i += 2)
    if (g.is_text(items[i]) && g.text(items[i]) == "little_endian")
      return g[items[i + 1]].kind == ValueKind::kBool && g[items[i + 1]].number == 0;
  return false;
}

}  // namespace

bool looks_like_legacy(const Source& source) {
  if (source.size() < sizeof kMagic) return false;
  uint8_t first[sizeof kMagic];
  source.read(0, first, sizeof first);
  return std::memcmp(first, kMagic, sizeof kMagic) == 0;
}

void refuse_unknown(const Source& source) {
  std::string_view what =
      "Invalid magic number; corrupt file? It is neither a zip archive nor PyTorch's older form";
  if (source.size() > 262) {
    uint8_t word[5];
    source.read(257, word, 5);
    if (std::memcmp(word, "ustar", 5) == 0)
      what =
          "a tar archive of PyTorch before 0.1.12, which can hide programs: not read. Load it "
          "with an old PyTorch and save it again";
  }
  uint8_t first[9] = {};
  source.read(0, first, std::min<uint64_t>(source.size(), sizeof first));
  if (get<uint64_t>(first) <= 100'000'000 && first[8] == '{')
    what =
        "this looks like a safetensors file: load it with "
        "tessera.utils.safetensors.load_file()";
  refuse(Refused::What::kPickle, source.name(), {}, 0, what);
}

std::shared_ptr<Loaded> load_legacy(const Source& source, const LoadOptions& options) {
  auto out = std::make_shared<Loaded>();
  Graph& g = out->graph;
  g.pickle = source.read(0, static_cast<size_t>(source.size()));
  PickleReader reader(g.pickle, g, source.name(), kEntry, options.allowed);
  size_t at = 0;
  reader.read(at);  // the magic number, which was seen
  size_t version_at = at;
  Id version = reader.read(at);
  if (!g.is_int(version) || g[version].number != kVersion)
    reader.refuse_at(version_at, "Invalid protocol version: not 1001");
  bool swap = says_big_endian(g, reader.read(at));
  g.root = reader.read(at);
  size_t keys_at = at;
  Id keys = reader.read(at);
  if (g[keys].kind != ValueKind::kList) reader.refuse_at(keys_at, "no list of the storages' keys");

  std::map<std::string, size_t, std::less<>> index;
  for (size_t i = 0; i < g.storages.size(); ++i) index[g.storages[i].key] = i;
  out->storages.resize(g.storages.size());
  for (Id key : g.items(keys)) {
    auto found = g.is_text(key) ? index.find(g.text(key)) : index.end();
    if (found == index.end()) reader.refuse_at(keys_at, "a storage's key that no tensor names");
    const StorageInfo& info = g.storages[found->second];
    size_t left = g.pickle.size() - at;
    int64_t numel = left < 8 ? -1 : get<int64_t>(&g.pickle[at]);
    if (swap) numel = static_cast<int64_t>(__builtin_bswap64(static_cast<uint64_t>(numel)));
    uint64_t width = info.type == kUntyped ? 1 : itemsize(static_cast<DType>(info.type)), bytes;
    if (numel != info.numel || out->storages[found->second].defined())
      reader.refuse_at(at, cat("storage '", info.key, "' is not here with its ", info.numel,
                               " elements; the file was cut or changed"));
    at += 8;
    if (__builtin_mul_overflow(static_cast<uint64_t>(numel), width, &bytes) ||
        bytes > g.pickle.size() - at)
      reader.refuse_at(at, cat("storage '", info.key, "' of ", numel,
                               " elements goes beyond the end of the file"));
    TensorBase memory = new_empty({static_cast<int64_t>(bytes)}, DType::kUInt8, Device{});
    if (bytes) std::memcpy(memory.raw(), &g.pickle[at], bytes);
    if (swap) swap_bytes(memory, info.type);
    out->storages[found->second] = memory;
    at += bytes;
  }
  for (size_t i = 0; i < g.storages.size(); ++i)
    if (!out->storages[i].defined())
      reader.refuse_at(at, cat("storage '", g.storages[i].key, "' is missing"));
  if (at != g.pickle.size()) reader.refuse_at(at, "bytes behind the last storage");
  make_tensors(*out, options);
  return out;
}

}  // namespace tessera::files
