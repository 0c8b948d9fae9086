#include "tessera/profile/page.h"

#include <algorithm>
#include <unordered_map>

#include "tessera/base/error.h"
#include "tessera/profile/averages.h"
#include "tessera/profile/chrome.h"

namespace tessera::profile {

namespace {

// Numbers given to what is seen, in order.
template <class Key>
class Numbers {
 public:
  int of(const Key& key) {
    auto [it, fresh] = numbers_.try_emplace(key, static_cast<int>(keys.size()));
    if (fresh) keys.push_back(key);
    return it->second;
  }
  std::vector<Key> keys;

 private:
  std::map<Key, int> numbers_;
};

struct Track {
  int device;  // -1: the host
  int64_t id;  // thread or stream
  auto operator<=>(const Track&) const = default;
};

template <class T>
void put_list(std::string& out, const char* name, const std::vector<T>& values) {
  out += cat("\"", name, "\": [");
  for (size_t i = 0; i < values.size(); ++i) {
    if (i) out += ',';
    out += cat(values[i]);
  }
  out += "],\n";
}

// How many scopes an event is in; what is hidden does not count.
std::vector<int> depths_of(const Trace& trace) {
  const std::vector<TraceEvent>& events = trace.events();
  std::vector<int> depth(events.size(), 0);
  for (size_t i = 0; i < events.size(); ++i)
    if (events[i].parent >= 0) depth[i] = depth[static_cast<size_t>(events[i].parent)] + 1;
  return depth;
}

std::vector<size_t> chosen(const Trace& trace, size_t most) {
  std::vector<size_t> out;
  const std::vector<TraceEvent>& events = trace.events();
  for (size_t i = 0; i < events.size(); ++i)
    if (!events[i].hidden && events[i].category != Category::kMemory) out.push_back(i);
  if (out.size() <= most) return out;
  std::nth_element(out.begin(), out.begin() + static_cast<int64_t>(most), out.end(),
                   [&](size_t a, size_t b) { return events[a].duration() > events[b].duration(); });
  out.resize(most);
  std::sort(out.begin(), out.end());
  return out;
}

void put_rows(std::string& out, const Trace& trace) {
  out += "\"rows\": [";
  bool first = true;
  for (const Row& r : key_averages(trace)) {
    if (!first) out += ",\n";
    first = false;
    out += '[';
    append_json(out, r.key);
    out +=
        cat(",", r.device, ",", r.count, ",", r.self_cpu_ns, ",", r.cpu_ns, ",", r.self_device_ns,
            ",", r.device_ns, ",", r.self_host_bytes, ",", r.self_device_bytes, "]");
  }
  out += "],\n";
}

void put_tracks(std::string& out, const Trace& trace, const std::vector<Track>& tracks) {
  out += "\"tracks\": [";
  for (size_t i = 0; i < tracks.size(); ++i) {
    const Track& t = tracks[i];
    std::string name =
        t.device < 0 ? cat("thread ", t.id) : cat("GPU ", t.device, " stream ", t.id);
    for (const ThreadInfo& info : trace.threads())
      if (t.device < 0 && info.id == t.id) name += cat(" (", info.name, ")");
    if (i) out += ", ";
    out += cat("{\"device\": ", t.device, ", \"name\": ");
    append_json(out, name);
    out += '}';
  }
  out += "],\n";
}

}  // namespace

std::string page_data(const Trace& trace, size_t most_events) {
  const std::vector<TraceEvent>& events = trace.events();
  const std::vector<size_t> shown = chosen(trace, most_events);
  const std::vector<int> depths = depths_of(trace);
  Numbers<std::string_view> names;
  Numbers<Track> tracks;
  std::vector<int> name, track, depth, category;
  std::vector<int64_t> start, length;
  std::unordered_map<size_t, size_t> place;
  for (size_t i : shown) {
    const TraceEvent& e = events[i];
    place.emplace(i, name.size());
    name.push_back(names.of(e.name));
    track.push_back(tracks.of({e.on_device() ? e.device : -1,
                               e.on_device() ? e.stream : static_cast<int64_t>(e.thread)}));
    depth.push_back(e.on_device() ? 0 : depths[i]);
    category.push_back(static_cast<int>(e.category));
    start.push_back(e.start);
    length.push_back(e.duration());
  }
  std::string out = "{\n\"names\": [";
  for (size_t i = 0; i < names.keys.size(); ++i) {
    if (i) out += ", ";
    append_json(out, names.keys[i]);
  }
  out += "],\n";
  put_tracks(out, trace, tracks.keys);
  put_list(out, "name", name);
  put_list(out, "track", track);
  put_list(out, "depth", depth);
  put_list(out, "category", category);
  put_list(out, "start", start);
  put_list(out, "length", length);
  std::vector<int64_t> arrows;
  for (const Arrow& a : trace.arrows()) {
    auto from = place.find(static_cast<size_t>(a.from)), to = place.find(static_cast<size_t>(a.to));
    if (from == place.end() || to == place.end()) continue;
    for (int64_t n : {static_cast<int64_t>(a.kind), static_cast<int64_t>(from->second),
                      static_cast<int64_t>(to->second)})
      arrows.push_back(n);
  }
  put_list(out, "arrows", arrows);
  // Of groups: their operators and lines; equal ones are told once.
  Numbers<std::string> groups;
  std::string members;
  for (size_t i : shown) {
    const auto of = trace.members(events[i]);
    if (of.empty()) continue;
    std::string text = "[";
    for (size_t k = 0; k < of.size(); ++k) {
      if (k) text += ", ";
      text += '[';
      append_json(text, of[k].first);
      text += ", ";
      append_json(text, of[k].second);
      text += ']';
    }
    members += cat(members.empty() ? "" : ", ", "\"", place[i], "\": ", groups.of(text + "]"));
  }
  out += "\"groups\": [";
  for (size_t i = 0; i < groups.keys.size(); ++i) out += (i ? ",\n" : "") + groups.keys[i];
  out += "],\n\"group\": {" + members + "},\n";
  put_rows(out, trace);
  out += cat("\"memory\": ", trace.what() & kBytes ? 1 : 0, ",\n\"duration\": ", trace.length_ns(),
             ",\n\"events\": ", events.size(), ",\n\"leftOut\": ",
             std::count_if(
                 events.begin(), events.end(),
                 [](const TraceEvent& e) { return !e.hidden && e.category != Category::kMemory; }) -
                 static_cast<int64_t>(shown.size()),
             ",\n\"dropped\": ", trace.dropped, ",\n\"measuredBy\": ");
  append_json(out, trace.measured_by);
  return out + "\n}";
}

}  // namespace tessera::profile
