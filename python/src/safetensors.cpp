// safetensors files for tessera/utils/safetensors.py.
#include "tessera/save/safetensors.h"

#include "methods.h"
#include "save.h"
#include "tessera/base/blocking.h"
#include "types.h"

namespace tessera::python {

namespace {

constexpr const char* kCapsule = "tessera.safetensors";

struct OpenFile {
  OpenFile(PyObject* source, PyObject* name)
      : argument(source, file_name(name)),
        header(files::read_safetensors_header(*argument.source)) {}
  SourceArgument argument;
  files::SafeHeader header;
};

OpenFile& file_in(PyObject* capsule) {
  auto* p = static_cast<OpenFile*>(PyCapsule_GetPointer(capsule, kCapsule));
  if (!p) throw PythonError{};
  return *p;
}

PyObject* to_text(std::string_view s) {
  return checked(PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), nullptr));
}
std::string from_text(PyObject* o, const char* what) {
  if (!PyUnicode_Check(o))
    throw raise_python(PyExc_TypeError, "%s must be strings, not %s", what, Py_TYPE(o)->tp_name);
  Py_ssize_t n;
  const char* text = PyUnicode_AsUTF8AndSize(o, &n);
  if (!text) throw PythonError{};
  return {text, static_cast<size_t>(n)};
}

PyObject* open(PyObject*, PyObject* args) {
  return guarded_file([&]() -> PyObject* {
    PyObject *source, *name;
    if (!PyArg_ParseTuple(args, "OO:_safetensors_open", &source, &name)) throw PythonError{};
    auto made = std::make_unique<OpenFile>(source, name);
    PyObject* capsule = checked(PyCapsule_New(made.get(), kCapsule, [](PyObject* o) {
      delete static_cast<OpenFile*>(PyCapsule_GetPointer(o, kCapsule));
    }));
    made.release();
    return capsule;
  });
}

PyObject* header(PyObject*, PyObject* capsule) {
  return guarded_file([&]() -> PyObject* {
    const files::SafeHeader& h = file_in(capsule).header;
    PyRef entries(checked(PyList_New(0))), metadata(checked(PyDict_New()));
    for (const files::SafeEntry& e : h.entries) {
      PyRef name(to_text(e.name)), dtype(to_text(e.dtype->name)),
          shape(checked(wrap_ints(e.shape)));
      PyRef entry(checked(PyTuple_Pack(3, name.get(), dtype.get(), shape.get())));
      if (PyList_Append(entries.get(), entry.get()) < 0) throw PythonError{};
    }
    for (const auto& [key, value] : h.metadata) {
      PyRef k(to_text(key)), v(to_text(value));
      if (PyDict_SetItem(metadata.get(), k.get(), v.get()) < 0) throw PythonError{};
    }
    return PyTuple_Pack(2, entries.get(), metadata.get());
  });
}

PyObject* tensor(PyObject*, PyObject* args) {
  return guarded_file([&]() -> PyObject* {
    PyObject* capsule;
    Py_ssize_t index;
    int mmap;
    if (!PyArg_ParseTuple(args, "Onp:_safetensors_tensor", &capsule, &index, &mmap))
      throw PythonError{};
    OpenFile& file = file_in(capsule);
    if (index < 0 || static_cast<size_t>(index) >= file.header.entries.size())
      throw raise_python(PyExc_IndexError, "no tensor %zd", index);
    TensorBase out;
    {
      BlockingScope others_go_on;
      out = files::read_safetensor(file.argument.source,
                                   file.header.entries[static_cast<size_t>(index)], mmap != 0);
    }
    return wrap(std::move(out));
  });
}

PyObject* tensors(PyObject*, PyObject* args) {
  return guarded_file([&]() -> PyObject* {
    PyObject* capsule;
    int mmap;
    if (!PyArg_ParseTuple(args, "Op:_safetensors_tensors", &capsule, &mmap)) throw PythonError{};
    OpenFile& file = file_in(capsule);
    PyRef out(checked(PyDict_New()));
    for (const files::SafeEntry& e : file.header.entries) {
      TensorBase read;
      {
        BlockingScope others_go_on;
        read = files::read_safetensor(file.argument.source, e, mmap != 0);
      }
      PyRef name(to_text(e.name)), tensor(checked(wrap(std::move(read))));
      if (PyDict_SetItem(out.get(), name.get(), tensor.get()) < 0) throw PythonError{};
    }
    return out.release();
  });
}

PyObject* save(PyObject*, PyObject* args) {
  return guarded_file([&]() -> PyObject* {
    PyObject *target, *tensors, *words;
    if (!PyArg_ParseTuple(args, "OO!O!:_safetensors_save", &target, &PyDict_Type, &tensors,
                          &PyDict_Type, &words))
      throw PythonError{};
    StateDict state;
    Metadata metadata;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(tensors, &at, &key, &value);)
      state.emplace_back(from_text(key, "names of tensors"),
                         Tensor(unwrap_checked(value, "save_file(): every value")));
    for (Py_ssize_t at = 0; PyDict_Next(words, &at, &key, &value);)
      metadata.emplace(from_text(key, "keys of metadata"), from_text(value, "values of metadata"));
    write_to(target, files::safetensors_bytes(state, metadata),
             [&](files::Sink& sink, const std::string&) {
               files::write_safetensors(sink, state, metadata);
             });
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {
    {"_safetensors_open", open, METH_VARARGS, "A file whose header has been checked."},
    {"_safetensors_header", header, METH_O, "Names, dtypes and shapes; and the metadata."},
    {"_safetensors_tensor", tensor, METH_VARARGS, "One of its tensors, on the host."},
    {"_safetensors_tensors", tensors, METH_VARARGS, "All of its tensors by name, on the host."},
    {"_safetensors_save", save, METH_VARARGS, "Writes a dict of tensors."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_safetensors(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError{};
}

}  // namespace tessera::python
