#include <algorithm>
#include <unordered_set>

#include "tessera/save/json_cursor.h"
#include "tessera/save/little_endian.h"
#include "tessera/save/safetensors.h"
#include "tessera/save/safetensors_names.h"
#include "tessera/save/write_archive.h"

namespace tessera::files {

namespace {

using Entry = const std::pair<std::string, Tensor>*;

// Wide numbers first, so that each tensor begins at a multiple of its width.
std::vector<Entry> ordered(const StateDict& tensors) {
  std::vector<Entry> out;
  std::unordered_set<std::string_view> names;
  for (const auto& entry : tensors) {
    const auto& [name, t] = entry;
    TS_CHECK_VALUE(t.defined(), "'", name, "' is an undefined tensor");
    TS_CHECK_VALUE(name != "__metadata__", "no tensor can be named '__metadata__'");
    TS_CHECK_VALUE(is_utf8(name), "a tensor's name has to be UTF-8");
    TS_CHECK_VALUE(names.insert(name).second, "two tensors are named '", name, "'");
    TS_CHECK_IMPLEMENTED(safetensors_name(t.dtype()), "'", name, "' is of ", t.dtype(),
                         ", which safetensors files cannot hold; torch.save can");
    out.push_back(&entry);
  }
  std::stable_sort(out.begin(), out.end(), [](Entry a, Entry b) {
    size_t wa = itemsize(a->second.dtype()), wb = itemsize(b->second.dtype());
    return wa != wb ? wa > wb : a->first < b->first;
  });
  return out;
}

// The file would hold such tensors twice, and loading would part them.
void refuse_shared(const std::vector<Entry>& entries) {
  struct Range {
    const Storage* storage;
    int64_t begin, end;
    Entry entry;
  };
  std::vector<Range> ranges;
  for (Entry e : entries) {
    const Tensor& t = e->second;
    if (t.numel() == 0) continue;
    auto width = static_cast<int64_t>(itemsize(t.dtype()));
    ranges.push_back({&t.storage(), t.storage_offset() * width,
                      bytes_reached(t.sizes(), t.strides(), t.storage_offset(), t.dtype()), e});
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return a.storage != b.storage ? std::less<>()(a.storage, b.storage) : a.begin < b.begin;
  });
  for (size_t i = 1, last = 0; i < ranges.size(); ++i) {
    const Range &a = ranges[last], &b = ranges[i];
    TS_CHECK(a.storage != b.storage || b.begin >= a.end, "Some tensors share memory: '",
             a.entry->first, "' and '", b.entry->first,
             "'. A safetensors file cannot say so: save one of them, or clone() the other; "
             "torch.save keeps what is shared");
    if (a.storage != b.storage || b.end > a.end) last = i;
  }
}

std::string header_of(const std::vector<Entry>& entries, const Metadata& metadata) {
  std::string out = "{";
  auto comma = [&] {
    if (out.size() > 1) out += ',';
  };
  if (!metadata.empty()) {
    out += "\"__metadata__\":{";
    bool first = true;
    for (const auto& [key, value] : metadata) {
      TS_CHECK_VALUE(is_utf8(key) && is_utf8(value), "metadata has to be UTF-8");
      out += cat(first ? "" : ",", json_quoted(key), ":", json_quoted(value));
      first = false;
    }
    out += '}';
  }
  uint64_t at = 0;
  for (Entry e : entries) {
    const Tensor& t = e->second;
    comma();
    out += cat(json_quoted(e->first), ":{\"dtype\":\"", safetensors_name(t.dtype())->name,
               "\",\"shape\":[");
    for (int d = 0; d < t.dim(); ++d) out += cat(d ? "," : "", t.sizes()[static_cast<size_t>(d)]);
    out += cat("],\"data_offsets\":[", at, ",", at + t.nbytes(), "]}");
    at += t.nbytes();
  }
  out += '}';
  out.append((8 - out.size() % 8) % 8, ' ');
  TS_CHECK_VALUE(out.size() <= 100'000'000, "a header of ", out.size(),
                 " bytes; readers take 100000000");
  return out;
}

}  // namespace

uint64_t safetensors_bytes(const StateDict& tensors, const Metadata& metadata) {
  uint64_t total = 8 + header_of(ordered(tensors), metadata).size();
  for (const auto& [name, t] : tensors) total += t.nbytes();
  return total;
}

void write_safetensors(Sink& sink, const StateDict& tensors, const Metadata& metadata) {
  std::vector<Entry> entries = ordered(tensors);
  refuse_shared(entries);
  std::string header = header_of(entries, metadata), length;
  put<uint64_t>(length, header.size());
  sink.write(length.data(), length.size());
  sink.write(header.data(), header.size());
  for (Entry e : entries) {
    Tensor packed = e->second.detach().contiguous();
    TensorBase bytes = host_bytes(packed);
    size_t offset = static_cast<size_t>(packed.storage_offset()) * itemsize(packed.dtype());
    if (packed.numel()) sink.write(bytes.raw() + offset, packed.nbytes());
  }
}

}  // namespace tessera::files

namespace tessera {

void save_safetensors(const StateDict& tensors, const std::string& path, const Metadata& metadata) {
  files::AtomicFile file(path, files::safetensors_bytes(tensors, metadata));
  files::write_safetensors(file, tensors, metadata);
  file.commit();
}

}  // namespace tessera
