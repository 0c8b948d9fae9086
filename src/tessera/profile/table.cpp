// The table, in PyTorch's layout: columns end with two spaces, all but the last text to the right.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tessera/base/error.h"
#include "tessera/profile/averages.h"

namespace tessera::profile {

namespace {

std::string format(const char* how, double value) {
  char text[64];
  std::snprintf(text, sizeof text, how, value);
  return text;
}

constexpr double kPerMs = 1e3, kPerSecond = 1e6;

std::string time_in(double us, const std::string& unit) {
  if (unit == "s") return format("%.3fs", us / kPerSecond);
  if (unit == "ms") return format("%.3fms", us / kPerMs);
  if (unit == "us") return format("%.3fus", us);
  return time_text(us);
}

std::string share(double part, double whole) {
  return whole == 0 ? "NaN" : format("%.2f%%", part * 100.0 / whole);
}

// Characters, not bytes: Python's strings are counted so.
size_t length(const std::string& s) {
  return static_cast<size_t>(
      std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}
std::string first(const std::string& s, size_t n) {
  size_t at = 0;
  for (size_t seen = 0; at < s.size(); ++at) {
    if ((s[at] & 0xC0) == 0x80) continue;
    if (seen++ == n) break;
  }
  return s.substr(0, at);
}
std::string last(const std::string& s, size_t n) {
  const size_t all = length(s);
  if (all <= n) return s;
  return s.substr(first(s, all - n).size());
}

// The end of a path is what tells files apart.
std::string trimmed_path(const std::string& path, size_t width) {
  if (length(path) <= width) return path;
  return width > 3 ? "..." + last(path, width - 3) : last(path, width);
}

struct Column {
  std::string title;
  size_t width;
  bool left = false;
};

class Layout {
 public:
  std::vector<Column> columns;
  std::string out;

  void add(std::string title, size_t width = 12, bool left = false) {
    columns.push_back({std::move(title), width, left});
  }
  void row(const std::vector<std::string>& cells) {
    for (size_t i = 0; i < columns.size(); ++i) {
      const std::string& cell = cells[i];
      const size_t n = length(cell), width = columns[i].width;
      const std::string pad(n < width ? width - n : 0, ' ');
      out += columns[i].left ? cell + pad : pad + cell;
      out += "  ";
    }
    out += '\n';
  }
  void line() {
    for (const Column& c : columns) out += std::string(c.width, '-') + "  ";
    out += '\n';
  }
  void double_line() {
    size_t n = 0;
    for (const Column& c : columns) n += c.width + 2;
    out += std::string(n - 2, '=') + '\n';
  }
};

size_t width_for(size_t longest, int most) {
  return most < 0 ? longest + 4 : std::min(longest + 4, static_cast<size_t>(most));
}

struct FlopScale {
  double factor;
  const char* title;
};
FlopScale flop_scale(int64_t least) {
  static constexpr const char* titles[] = {"FLOPs",  "KFLOPs", "MFLOPs",
                                           "GFLOPs", "TFLOPs", "PFLOPs"};
  const double thousands = std::clamp(std::log10(static_cast<double>(least)) / 3, 0.0, 5.0);
  const int step = static_cast<int>(thousands);
  return {std::pow(10.0, -3.0 * step), titles[step]};
}

std::string upper(std::string s) {
  for (char& c : s) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return s;
}

}  // namespace

std::string time_text(double us) {
  if (us >= kPerSecond) return format("%.3fs", us / kPerSecond);
  if (us >= kPerMs) return format("%.3fms", us / kPerMs);
  return format("%.3fus", us);
}

std::string memory_text(int64_t bytes) {
  const int64_t size = std::abs(bytes);
  const auto in = [bytes](int shift, const char* how) {
    return format(how, static_cast<double>(bytes) / static_cast<double>(int64_t{1} << shift));
  };
  if (size >= int64_t{1} << 30) return in(30, "%.2f GB");
  if (size >= int64_t{1} << 20) return in(20, "%.2f MB");
  if (size >= int64_t{1} << 10) return in(10, "%.2f KB");
  return cat(bytes, " B");
}

std::string table(std::vector<Row> rows, const TableOptions& o) {
  if (rows.empty()) return "";
  if (!o.sort_by.empty()) {
    value_of(rows[0], o.sort_by);  // raises for a name that is none
    std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
      return value_of(a, o.sort_by) > value_of(b, o.sort_by);
    });
  }
  bool device_time = false, device_memory = false, shapes = false, stacks = false;
  size_t name_width = 0, shapes_width = 0, stack_width = 0;
  int64_t least_flops = 0, cpu_sum = 0, device_sum = 0;
  for (const Row& r : rows) {
    device_time |= r.self_device_ns > 0;
    device_memory |= r.self_device_bytes > 0;
    shapes |= !r.shapes.empty();
    stacks |= !r.stack.empty();
    name_width = std::max(name_width, length(r.key));
    shapes_width = std::max(shapes_width, length(r.shapes));
    for (const std::string& s : r.stack) stack_width = std::max(stack_width, length(s));
    if (r.flops > 0) least_flops = least_flops ? std::min(least_flops, r.flops) : r.flops;
    cpu_sum += r.self_cpu_ns;
    if (r.device >= 0 && !r.user) device_sum += r.self_device_ns;
  }
  device_time &= !o.device.empty();
  device_memory &= !o.device.empty();
  const bool flops = o.flops && least_flops > 0;
  const FlopScale scale = flops ? flop_scale(least_flops) : FlopScale{};
  stack_width = width_for(stack_width, o.max_src_width);
  shapes_width = width_for(shapes_width, o.max_shapes_width);
  const std::string device = upper(o.device);

  Layout t;
  t.add("Name", width_for(name_width, o.max_name_width));
  for (const char* title : {"Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"})
    t.add(title);
  if (device_time) {
    t.add(cat("Self ", device));
    t.add(cat("Self ", device, " %"));
    t.add(cat(device, " total"));
    t.add(cat(device, " time avg"));
  }
  if (o.memory) {
    t.add("CPU Mem");
    t.add("Self CPU Mem");
    if (device_memory) {
      t.add(cat(device, " Mem"));
      t.add(cat("Self ", device, " Mem"));
    }
  }
  t.add("# of Calls");
  if (shapes) t.add("Input Shapes", shapes_width);
  if (stacks) t.add("Source Location", stack_width, true);
  if (flops) t.add(cat("Total ", scale.title));

  if (o.has_header) {
    t.double_line();
    t.out += o.header + '\n';
  }
  if (o.top_level_only) {
    t.double_line();
    t.out += "This report only display top-level ops statistics\n";
  }
  t.line();
  std::vector<std::string> cells;
  for (const Column& c : t.columns) cells.push_back(c.title);
  t.row(cells);
  t.line();

  int64_t shown = 0;
  for (const Row& r : rows) {
    if (shown == o.row_limit) break;
    if (o.top_level_only && !r.top_level) continue;
    ++shown;
    const auto at = [&](const char* attribute) {
      return time_in(value_of(r, attribute), o.time_unit);
    };
    std::string name = r.key;
    if (o.max_name_width >= 0 && static_cast<int>(length(name)) >= o.max_name_width - 3)
      name = first(name, static_cast<size_t>(std::max(0, o.max_name_width - 3))) + "...";
    cells = {name,
             share(static_cast<double>(r.self_cpu_ns), static_cast<double>(cpu_sum)),
             at("self_cpu_time_total"),
             share(static_cast<double>(r.cpu_ns), static_cast<double>(cpu_sum)),
             at("cpu_time_total"),
             at("cpu_time")};
    if (device_time) {
      cells.push_back(at("self_device_time_total"));
      cells.push_back(
          share(static_cast<double>(r.self_device_ns), static_cast<double>(device_sum)));
      cells.push_back(at("device_time_total"));
      cells.push_back(at("device_time"));
    }
    if (o.memory) {
      cells.push_back(memory_text(r.host_bytes));
      cells.push_back(memory_text(r.self_host_bytes));
      if (device_memory) {
        cells.push_back(memory_text(r.device_bytes));
        cells.push_back(memory_text(r.self_device_bytes));
      }
    }
    cells.push_back(cat(r.count));
    if (shapes) cells.push_back(first(r.shapes, shapes_width));
    if (stacks) cells.push_back(r.stack.empty() ? "" : trimmed_path(r.stack[0], stack_width));
    if (flops)
      cells.push_back(r.flops > 0 ? format("%8.3f", static_cast<double>(r.flops) * scale.factor)
                                  : "--");
    t.row(cells);
    if (!stacks) continue;
    const size_t place = t.columns.size() - 1 - flops;
    std::vector<std::string> more(t.columns.size());
    for (size_t i = 1; i < r.stack.size(); ++i) {
      more[place] = trimmed_path(r.stack[i], stack_width);
      t.row(more);
    }
    more[place].clear();
    t.row(more);
  }
  t.line();
  t.out +=
      cat("Self CPU time total: ", time_in(static_cast<double>(cpu_sum) / 1e3, o.time_unit), "\n");
  if (device_time)
    t.out +=
        cat("Self ", device,
            " time total: ", time_in(static_cast<double>(device_sum) / 1e3, o.time_unit), "\n");
  return t.out;
}

}  // namespace tessera::profile
