// Which names of libraries are opened: absolute paths, and bare names, which the loader looks up in
// its own folders. A relative path would load code from the current directory.
#pragma once
#include <string_view>

namespace tessera {

inline bool is_absolute_path(std::string_view path) { return path.starts_with('/'); }
inline bool is_library_path(std::string_view name) {
  return !name.empty() && (is_absolute_path(name) || name.find('/') == std::string_view::npos);
}

}  // namespace tessera
