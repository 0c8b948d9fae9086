// Sums over events of one name, and the table that shows them.
#pragma once
#include <string>
#include <vector>

#include "tessera/profile/trace.h"

namespace tessera::profile {

// One row: an event, or all events of a key. Times in nanoseconds.
struct Row {
  std::string key;
  std::string shapes;              // empty unless asked for
  std::vector<std::string> stack;  // innermost first
  int device = -1;                 // -1: the host
  bool user = false;
  bool top_level = true;  // the first of it was in nothing else
  int64_t count = 0;
  int64_t cpu_ns = 0, self_cpu_ns = 0;
  int64_t device_ns = 0, self_device_ns = 0;
  int64_t host_bytes = 0, self_host_bytes = 0;
  int64_t device_bytes = 0, self_device_bytes = 0;
  int64_t flops = 0;

  void add(const Row& other);
};

// Is it one of those that averages and lists are made of? Memory only outside of all scopes.
bool is_listed(const TraceEvent& e);
Row row_of(const Trace& trace, const TraceEvent& e, bool shapes, int stack);
std::vector<Row> key_averages(const Trace& trace, bool by_shapes = false, int by_stack = 0);

struct TableOptions {
  std::string sort_by;  // an attribute of PyTorch's; empty: as they come
  int64_t row_limit = 100;
  int max_src_width = 75;  // negative: none
  int max_name_width = 55;
  int max_shapes_width = 80;
  std::string header;
  bool has_header = false;
  bool top_level_only = false;
  std::string time_unit;  // "s", "ms", "us"; empty: as fits
  bool memory = false;
  bool flops = false;
  std::string device;  // "cuda"; empty: none was profiled
};
std::string table(std::vector<Row> rows, const TableOptions& options);

// A row's value by the name of PyTorch's attribute, times in microseconds; raises AttributeError's
// words for others.
double value_of(const Row& row, const std::string& attribute);

std::string time_text(double us);
std::string memory_text(int64_t bytes);

}  // namespace tessera::profile
