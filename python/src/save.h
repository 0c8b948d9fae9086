// Between files (src/tessera/save) and Python.
#pragma once
#include <memory>
#include <string>

#include "py.h"
#include "tessera/save/loaded.h"

namespace tessera::python {

// Like guarded(), and what saving and loading raise becomes UnpicklingError, EOFError and OSError.
void set_file_error() noexcept;
template <class Work>
PyObject* guarded_file(Work&& work) noexcept {
  try {
    return work();
  } catch (...) {
    set_file_error();
    return nullptr;
  }
}

// The bytes of a file's name; lone surrogates stand for those that are not UTF-8.
std::string file_name(PyObject* name);

// A path, a descriptor or something with a buffer, which lives as long as this.
class SourceArgument {
 public:
  SourceArgument(PyObject* o, std::string name);
  ~SourceArgument();
  SourceArgument(const SourceArgument&) = delete;
  SourceArgument& operator=(const SourceArgument&) = delete;
  std::shared_ptr<files::Source> source;

 private:
  Py_buffer view_{};
  bool held_ = false;
};

// Where bytes go: a path, or something with write().
void write_to(PyObject* target, uint64_t expected,
              const std::function<void(files::Sink&, const std::string& path)>& work);
// map_location as the reader asks for it; `callable` may be None.
std::function<TensorBase(const TensorBase&, const std::string&)> place_by(PyObject* callable);

// The values of a file as Python's objects. `helpers` is tessera._saved, `allowed` a dict of what
// the file may name.
PyObject* to_python(const files::Loaded& file, PyObject* allowed, PyObject* helpers);

void add_save(PyObject* module);
void add_safetensors(PyObject* module);

}  // namespace tessera::python
