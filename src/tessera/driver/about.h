// What a backend says of itself, for `tessera doctor`.
#pragma once
#include <string>
#include <string_view>

namespace tessera {

// Lines of "name: value"; empty where the backend has nothing to say or cannot be loaded.
// A backend says it through `extern "C" const char* tessera_backend_about()`, exported beside its
// table; the text is valid until the thread's next call.
std::string about_backend(const char* name);
inline constexpr const char* kBackendAboutName = "tessera_backend_about";

// Returns the absolute path of a file in the folder of the core; empty if that is not known.
std::string library_beside_core(std::string_view file);
// The library a backend was loaded from; empty if it was not.
std::string backend_file(const char* name);

}  // namespace tessera
