// A library of CUDA's as a struct of function pointers: opened at first use, once, and kept.
#pragma once
#include <dlfcn.h>

#include <string>

#include "dynlib.h"

namespace tessera::cuda {

template <class Api>
struct LibraryApi {
  Api api{};
  std::string why;  // it cannot be used

  template <class F>
  bool find(void* library, const char* name, F*& to) {
    to = reinterpret_cast<F*>(dlsym(library, name));
    if (!to) why = std::string("the library has no ") + name;
    return to;
  }
};

// `load(LibraryApi<Api>&)` opens it and finds everything, or returns false with the reason in
// `why`.
template <class Api, class Load>
const Api* opened_once(const char** why, Load load) {
  struct State : LibraryApi<Api> {
    bool ready = false;
  };
  static State* s = [&] {
    auto* fresh = new State;
    fresh->ready = load(*fresh);
    return fresh;
  }();
  if (why) *why = s->why.c_str();
  return s->ready ? &s->api : nullptr;
}

// For the lists of functions that each library's header has.
#define TS_FIND_FUNCTION(f) \
  if (!s.find(library, #f, s.api.f)) return false;

}  // namespace tessera::cuda
