#include "tessera/save/verify.h"

#include <algorithm>

#include "tessera/save/loaded.h"
#include "tessera/save/safetensors.h"

namespace tessera::files {

namespace {

// So that a part of the disk that cannot be read is found.
void read_everything(const Source& source) {
  std::vector<uint8_t> buffer(1 << 20);
  for (uint64_t at = 0; at < source.size(); at += buffer.size())
    source.read(at, buffer.data(), std::min<uint64_t>(buffer.size(), source.size() - at));
}

void verify_archive(const std::shared_ptr<Source>& source, Verified& out) {
  out.format = "archive of torch.save";
  Archive archive(source);
  const ZipReader& zip = archive.zip();
  out.parts = zip.entries().size();
  for (const ZipEntry& entry : zip.entries()) out.checked += zip.verify(entry);
  Graph graph;
  graph.pickle = archive.pickle();
  PickleReader reader(graph.pickle, graph, source->name(), "data.pkl");
  std::set<std::string> unknown;
  reader.collect_unknown(&unknown);
  size_t at = 0;
  reader.read(at);
  if (at != graph.pickle.size()) reader.refuse_at(at, "bytes behind the pickle's STOP");
  for (const StorageInfo& s : graph.storages) archive.entry_of(s.key, s.type, s.numel);
  out.unknown.assign(unknown.begin(), unknown.end());
}

bool looks_like_safetensors(const Source& source) {
  if (source.size() < 10) return source.name().ends_with(".safetensors");
  uint8_t first[9];
  source.read(0, first, sizeof first);
  return first[8] == '{' || source.name().ends_with(".safetensors");
}

}  // namespace

Verified verify_file(const std::shared_ptr<Source>& source) {
  Verified out;
  out.bytes = source->size();
  if (source->size() == 0)
    throw Refused(Refused::What::kEmpty, cat(source->name(), ": the file is empty"));
  if (ZipReader::looks_like_zip(*source)) {
    verify_archive(source, out);
  } else if (looks_like_legacy(*source)) {
    out.format = "file of PyTorch before 1.6";
    LoadOptions options;
    options.place = [](const TensorBase& bytes, const std::string&) { return bytes; };
    out.parts = load_legacy(*source, options)->storages.size();
  } else if (looks_like_safetensors(*source)) {
    out.format = "safetensors file";
    out.parts = read_safetensors_header(*source).entries.size();
    read_everything(*source);
  } else {
    refuse_unknown(*source);
  }
  return out;
}

}  // namespace tessera::files
