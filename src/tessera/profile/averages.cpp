#include "tessera/profile/averages.h"

#include <unordered_map>

#include "tessera/base/error.h"

namespace tessera::profile {

void Row::add(const Row& o) {
  count += o.count;
  cpu_ns += o.cpu_ns;
  self_cpu_ns += o.self_cpu_ns;
  device_ns += o.device_ns;
  self_device_ns += o.self_device_ns;
  host_bytes += o.host_bytes;
  self_host_bytes += o.self_host_bytes;
  device_bytes += o.device_bytes;
  self_device_bytes += o.self_device_bytes;
  flops += o.flops;
}

bool is_listed(const TraceEvent& e) {
  return !e.hidden && (e.category != Category::kMemory || e.parent < 0);
}

Row row_of(const Trace& trace, const TraceEvent& e, bool shapes, int stack) {
  Row r;
  r.key = e.name.starts_with("ProfilerStep#") ? "ProfilerStep*" : std::string(e.name);
  r.device = e.on_device() ? e.device : -1;
  r.user = e.category == Category::kUser;
  r.top_level = e.parent < 0;
  r.count = 1;
  if (!e.on_device()) {
    r.cpu_ns = e.duration();
    r.self_cpu_ns = e.self_ns;
  }
  r.device_ns = e.device_ns;
  r.self_device_ns = e.self_device_ns;
  r.host_bytes = e.host_bytes;
  r.self_host_bytes = e.self_host_bytes;
  r.device_bytes = e.device_bytes;
  r.self_device_bytes = e.self_device_bytes;
  r.flops = e.flops;
  if (shapes) r.shapes = shapes_text(trace.arguments(e));
  if (stack > 0) {
    r.stack = trace.stack(e);
    if (r.stack.size() > static_cast<size_t>(stack)) r.stack.resize(static_cast<size_t>(stack));
  }
  return r;
}

std::vector<Row> key_averages(const Trace& trace, bool by_shapes, int by_stack) {
  std::vector<Row> rows;
  std::unordered_map<std::string, size_t> at;
  std::string key;
  for (const TraceEvent& e : trace.events()) {
    if (!is_listed(e)) continue;
    Row r = row_of(trace, e, by_shapes, by_stack);
    key = cat(r.key, '\n', e.on_device() ? 'd' : 'h', r.user ? 'u' : 'o', r.shapes);
    for (const std::string& s : r.stack) key += cat('\n', s);
    auto [it, fresh] = at.try_emplace(key, rows.size());
    if (fresh)
      rows.push_back(std::move(r));
    else
      rows[it->second].add(r);
  }
  return rows;
}

double value_of(const Row& row, const std::string& attribute) {
  std::string name = attribute;
  for (const char* device : {"cuda", "xpu", "privateuse1"})
    if (size_t p = name.find(device); p != std::string::npos)
      name.replace(p, std::string_view(device).size(), "device");
  const double n = row.count ? static_cast<double>(row.count) : 1.0;
  const auto us = [](int64_t ns) { return static_cast<double>(ns) / 1000.0; };
  if (name == "cpu_time_total") return us(row.cpu_ns);
  if (name == "self_cpu_time_total") return us(row.self_cpu_ns);
  if (name == "device_time_total") return us(row.device_ns);
  if (name == "self_device_time_total") return us(row.self_device_ns);
  if (name == "cpu_time") return us(row.cpu_ns) / n;
  if (name == "device_time") return us(row.device_ns) / n;
  if (name == "cpu_memory_usage") return static_cast<double>(row.host_bytes);
  if (name == "self_cpu_memory_usage") return static_cast<double>(row.self_host_bytes);
  if (name == "device_memory_usage") return static_cast<double>(row.device_bytes);
  if (name == "self_device_memory_usage") return static_cast<double>(row.self_device_bytes);
  if (name == "count") return static_cast<double>(row.count);
  if (name == "flops") return static_cast<double>(row.flops);
  raise(ErrorKind::kValue, cat("'FunctionEventAvg' object has no attribute '", name, "'"));
}

}  // namespace tessera::profile
