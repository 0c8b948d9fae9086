// What a backend says of itself, for `tessera doctor`.
#pragma once
#include <string>

namespace tessera {

// Lines of "name: value"; empty where the backend has nothing to say or cannot be loaded.
// A backend says it through `extern "C" const char* tessera_backend_about()`, exported beside its
// table; the text is valid until the thread's next call.
std::string about_backend(const char* name);
inline constexpr const char* kBackendAboutName = "tessera_backend_about";

// The library a backend was loaded from; empty if it was not.
std::string backend_file(const char* name);

}  // namespace tessera
