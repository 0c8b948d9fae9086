// A device's memory as JSON: {"segments": [...], "trace": [...], "stacks": [[frame...]...],
// "frames":
// [[file, line, name]...]}. Segments and trace have PyTorch's fields, except that a stack is given
// by its number (0 for none): a million entries share a few hundred stacks.
#include <charconv>
#include <unordered_map>

#include "tessera/memory/device_allocator.h"

namespace tessera::memory {

namespace {

class Json {
 public:
  Json& raw(const char* text) {
    out_ += text;
    return *this;
  }
  Json& number(int64_t n) {
    char text[24];
    out_.append(text, std::to_chars(text, text + sizeof text, n).ptr);
    return *this;
  }
  Json& number(uint64_t n) {
    char text[24];
    out_.append(text, std::to_chars(text, text + sizeof text, n).ptr);
    return *this;
  }
  Json& string(const std::string& s) {
    out_ += '"';
    for (char c : s) {
      if (c == '"' || c == '\\') {
        out_ += '\\';
        out_ += c;
      } else if (static_cast<unsigned char>(c) < 0x20) {
        constexpr char digits[] = "0123456789abcdef";
        out_ += "\\u00";
        out_ += digits[c >> 4];
        out_ += digits[c & 15];
      } else {
        out_ += c;
      }
    }
    out_ += '"';
    return *this;
  }
  Json& comma(bool first) { return first ? *this : raw(","); }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

uint64_t address_of(const void* p) { return reinterpret_cast<uintptr_t>(p); }

}  // namespace

std::string DeviceAllocator::snapshot() {
  std::lock_guard lock(mutex_);
  Json j;
  j.raw("{\"segments\":[");
  // A segment is what lies without a gap: of an arena, each mapped run.
  std::vector<std::vector<const Block*>> segments;
  const Block* before = nullptr;
  for_each_block([&](const Block* b) {
    if (b->mapped) {
      const bool goes_on = before && before->next == b && before->mapped;
      if (!goes_on) segments.emplace_back();
      segments.back().push_back(b);
    }
    before = b;
  });
  bool first_segment = true;
  for (const auto& blocks : segments) {
    const Block* head = blocks.front();
    uint64_t total = 0, allocated = 0, active = 0, requested = 0;
    for (const Block* b : blocks) {
      total += b->size;
      if (b->in_use) allocated += b->size;
      if (b->in_use || b->waiting) active += b->size;
      if (b->in_use || b->waiting) requested += b->requested;
    }
    j.comma(first_segment).raw("{\"device\":").number(int64_t{device_});
    first_segment = false;
    j.raw(",\"address\":").number(address_of(head->ptr));
    j.raw(",\"total_size\":").number(total).raw(",\"allocated_size\":").number(allocated);
    j.raw(",\"active_size\":").number(active).raw(",\"requested_size\":").number(requested);
    j.raw(",\"stream\":").number(address_of(head->pool->stream));
    j.raw(",\"segment_type\":").raw(head->small ? "\"small\"" : "\"large\"");
    const PrivatePool* graphs = head->pool->graphs;
    j.raw(",\"segment_pool_id\":[").number(graphs ? graphs->id.first : 0).raw(",");
    j.number(graphs ? graphs->id.second : 0)
        .raw("],\"is_expandable\":")
        .raw(head->arena ? "true" : "false");
    j.raw(",\"frames\":0,\"blocks\":[");
    bool first_block = true;
    for (const Block* b : blocks) {
      j.comma(first_block).raw("{\"address\":").number(address_of(b->ptr));
      first_block = false;
      j.raw(",\"size\":").number(uint64_t{b->size});
      const bool live = b->in_use || b->waiting;
      j.raw(",\"requested_size\":").number(uint64_t{live ? b->requested : 0});
      j.raw(",\"state\":")
          .raw(b->in_use    ? "\"active_allocated\""
               : b->waiting ? "\"active_pending_free\""
                            : "\"inactive\"");
      j.raw(",\"frames\":").number(int64_t{live ? b->stack : 0}).raw("}");
    }
    j.raw("]}");
  }
  j.raw("],\"trace\":[");
  bool first_entry = true;
  for (const TraceEntry& t : history_.entries()) {
    j.comma(first_entry).raw("{\"action\":\"").raw(action_name(t.action));
    first_entry = false;
    j.raw(t.action == Action::kOom ? "\",\"device_free\":" : "\",\"addr\":").number(t.address);
    j.raw(",\"size\":").number(t.size).raw(",\"stream\":").number(address_of(t.stream));
    j.raw(",\"time_us\":").number(t.time_us);
    j.raw(",\"frames\":").number(int64_t{t.stack}).raw("}");
  }
  j.raw("],\"stacks\":[[]");
  std::unordered_map<std::string, int64_t> numbers;
  std::vector<std::pair<std::string, std::string>> frames;  // place and name
  for (const auto& stack : history_.stacks()) {
    j.raw(",[");
    bool first_frame = true;
    for (const SourceRef& r : stack) {
      std::string place = r.text();
      auto [it, fresh] = numbers.try_emplace(place, static_cast<int64_t>(frames.size()));
      if (fresh) frames.emplace_back(place, r.name());
      j.comma(first_frame).number(it->second);
      first_frame = false;
    }
    j.raw("]");
  }
  j.raw("],\"frames\":[");
  for (size_t i = 0; i < frames.size(); ++i) {
    const std::string& place = frames[i].first;
    const size_t colon = place.rfind(':');
    const bool has_line = colon != std::string::npos;
    j.comma(i == 0).raw("[").string(has_line ? place.substr(0, colon) : place).raw(",");
    j.raw(has_line ? place.substr(colon + 1).c_str() : "0").raw(",");
    j.string(frames[i].second).raw("]");
  }
  j.raw("]}");
  return j.take();
}

}  // namespace tessera::memory
