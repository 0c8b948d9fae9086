// The line of Python an operator was called on: a code object and an offset into it.
#include "source.h"

// From 3.11 on Python has frames without frame objects. 3.11 has no public way to look at them, and
// that of 3.12 and 3.13 costs twice as much.
#include <patchlevel.h>
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030E0000
#define Py_BUILD_CORE 1
#include <Python.h>
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#endif

#include <algorithm>
#include <atomic>
#include <string>
#include <unordered_map>
#include <vector>

#include "py.h"
#include "tessera/base/source.h"

// After Python.h: before 3.11 frames are described here.
#include <frameobject.h>

namespace tessera::python {

namespace {

// Note [Code objects of captured lines]
// Captures of one code object share an entry, which owns one Python reference and counts them. So a
// capture costs no reference count of Python's, and may be let go by a thread that does not hold
// Python's lock: that only lowers the count. Entries nobody uses go when the table has doubled. The
// table is touched under Python's lock alone.
struct Entry {
  PyCodeObject* code;
  std::string file;
  bool of_package;  // of this package: the program's line is further up
  std::atomic<int64_t> users{0};
};

std::unordered_map<PyCodeObject*, Entry>& entries() {
  static auto* all = new std::unordered_map<PyCodeObject*, Entry>;
  return *all;
}

// Recent captures by address: most programs call their operators from a few functions.
constexpr size_t kRecent = 16;
Entry* g_recent[kRecent] = {};
size_t g_sweep_at = 256;
std::string& package_folder() {
  static auto* folder = new std::string;
  return *folder;
}

void sweep() {
  auto& all = entries();
  std::fill_n(g_recent, kRecent, nullptr);
  std::vector<PyRef> gone;  // let go at the end: that may run code, which may capture
  for (auto it = all.begin(); it != all.end();) {
    if (it->second.users.load() == 0) {
      gone.emplace_back(reinterpret_cast<PyObject*>(it->second.code));
      it = all.erase(it);
    } else {
      ++it;
    }
  }
  g_sweep_at = std::max<size_t>(256, 2 * all.size());
}

Entry& entry_of(PyCodeObject* code) {
  Entry*& recent = g_recent[(reinterpret_cast<uintptr_t>(code) >> 5) % kRecent];
  if (recent && recent->code == code) [[likely]]
    return *recent;
  if (entries().size() >= g_sweep_at) sweep();
  auto [it, fresh] = entries().try_emplace(code);
  Entry& e = it->second;
  if (fresh) {
    e.code = reinterpret_cast<PyCodeObject*>(Py_NewRef(reinterpret_cast<PyObject*>(code)));
    const char* file = PyUnicode_AsUTF8(code->co_filename);
    if (!file) PyErr_Clear();
    e.file = file ? file : "?";
    const std::string& folder = package_folder();
    e.of_package = !folder.empty() && e.file.compare(0, folder.size(), folder) == 0;
  }
  recent = &e;
  return e;
}

struct Place {
  PyCodeObject* code = nullptr;  // borrowed from a frame that is running
  int32_t at = -1;               // in bytes
};

Place place_of(PyFrameObject* frame) {
  PyCodeObject* code = PyFrame_GetCode(frame);
  Py_DECREF(code);
#if PY_VERSION_HEX >= 0x030B0000
  return {code, PyFrame_GetLasti(frame)};
#else
  return {code, frame->f_lasti * 2};
#endif
}

// The frame that called us, without making a frame object where this Python lets one.
Place calling_place() {
#if PY_VERSION_HEX >= 0x030E0000
  _PyInterpreterFrame* frame = PyThreadState_Get()->current_frame;
  if (!frame) return {};
  PyObject* code = PyUnstable_InterpreterFrame_GetCode(frame);
  Py_DECREF(code);
  return {reinterpret_cast<PyCodeObject*>(code), PyUnstable_InterpreterFrame_GetLasti(frame)};
#elif PY_VERSION_HEX >= 0x030B0000
#if PY_VERSION_HEX >= 0x030D0000
  _PyInterpreterFrame* frame = PyThreadState_Get()->current_frame;
  if (!frame || !PyCode_Check(frame->f_executable)) return {};
  PyCodeObject* code = _PyFrame_GetCode(frame);
#else
  _PyInterpreterFrame* frame = PyThreadState_Get()->cframe->current_frame;
  if (!frame) return {};
  PyCodeObject* code = frame->f_code;
#endif
  return {code, _PyInterpreterFrame_LASTI(frame) * static_cast<int>(sizeof(_Py_CODEUNIT))};
#else
  PyFrameObject* frame = PyEval_GetFrame();
  return frame ? place_of(frame) : Place{};
#endif
}

// The innermost frame that is not of this package, if there is one.
Place programs_place(Place inner) {
  PyRef frame = PyRef::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame) {
    auto* f = reinterpret_cast<PyFrameObject*>(frame.get());
    Place p = place_of(f);
    if (!entry_of(p.code).of_package) return p;
    frame = PyRef(reinterpret_cast<PyObject*>(PyFrame_GetBack(f)));
  }
  return inner;
}

void* capture(bool want_line, int32_t* at, int32_t* line) {
  if (!PyGILState_Check()) return nullptr;
  Place p = calling_place();
  if (!p.code) return nullptr;
  Entry* e = &entry_of(p.code);
  if (e->of_package) [[unlikely]] {
    p = programs_place(p);
    e = &entry_of(p.code);
  }
  e->users.fetch_add(1, std::memory_order_relaxed);
  *at = p.at;
  *line = want_line ? PyCode_Addr2Line(p.code, p.at) : -1;
  return e;
}

void release(void* code) {
  static_cast<Entry*>(code)->users.fetch_sub(1, std::memory_order_release);
}

std::string text(void* code, int32_t at, int32_t line) {
  const Entry& e = *static_cast<Entry*>(code);
  if (line < 0 && PyGILState_Check()) line = PyCode_Addr2Line(e.code, at);
  return line < 0 ? e.file : cat(e.file, ":", int64_t{line});
}

}  // namespace

void init_source(const char* folder) {
  package_folder() = folder;
  source_hooks = {capture, release, text};
}

}  // namespace tessera::python
