// The line of Python an operator was called on: a code object and an offset into it.
#include "source.h"

// From 3.11 on Python has frames without frame objects; making the object costs several times what
// everything else here does. Later versions have a header of another shape: objects there.
#include <patchlevel.h>
#define TS_BARE_FRAMES (PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030E0000)
#if TS_BARE_FRAMES
#define Py_BUILD_CORE 1
#include <Python.h>
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#endif

#include <algorithm>
#include <atomic>
#include <string>
#include <unordered_map>
#include <unordered_set>
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

// All borrowed: these frames are running.
#if TS_BARE_FRAMES
using Frame = _PyInterpreterFrame*;

Frame complete(Frame f) {
  while (f && _PyFrame_IsIncomplete(f)) f = f->previous;
  return f;
}
Frame innermost() {
#if PY_VERSION_HEX >= 0x030D0000
  return complete(PyThreadState_Get()->current_frame);
#else
  return complete(PyThreadState_Get()->cframe->current_frame);
#endif
}
Frame caller(Frame f) { return complete(f->previous); }
PyCodeObject* code_of(Frame f) {
#if PY_VERSION_HEX >= 0x030D0000
  return _PyFrame_GetCode(f);
#else
  return f->f_code;
#endif
}
int32_t offset_in(Frame f) {
  return _PyInterpreterFrame_LASTI(f) * static_cast<int>(sizeof(_Py_CODEUNIT));
}
#else
using Frame = PyFrameObject*;

Frame innermost() { return PyEval_GetFrame(); }
Frame caller(Frame f) {
  Frame back = PyFrame_GetBack(f);
  Py_XDECREF(back);
  return back;
}
PyCodeObject* code_of(Frame f) {
  PyCodeObject* code = PyFrame_GetCode(f);
  Py_DECREF(code);
  return code;
}
int32_t offset_in(Frame f) {
#if PY_VERSION_HEX >= 0x030B0000
  return PyFrame_GetLasti(f);
#else
  return f->f_lasti * 2;
#endif
}
#endif

void* capture(bool want_line, int32_t* at, int32_t* line) {
  if (!PyGILState_Check()) return nullptr;
  Frame frame = innermost();
  if (!frame) return nullptr;
  Entry* e = &entry_of(code_of(frame));
  while (e->of_package) {
    Frame outer = caller(frame);
    if (!outer) break;
    frame = outer;
    e = &entry_of(code_of(frame));
  }
  e->users.fetch_add(1, std::memory_order_relaxed);
  *at = offset_in(frame);
  *line = want_line ? PyCode_Addr2Line(e->code, *at) : -1;
  return e;
}

void retain(void* code) {
  static_cast<Entry*>(code)->users.fetch_add(1, std::memory_order_relaxed);
}
void release(void* code) {
  static_cast<Entry*>(code)->users.fetch_sub(1, std::memory_order_release);
}

// With the frames of the package: a snapshot shows them all.
int capture_stack(void** codes, int32_t* at, int most) {
  if (!PyGILState_Check()) return 0;
  int n = 0;
  for (Frame f = innermost(); f && n < most; f = caller(f)) {
    Entry& e = entry_of(code_of(f));
    e.users.fetch_add(1, std::memory_order_relaxed);
    codes[n] = &e;
    at[n++] = offset_in(f);
  }
  return n;
}

std::string name(void* code) {
  const Entry& e = *static_cast<Entry*>(code);
  if (!PyGILState_Check()) return "";
#if PY_VERSION_HEX >= 0x030B0000
  const char* text = PyUnicode_AsUTF8(e.code->co_qualname);
#else
  const char* text = PyUnicode_AsUTF8(e.code->co_name);
#endif
  if (!text) PyErr_Clear();
  return text ? text : "";
}

// Also without Python's lock: a code object's table of lines never changes.
std::string text(void* code, int32_t at, int32_t line) {
  const Entry& e = *static_cast<Entry*>(code);
  if (line < 0) line = PyCode_Addr2Line(e.code, at);
  return line < 0 ? e.file : cat(e.file, ":", int64_t{line});
}

// The number of an instruction in this version of Python; -2 where it has none of the name.
int opcode_of(const char* name) {
  PyRef module(PyImport_ImportModule("opcode"));
  PyRef map(module ? PyObject_GetAttrString(module.get(), "opmap") : nullptr);
  PyObject* number = map ? PyDict_GetItemString(map.get(), name) : nullptr;
  int value = number ? static_cast<int>(PyLong_AsLong(number)) : -2;
  PyErr_Clear();
  return value;
}

// The instruction that runs after the call at `at`; -1 where it cannot be told.
int opcode_after_call(PyCodeObject* code, int32_t at) {
  static const int precall = opcode_of("PRECALL");  // 3.11: may do the work of the CALL behind it
  PyRef bytes(PyObject_GetAttrString(reinterpret_cast<PyObject*>(code), "co_code"));
  char* text = nullptr;
  Py_ssize_t size = 0;
  if (!bytes || PyBytes_AsStringAndSize(bytes.get(), &text, &size) < 0) {
    PyErr_Clear();
    return -1;
  }
  auto opcode = [&](Py_ssize_t i) { return i < size ? static_cast<unsigned char>(text[i]) : -1; };
  auto next = [&](Py_ssize_t i) {  // over what the interpreter keeps between instructions
    do i += 2;
    while (opcode(i) == 0);
    return i;
  };
  Py_ssize_t here = at;
  if (opcode(here) == precall) here = next(here);
  return opcode(next(here));
}

}  // namespace

bool drops_result_first() {
  Frame frame = innermost();
  if (!frame) return false;
  PyCodeObject* code = code_of(frame);
  int32_t at = offset_in(frame);
  // Places that were looked at; a table that is full looks no more.
  constexpr size_t kPlaces = 1024;
  static auto* seen = new std::unordered_set<uint64_t>;
  if (seen->size() >= kPlaces) return false;
  uint64_t key =
      reinterpret_cast<uintptr_t>(code) * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(at);
  if (!seen->insert(key).second) return false;
  if (entry_of(code).of_package) return false;
  static const int pop_top = opcode_of("POP_TOP");
  return opcode_after_call(code, at) == pop_top;
}

void init_source(const char* folder) {
  package_folder() = folder;
  source_hooks = {capture, retain, release, text, capture_stack, name};
}

}  // namespace tessera::python
