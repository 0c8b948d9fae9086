#include "tessera/memory/config.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <vector>

#include "tessera/base/error.h"

namespace tessera::memory {

namespace {

// "a:b,c:d"; a value may be a list in brackets, with commas and colons of its own.
std::vector<std::pair<std::string, std::string>> split_options(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> out;
  std::string key, value;
  bool in_value = false;
  int depth = 0;
  auto end = [&] {
    if (!key.empty()) out.emplace_back(key, value);
    key.clear();
    value.clear();
    in_value = false;
  };
  for (char c : text) {
    if (c == ' ') continue;
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (c == ',' && depth == 0) {
      end();
    } else if (c == ':' && !in_value) {
      in_value = true;
    } else {
      (in_value ? value : key) += c;
    }
  }
  end();
  return out;
}

double number(const std::string& key, const std::string& value) {
  char* rest = nullptr;
  const double n = std::strtod(value.c_str(), &rest);
  TS_CHECK_VALUE(rest != value.c_str() && !*rest && n >= 0, "allocator option ", key, ": '", value,
                 "' is not a number of zero or more");
  return n;
}

bool truth(const std::string& key, const std::string& value) {
  if (value == "True" || value == "true" || value == "1") return true;
  TS_CHECK_VALUE(value == "False" || value == "false" || value == "0", "allocator option ", key,
                 ": expected True or False, not '", value, "'");
  return false;
}

// "4", or "[256:1,512:2,>:4]" of which the last holds: sizes that matter lie beyond the others.
size_t divisions(const std::string& key, std::string value) {
  if (!value.empty() && value.front() == '[') {
    const size_t colon = value.rfind(':');
    TS_CHECK_VALUE(colon != std::string::npos && value.back() == ']', "allocator option ", key,
                   ": '", value, "' is not a list");
    value = value.substr(colon + 1, value.size() - colon - 2);
  }
  const auto n = static_cast<size_t>(number(key, value));
  TS_CHECK_VALUE(n == 0 || std::has_single_bit(n), "allocator option ", key,
                 ": must be a power of two, not ", value);
  return n;
}

}  // namespace

Config parse_config(const std::string& text) {
  // Of PyTorch's, with no meaning here: the lock is never held across the driver's slow calls for
  // longer than they take, and page-locked memory has an allocator of its own.
  constexpr const char* kNoMeaning[] = {
      "release_lock_on_cudamalloc",     "release_lock_on_hipmalloc",
      "pinned_use_cuda_host_register",  "pinned_use_hip_host_register",
      "pinned_num_register_threads",    "pinned_use_background_threads",
      "max_non_split_rounding_mb",      "large_segment_size_mb",
      "pinned_reserve_segment_size_mb", "graph_capture_record_stream_reuse",
      "throw_on_cudamalloc_oom"};
  Config c;
  for (const auto& [key, value] : split_options(text)) {
    if (key == "expandable_segments") {
      c.expandable = truth(key, value);
    } else if (key == "max_split_size_mb") {
      const double mb = number(key, value);
      TS_CHECK_VALUE(mb >= 20, "allocator option max_split_size_mb: must be at least 20, not ",
                     value);
      c.max_split = static_cast<size_t>(mb) << 20;
    } else if (key == "garbage_collection_threshold") {
      c.gc_threshold = number(key, value);
      TS_CHECK_VALUE(c.gc_threshold > 0 && c.gc_threshold < 1,
                     "allocator option garbage_collection_threshold: must lie between 0 and 1");
    } else if (key == "roundup_power2_divisions") {
      c.roundup_divisions = divisions(key, value);
    } else if (key == "per_process_memory_fraction") {
      c.fraction = number(key, value);
      TS_CHECK_VALUE(c.fraction <= 1,
                     "allocator option per_process_memory_fraction: must lie between 0 and 1");
    } else if (key == "backend") {
      TS_CHECK_VALUE(value == "native" || value == "cudaMallocAsync",
                     "allocator option backend: must be native or cudaMallocAsync, not ", value);
    } else {
      TS_CHECK_VALUE(
          std::find(std::begin(kNoMeaning), std::end(kNoMeaning), key) != std::end(kNoMeaning),
          "Unrecognized CachingAllocator option: ", key);
    }
  }
  return c;
}

const Config& config() {
  static const Config& c = *[] {
    auto* read = new Config;
    for (const char* name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"})
      if (const char* text = std::getenv(name)) *read = parse_config(text);
    const char* direct = std::getenv("PYTORCH_NO_CUDA_MEMORY_CACHING");
    read->caching = !direct || !*direct || *direct == '0';
    return read;
  }();
  return c;
}

size_t round_up_divisions(size_t bytes, size_t divisions) {
  if (divisions <= 1 || bytes <= 512 * divisions) return bytes;
  const size_t floor = std::bit_floor(bytes), step = floor / divisions;
  return step == 0 ? bytes : (bytes + step - 1) / step * step;
}

}  // namespace tessera::memory
