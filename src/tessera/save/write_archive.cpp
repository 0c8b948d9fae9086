#include "tessera/save/write_archive.h"

#include <algorithm>

#include "tessera/fuse/stream.h"
#include "tessera/gen/copy.h"
#include "tessera/save/zip.h"

namespace tessera::files {

namespace {

uint64_t whole_elements(const TensorBase& t) {
  size_t width = itemsize(t.dtype());
  return t.storage().nbytes / width * width;
}

}  // namespace

TensorBase host_bytes(const TensorBase& t) {
  auto n = static_cast<int64_t>(t.storage().nbytes);
  TensorBase bytes(
      Ref<TensorImpl>::make(Ref<Storage>(t.impl()->storage), DType::kUInt8, Dims{n}, Dims{1}, 0));
  if (!t.device().is_cpu()) bytes = op::_to_device(bytes, Device{});
  fuse::ensure_readable(bytes, fuse::Reason::kHostRead);
  return bytes;
}

std::string folder_for(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  name = name.substr(0, name.rfind('.'));
  bool plain = !name.empty() && name.size() < 200 && name.find_first_not_of('.') != name.npos;
  for (char c : name)
    plain &= (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
             c == '.' || c == '_' || c == '-';
  return plain ? name : "archive";
}

uint64_t archive_bytes(const std::string& folder, std::string_view pickle,
                       std::span<const TensorBase> storages) {
  std::vector<uint64_t> sizes{pickle.size(), 6, 2};
  for (const TensorBase& t : storages) sizes.push_back(whole_elements(t));
  return ZipWriter::most_bytes(sizes, sizes.size() * (folder.size() + 1 + sizeof "data/12345678"));
}

void write_archive(Sink& sink, const std::string& folder, std::string_view pickle,
                   std::span<const TensorBase> storages) {
  ZipWriter zip(sink, folder);
  zip.add("data.pkl", pickle);
  zip.add("byteorder", "little");
  for (size_t i = 0; i < storages.size(); ++i) {
    TensorBase bytes = host_bytes(storages[i]);
    zip.add(cat("data/", i), bytes.raw(), whole_elements(storages[i]));
  }
  zip.add("version", "3\n");
  zip.finish();
}

void write_archive(const std::string& path, std::string_view pickle,
                   std::span<const TensorBase> storages) {
  std::string folder = folder_for(path);
  AtomicFile file(path, archive_bytes(folder, pickle, storages));
  write_archive(file, folder, pickle, storages);
  file.commit();
}

}  // namespace tessera::files
