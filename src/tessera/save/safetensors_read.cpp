#include <algorithm>
#include <numeric>

#include "tessera/save/errors.h"
#include "tessera/save/json_cursor.h"
#include "tessera/save/little_endian.h"
#include "tessera/save/safetensors.h"
#include "tessera/save/safetensors_names.h"

namespace tessera::files {

namespace {

constexpr uint64_t kMostHeader = 100'000'000;

[[noreturn]] void bad_file(const Source& source, uint64_t byte, std::string_view why) {
  refuse(Refused::What::kFormat, source.name(), "safetensors", byte, why);
}

void read_metadata(JsonCursor& json, Metadata& out) {
  json.expect('{');
  if (json.take('}')) return;
  do {
    uint64_t at = json.at();
    std::string key = json.string();
    json.expect(':');
    if (!out.emplace(key, json.string()).second)
      json.refuse_at(at, cat("'", key, "' stands twice in the metadata"));
  } while (json.take(','));
  json.expect('}');
}

SafeEntry read_entry(JsonCursor& json, std::string name) {
  SafeEntry out;
  out.name = std::move(name);
  bool has[3] = {};
  auto once = [&](int which, uint64_t at, std::string_view key) {
    if (has[which]) json.refuse_at(at, cat("'", key, "' stands twice for '", out.name, "'"));
    has[which] = true;
  };
  uint64_t begin = json.at();
  json.expect('{');
  do {
    uint64_t at = json.at();
    std::string key = json.string();
    json.expect(':');
    if (key == "dtype") {
      once(0, at, key);
      std::string word = json.string();
      out.dtype = find_safetensors_name(word);
      if (!out.dtype)
        json.refuse_at(at, cat("'", out.name, "' has the unknown dtype '", word, "'"));
    } else if (key == "shape") {
      once(1, at, key);
      json.expect('[');
      if (!json.take(']')) {
        do {
          uint64_t n = json.count();
          if (n > static_cast<uint64_t>(INT64_MAX) || out.shape.size() >= 64)
            json.refuse_at(at, cat("the shape of '", out.name, "' is too large"));
          out.shape.push_back(static_cast<int64_t>(n));
        } while (json.take(','));
        json.expect(']');
      }
    } else if (key == "data_offsets") {
      once(2, at, key);
      json.expect('[');
      out.begin = json.count();
      json.expect(',');
      out.end = json.count();
      json.expect(']');
    } else {
      json.skip_value();
    }
  } while (json.take(','));
  json.expect('}');
  if (!has[0] || !has[1] || !has[2])
    json.refuse_at(begin, cat("'", out.name, "' needs dtype, shape and data_offsets"));
  return out;
}

// Its bytes are as many as its shape asks for.
void check_size(const SafeEntry& e, const Source& source) {
  auto bits = static_cast<uint64_t>(e.dtype->bits);
  uint64_t numel = 1, total;
  bool overflow = false, empty = false;
  for (int64_t n : e.shape) {
    empty |= n == 0;
    overflow |=
        __builtin_mul_overflow(numel, static_cast<uint64_t>(std::max<int64_t>(n, 1)), &numel);
  }
  overflow |= __builtin_mul_overflow(numel, bits, &total) || numel > INT64_MAX / 16;
  if (overflow) bad_file(source, 8, cat("the shape ", e.shape, " of '", e.name, "' is too large"));
  if (empty) total = 0;
  if (total % 8 || e.end - e.begin != total / 8)
    bad_file(source, e.begin,
             cat("'", e.name, "' of shape ", e.shape, " and dtype ", e.dtype->name, " has ",
                 e.end - e.begin, " bytes, not ", total / 8));
}

// By sorting: hashes of text can be made to collide.
void refuse_equal_names(const JsonCursor& json, const std::vector<SafeEntry>& entries,
                        const std::vector<uint64_t>& places) {
  std::vector<size_t> order(entries.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    int c = entries[a].name.compare(entries[b].name);
    return c != 0 ? c < 0 : a < b;
  });
  for (size_t i = 1; i < order.size(); ++i)
    if (entries[order[i]].name == entries[order[i - 1]].name)
      json.refuse_at(places[order[i]], cat("'", entries[order[i]].name, "' stands twice"));
}

}  // namespace

SafeHeader read_safetensors_header(const Source& source) {
  if (source.size() < 8) bad_file(source, 0, "shorter than the header's length; the file was cut");
  uint64_t length = get<uint64_t>(source.read(0, 8).data());
  if (length > kMostHeader)
    bad_file(source, 0,
             cat("a header of ", length, " bytes; at most ", kMostHeader,
                 ". This is no safetensors file"));
  if (length > source.size() - 8)
    bad_file(
        source, 0,
        cat("a header of ", length, " bytes in a file of ", source.size(), "; the file was cut"));
  std::vector<uint8_t> bytes = source.read(8, static_cast<size_t>(length));
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with('{')) bad_file(source, 8, "the header does not begin with '{'");
  if (!is_utf8(text)) bad_file(source, 8, "the header is not UTF-8");

  SafeHeader out;
  JsonCursor json(text, source.name(), 8);
  std::vector<uint64_t> places;  // of the names in the header
  bool has_metadata = false;
  json.expect('{');
  if (!json.take('}')) {
    do {
      uint64_t at = json.at();
      std::string name = json.string();
      json.expect(':');
      if (name == "__metadata__") {
        if (has_metadata) json.refuse_at(at, cat("'", name, "' stands twice"));
        has_metadata = true;
        read_metadata(json, out.metadata);
        continue;
      }
      out.entries.push_back(read_entry(json, std::move(name)));
      places.push_back(at);
    } while (json.take(','));
    json.expect('}');
  }
  json.expect_end();
  refuse_equal_names(json, out.entries, places);

  uint64_t data = 8 + length, room = source.size() - data;
  for (SafeEntry& e : out.entries) {
    if (e.begin > e.end || e.end > room)
      bad_file(source, 8,
               cat("'", e.name, "' lies at ", e.begin, " to ", e.end, " of ", room,
                   " bytes; the file was cut or changed"));
    e.begin += data;
    e.end += data;
    check_size(e, source);
  }
  auto before = [](const SafeEntry& a, const SafeEntry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  };
  if (!std::is_sorted(out.entries.begin(), out.entries.end(), before))
    std::stable_sort(out.entries.begin(), out.entries.end(), before);
  uint64_t at = data;
  for (const SafeEntry& e : out.entries) {
    if (e.begin != at)
      bad_file(source, std::min(at, e.begin),
               cat("'", e.name,
                   e.begin < at ? "' overlaps the tensor before it"
                                : "' leaves a gap behind the tensor before it"));
    at = e.end;
  }
  if (at != source.size())
    bad_file(source, at, cat(source.size() - at, " bytes that belong to no tensor"));
  return out;
}

TensorBase read_safetensor(const std::shared_ptr<Source>& source, const SafeEntry& e, bool mmap) {
  TS_CHECK_IMPLEMENTED(e.dtype->ours, source->name(), ": '", e.name, "' is of dtype ",
                       e.dtype->name, ", which Tessera does not have yet");
  const DType dtype = e.dtype->dtype;
  auto n = static_cast<size_t>(e.end - e.begin);
  if (mmap && n && e.begin % itemsize(dtype) == 0) {
    auto owner = std::make_unique<std::shared_ptr<Source>>(source);
    TensorBase t =
        from_blob(source->map() + e.begin, e.shape, contiguous_strides(e.shape), dtype, Device{},
                  owner.get(), [](void* p) { delete static_cast<std::shared_ptr<Source>*>(p); });
    (void)owner.release();
    return t;
  }
  TensorBase out = new_empty(e.shape, dtype, Device{});
  source->read(e.begin, out.raw(), n);
  return out;
}

}  // namespace tessera::files

namespace tessera {

SafeTensors load_safetensors(const std::string& path, std::optional<Device> device, bool mmap) {
  auto source = files::Source::open(path);
  files::SafeHeader header = files::read_safetensors_header(*source);
  SafeTensors out;
  out.metadata = std::move(header.metadata);
  for (const files::SafeEntry& e : header.entries) {
    Tensor t(files::read_safetensor(source, e, mmap));
    out.tensors.emplace_back(e.name, device ? t.to(*device) : t);
  }
  return out;
}

}  // namespace tessera
