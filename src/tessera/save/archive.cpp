#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "tessera/autograd/node.h"
#include "tessera/driver/current.h"
#include "tessera/gen/copy.h"
#include "tessera/save/loaded.h"

namespace tessera::files {

namespace {

constexpr uint64_t kMostPickle = 256 << 20;
constexpr uint64_t kWorthThreads = 32 << 20;

size_t width_of(int64_t type) { return type == kUntyped ? 1 : itemsize(static_cast<DType>(type)); }

void release_source(void* owner) { delete static_cast<std::shared_ptr<Source>*>(owner); }

}  // namespace

Archive::Archive(std::shared_ptr<Source> source, bool mmap, bool big_endian)
    : source_(std::move(source)), zip_(source_), mmap_(mmap), swap_(big_endian) {
  if (zip_.find("constants.pkl"))
    throw Refused(Refused::What::kFormat,
                  cat(name(), ": a TorchScript archive holds a program, which torch.load does not ",
                      "read; save the module's state_dict() with torch.save"));
  if (const ZipEntry* order = zip_.find("byteorder")) {
    if (order->size > 6)
      refuse(Refused::What::kFormat, name(), "byteorder", 0, "neither 'little' nor 'big'");
    std::vector<uint8_t> word = zip_.read(*order);
    std::string text(word.begin(), word.end());
    if (text != "little" && text != "big")
      refuse(Refused::What::kFormat, name(), "byteorder", 0, "neither 'little' nor 'big'");
    swap_ = text == "big";
  }
}

std::vector<uint8_t> Archive::pickle() const {
  const ZipEntry* entry = zip_.find("data.pkl");
  if (!entry)
    throw Refused(Refused::What::kFormat,
                  cat(name(), ": the zip archive has no data.pkl in its folder '", zip_.folder(),
                      "': torch.save did not write it"));
  if (entry->size > kMostPickle)
    refuse(Refused::What::kFormat, name(), "data.pkl", 0,
           cat(entry->size, " bytes; at most ", kMostPickle, " are read"));
  return zip_.read(*entry);
}

const ZipEntry& Archive::entry_of(const std::string& key, int64_t type, int64_t numel) const {
  const ZipEntry* entry = zip_.find("data/" + key);
  if (!entry)
    throw Refused(Refused::What::kFormat,
                  cat(name(), ": the entry data/", key, ", which a tensor lies in, is missing"));
  size_t width = width_of(type);
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<uint64_t>(numel), uint64_t{width}, &bytes) ||
      bytes != entry->size)
    refuse(Refused::What::kFormat, name(), cat("data/", key), 0,
           cat("the entry has ", entry->size, " bytes, and data.pkl says ", numel, " elements of ",
               width));
  return *entry;
}

TensorBase Archive::memory_for(const std::string& key, int64_t type, int64_t numel,
                               bool& read) const {
  const ZipEntry& entry = entry_of(key, type, numel);
  auto n = static_cast<int64_t>(entry.size);
  if (mmap_ && !swap_ && n && entry.offset % width_of(type) == 0) {
    auto owner = std::make_unique<std::shared_ptr<Source>>(source_);
    TensorBase t = from_blob(source_->map() + entry.offset, {n}, {1}, DType::kUInt8, Device{},
                             owner.get(), release_source);
    (void)owner.release();
    return t;
  }
  read = true;
  return new_empty({n}, DType::kUInt8, Device{});
}

void Archive::fill(const TensorBase& bytes, const std::string& key, int64_t type) const {
  zip_.read(*zip_.find("data/" + key), bytes.raw());
  if (swap_) swap_bytes(bytes, type);
}

TensorBase Archive::storage(const std::string& key, int64_t type, int64_t numel) const {
  bool to_read = false;
  TensorBase out = memory_for(key, type, numel, to_read);
  if (to_read) fill(out, key, type);
  return out;
}

std::vector<TensorBase> Archive::storages(const std::vector<StorageInfo>& all) const {
  std::vector<TensorBase> out;
  std::vector<size_t> to_read;
  uint64_t total = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    bool read = false;
    out.push_back(memory_for(all[i].key, all[i].type, all[i].numel, read));
    if (read) to_read.push_back(i);
    if (read) total += out.back().storage().nbytes;
  }
  // One core cannot copy and sum as fast as a disk's cache, or a fast disk, gives.
  size_t most =
      total < kWorthThreads ? 1 : std::min<size_t>(std::thread::hardware_concurrency(), 8);
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr problem;
  auto work = [&] {
    try {
      for (size_t k; (k = next.fetch_add(1)) < to_read.size();)
        fill(out[to_read[k]], all[to_read[k]].key, all[to_read[k]].type);
    } catch (...) {
      std::lock_guard lock(mutex);
      if (!problem) problem = std::current_exception();
      next = to_read.size();
    }
  };
  std::vector<std::thread> others;
  try {
    for (size_t i = 1; i < std::min(most, to_read.size()); ++i) others.emplace_back(work);
  } catch (...) {  // as many threads as can be had
  }
  work();
  for (std::thread& t : others) t.join();
  if (problem) std::rethrow_exception(problem);
  return out;
}

void swap_bytes(const TensorBase& bytes, int64_t type) {
  size_t width = width_of(type);
  if (type != kUntyped && is_complex(static_cast<DType>(type))) width /= 2;
  char* at = bytes.raw();
  for (int64_t i = 0; width > 1 && i < bytes.numel(); i += static_cast<int64_t>(width))
    std::reverse(at + i, at + i + width);
}

TensorBase place_as_saved(const TensorBase& bytes, const std::string& location) {
  if (location == "cpu") return bytes;
  if (!location.starts_with("cuda"))
    throw Error(ErrorKind::kRuntime,
                cat("don't know how to restore data location of torch.storage.UntypedStorage ",
                    "(tagged with ", location, "); load it with map_location='cpu'"));
  Device device = parse_device(location);
  TS_CHECK(accelerator(),
           "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is "
           "False. If you are running on a CPU-only machine, please use torch.load with "
           "map_location=torch.device('cpu') to map your storages to the CPU.");
  return op::_to_device(bytes, resolve_device(device));
}

void make_tensors(Loaded& out, const LoadOptions& options) {
  const Graph& g = out.graph;
  for (size_t i = 0; i < g.storages.size(); ++i) {
    TensorBase placed;
    if (options.place) placed = options.place(out.storages[i], g.storages[i].location);
    if (!placed.defined()) placed = place_as_saved(out.storages[i], g.storages[i].location);
    TS_CHECK(placed.storage().nbytes >= out.storages[i].storage().nbytes,
             "map_location gave a storage of ", placed.storage().nbytes, " bytes for one of ",
             out.storages[i].storage().nbytes);
    out.storages[i] = placed;
  }
  for (const TensorInfo& t : g.tensors) {
    TensorBase made;
    if (t.storage < 0) {
      made = new_empty_strided(t.sizes, t.strides, t.dtype, Device{DeviceType::kMeta, 0});
    } else {
      const TensorBase& bytes = out.storages[static_cast<size_t>(t.storage)];
      made = TensorBase(Ref<TensorImpl>::make(Ref<Storage>(bytes.impl()->storage), t.dtype, t.sizes,
                                              t.strides, t.offset));
    }
    if (t.requires_grad) autograd::set_requires_grad(made, true);
    out.tensors.push_back(std::move(made));
  }
}

std::shared_ptr<Loaded> load_values(std::shared_ptr<Source> source, const LoadOptions& options) {
  if (source->size() == 0)
    throw Refused(Refused::What::kEmpty, cat(source->name(), ": the file is empty"));
  if (!ZipReader::looks_like_zip(*source)) {
    if (!looks_like_legacy(*source)) refuse_unknown(*source);
    TS_CHECK(!options.mmap, source->name(),
             ": mmap can only be used with files saved with torch.save(_use_new_zipfile_"
             "serialization=True)");
    return load_legacy(*source, options);
  }
  Archive archive(source, options.mmap, options.big_endian);
  auto out = std::make_shared<Loaded>();
  Graph& g = out->graph;
  g.pickle = archive.pickle();
  PickleReader reader(g.pickle, g, source->name(), "data.pkl", options.allowed);
  size_t at = 0;
  g.root = reader.read(at);
  if (at != g.pickle.size()) reader.refuse_at(at, "bytes behind the pickle's STOP");
  out->storages = archive.storages(g.storages);
  make_tensors(*out, options);
  return out;
}

std::vector<std::string> unknown_globals(std::shared_ptr<Source> source,
                                         const AllowedNames& allowed) {
  Archive archive(source);
  Graph graph;
  graph.pickle = archive.pickle();
  PickleReader reader(graph.pickle, graph, source->name(), "data.pkl");
  std::set<std::string> found;
  reader.collect_unknown(&found);
  size_t at = 0;
  reader.read(at);
  std::vector<std::string> out;
  for (const std::string& name : found)
    if (!allowed.contains(name)) out.push_back(name);
  return out;
}

}  // namespace tessera::files
