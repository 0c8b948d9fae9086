// torch.save and torch.load as Python's files call them; tessera/serialization.py is their face.
#include "save.h"

#include <algorithm>
#include <cstring>

#include "methods.h"
#include "tessera/base/blocking.h"
#include "tessera/save/errors.h"
#include "tessera/save/verify.h"
#include "tessera/save/write_archive.h"
#include "types.h"

namespace tessera::python {

std::string file_name(PyObject* name) {
  if (!PyUnicode_Check(name))
    throw raise_python(PyExc_TypeError, "a file's name must be str, not %s",
                       Py_TYPE(name)->tp_name);
  PyRef bytes(checked(PyUnicode_EncodeFSDefault(name)));
  return {PyBytes_AS_STRING(bytes.get()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.get()))};
}

void set_file_error() noexcept {
  try {
    throw;
  } catch (const files::SystemError& e) {
    const std::string& path = e.path();
    PyRef args(Py_BuildValue(
        "iNN", e.code(), decode_message(e.reason()),
        PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size()))));
    PyRef error(args ? PyObject_CallObject(PyExc_OSError, args.get()) : nullptr);
    if (error) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.get())), error.get());
  } catch (const files::Refused& e) {
    PyRef type = PyRef::borrow(PyExc_RuntimeError);
    if (e.kind_of_refusal() == files::Refused::What::kEmpty) type = PyRef::borrow(PyExc_EOFError);
    if (e.kind_of_refusal() == files::Refused::What::kPickle) {
      PyRef module(PyImport_ImportModule("pickle"));
      if (module) type = PyRef(PyObject_GetAttrString(module.get(), "UnpicklingError"));
    }
    // Built by Python: nothing may be thrown here.
    PyRef text(decode_message(e.what()));
    if (text && e.kind_of_refusal() == files::Refused::What::kPickle)
      text = PyRef(PyUnicode_FromFormat("Weights only load failed. %U", text.get()));
    if (type && text) PyErr_SetObject(type.get(), text.get());
  } catch (...) {
    set_python_error();
  }
}

SourceArgument::SourceArgument(PyObject* o, std::string name) {
  if (PyUnicode_Check(o)) {
    PyObject* path = nullptr;
    if (!PyUnicode_FSConverter(o, &path)) throw PythonError{};
    PyRef held(path);
    BlockingScope others_go_on;  // a pipe waits for whoever writes to it
    source = files::Source::open(PyBytes_AS_STRING(path));
  } else if (PyLong_Check(o)) {
    int fd = static_cast<int>(PyLong_AsLong(o));
    if (fd == -1 && PyErr_Occurred()) throw PythonError{};
    source = files::Source::descriptor(fd, std::move(name));
  } else {
    if (PyObject_GetBuffer(o, &view_, PyBUF_SIMPLE) < 0) throw PythonError{};
    held_ = true;
    source = files::Source::memory(
        {static_cast<const uint8_t*>(view_.buf), static_cast<size_t>(view_.len)}, std::move(name));
  }
}
SourceArgument::~SourceArgument() {
  if (held_) PyBuffer_Release(&view_);
}

namespace {

// Calls write() of a Python object.
class ObjectSink : public files::Sink {
 public:
  explicit ObjectSink(PyObject* target)
      : write_(checked(PyObject_GetAttrString(target, "write"))),
        // Python's own files copy what they are given; others may keep it.
        lends_(std::string_view(Py_TYPE(target)->tp_name).starts_with("_io.")) {}
  void write(const void* data, size_t n) override {
    if (waiting_.size() + n <= kMost) {
      waiting_.append(static_cast<const char*>(data), n);
      return;
    }
    flush();
    const char* at = static_cast<const char*>(data);
    for (size_t step; n; at += step, n -= step) send(at, step = std::min(n, size_t{1} << 26));
  }
  void flush() {
    if (!waiting_.empty()) send(waiting_.data(), waiting_.size());
    waiting_.clear();
  }

 private:
  static constexpr size_t kMost = 1 << 16;
  void send(const char* data, size_t n) {
    auto size = static_cast<Py_ssize_t>(n);
    PyRef bytes(checked(lends_ ? PyMemoryView_FromMemory(const_cast<char*>(data), size, PyBUF_READ)
                               : PyBytes_FromStringAndSize(data, size)));
    PyRef done(checked(PyObject_CallOneArg(write_.get(), bytes.get())));
    if (!PyLong_Check(done.get())) return;
    Py_ssize_t took = PyLong_AsSsize_t(done.get());
    if (took < 0 && PyErr_Occurred()) throw PythonError{};
    if (took != static_cast<Py_ssize_t>(n))
      throw raise_python(PyExc_OSError, "write() took %zd of %zu bytes", took, n);
  }
  PyRef write_;
  bool lends_;
  std::string waiting_;
};

files::AllowedNames read_allowed(PyObject* allowed) {
  files::AllowedNames out;
  PyObject *key, *value;
  Py_ssize_t at = 0;
  while (PyDict_Next(allowed, &at, &key, &value)) {
    const char* text = PyUnicode_AsUTF8(key);
    if (!text) throw PythonError{};
    out.insert(text);
  }
  return out;
}

files::ModuleMoves read_moves(PyObject* moved) {
  files::ModuleMoves out;
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(moved, &at, &key, &value);) {
    const char *from = PyUnicode_AsUTF8(key), *to = PyUnicode_AsUTF8(value);
    if (!from || !to) throw PythonError{};
    out.emplace(from, to);
  }
  return out;
}

}  // namespace

void write_to(PyObject* target, uint64_t expected,
              const std::function<void(files::Sink&, const std::string& path)>& work) {
  if (PyUnicode_Check(target)) {
    PyObject* converted = nullptr;
    if (!PyUnicode_FSConverter(target, &converted)) throw PythonError{};
    PyRef held(converted);
    std::string path = PyBytes_AS_STRING(converted);
    BlockingScope others_go_on;
    files::AtomicFile file(path, expected);
    work(file, path);
    file.commit();
    return;
  }
  ObjectSink sink(target);
  work(sink, "archive");
  sink.flush();
}

std::function<TensorBase(const TensorBase&, const std::string&)> place_by(PyObject* callable) {
  if (callable == Py_None) return {};
  return [callable](const TensorBase& bytes, const std::string& location) -> TensorBase {
    PyGILState_STATE state = PyGILState_Ensure();
    struct Leave {
      PyGILState_STATE state;
      ~Leave() { PyGILState_Release(state); }
    } leave{state};
    PyRef memory(checked(wrap(bytes)));
    PyRef where(checked(PyUnicode_DecodeUTF8(location.data(),
                                             static_cast<Py_ssize_t>(location.size()), "replace")));
    PyRef out(checked(PyObject_CallFunctionObjArgs(callable, memory.get(), where.get(), nullptr)));
    if (out.get() == Py_None) return {};
    return unwrap_checked(out.get(), "map_location's result");
  };
}

namespace {

PyObject* load(PyObject*, PyObject* args) {
  return guarded_file([&]() -> PyObject* {
    PyObject *source, *place, *allowed, *helpers;
    PyObject* name;
    int mmap, big_endian;
    if (!PyArg_ParseTuple(args, "OOOO!Opp:_load", &source, &name, &place, &PyDict_Type, &allowed,
                          &helpers, &mmap, &big_endian))
      throw PythonError{};
    SourceArgument from(source, file_name(name));
    files::AllowedNames names = read_allowed(allowed);
    files::LoadOptions options{&names, mmap != 0, big_endian != 0, place_by(place)};
    std::shared_ptr<files::Loaded> file;
    {
      BlockingScope others_go_on;
      file = files::load_values(from.source, options);
    }
    return to_python(*file, allowed, helpers);
  });
}

PyObject* unknown(PyObject*, PyObject* args) {
  return guarded_file([&]() -> PyObject* {
    PyObject *source, *name, *allowed;
    if (!PyArg_ParseTuple(args, "OOO!:_unknown_globals", &source, &name, &PyDict_Type, &allowed))
      throw PythonError{};
    SourceArgument from(source, file_name(name));
    std::vector<std::string> found = files::unknown_globals(from.source, read_allowed(allowed));
    PyRef out(checked(PyList_New(0)));
    for (const std::string& word : found) {
      PyRef text(checked(decode_message(word)));
      if (PyList_Append(out.get(), text.get()) < 0) throw PythonError{};
    }
    return out.release();
  });
}

PyObject* save(PyObject*, PyObject* args) {
  return guarded_file([&]() -> PyObject* {
    PyObject *target, *pickle, *list, *moved;
    if (!PyArg_ParseTuple(args, "OSO!O:_save", &target, &pickle, &PyList_Type, &list, &moved))
      throw PythonError{};
    std::vector<TensorBase> storages;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i)
      storages.push_back(unwrap_checked(PyList_GET_ITEM(list, i), "_save(): storage"));
    std::string text(PyBytes_AS_STRING(pickle), static_cast<size_t>(PyBytes_GET_SIZE(pickle)));
    if (moved != Py_None) text = files::rename_modules(text, read_moves(moved));
    write_to(target, files::archive_bytes("0123456789", text, storages),
             [&](files::Sink& sink, const std::string& path) {
               files::write_archive(sink, files::folder_for(path), text, storages);
             });
    Py_RETURN_NONE;
  });
}

PyObject* verify(PyObject*, PyObject* args) {
  return guarded_file([&]() -> PyObject* {
    PyObject* name;
    if (!PyArg_ParseTuple(args, "O:_verify_file", &name)) throw PythonError{};
    SourceArgument from(name, file_name(name));
    files::Verified v;
    {
      BlockingScope others_go_on;
      v = files::verify_file(from.source);
    }
    PyRef unknown(checked(PyList_New(0)));
    for (const std::string& word : v.unknown) {
      PyRef text(checked(decode_message(word)));
      if (PyList_Append(unknown.get(), text.get()) < 0) throw PythonError{};
    }
    return Py_BuildValue("sKKKO", v.format, v.bytes, v.parts, v.checked, unknown.get());
  });
}

// An open archive, for unpickling in Python.
struct OpenArchive {
  OpenArchive(PyObject* source, PyObject* name, bool mmap, bool big_endian)
      : argument(source, file_name(name)), archive(argument.source, mmap, big_endian) {}
  SourceArgument argument;
  files::Archive archive;
};
constexpr const char* kCapsule = "tessera.archive";

OpenArchive& archive_in(PyObject* capsule) {
  auto* p = static_cast<OpenArchive*>(PyCapsule_GetPointer(capsule, kCapsule));
  if (!p) throw PythonError{};
  return *p;
}

PyObject* open_archive(PyObject*, PyObject* args) {
  return guarded_file([&]() -> PyObject* {
    PyObject *source, *name;
    int mmap, big_endian;
    if (!PyArg_ParseTuple(args, "OOpp:_open_archive", &source, &name, &mmap, &big_endian))
      throw PythonError{};
    auto made = std::make_unique<OpenArchive>(source, name, mmap != 0, big_endian != 0);
    PyObject* capsule = checked(PyCapsule_New(made.get(), kCapsule, [](PyObject* o) {
      delete static_cast<OpenArchive*>(PyCapsule_GetPointer(o, kCapsule));
    }));
    made.release();
    return capsule;
  });
}

PyObject* archive_pickle(PyObject*, PyObject* capsule) {
  return guarded_file([&]() -> PyObject* {
    std::vector<uint8_t> bytes = archive_in(capsule).archive.pickle();
    return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(bytes.data()),
                                     static_cast<Py_ssize_t>(bytes.size()));
  });
}

PyObject* archive_storage(PyObject*, PyObject* args) {
  return guarded_file([&]() -> PyObject* {
    PyObject *capsule, *dtype_object;
    const char* key;
    long long numel;
    if (!PyArg_ParseTuple(args, "OsOL:_archive_storage", &capsule, &key, &dtype_object, &numel))
      throw PythonError{};
    DType dtype = DType::kUInt8;
    bool typed = dtype_object != Py_None;
    if (typed && !read_dtype(dtype_object, dtype))
      throw raise_python(PyExc_TypeError, "_archive_storage(): dtype must be torch.dtype");
    if (numel < 0) throw raise_python(PyExc_RuntimeError, "a storage of %lld elements", numel);
    TensorBase out;
    OpenArchive& open = archive_in(capsule);
    {
      BlockingScope others_go_on;
      out = open.archive.storage(key, typed ? static_cast<int64_t>(dtype) : files::kUntyped, numel);
    }
    return wrap(std::move(out));
  });
}

PyObject* place_as_saved(PyObject*, PyObject* args) {
  return guarded_file([&]() -> PyObject* {
    PyObject* bytes;
    const char* location;
    if (!PyArg_ParseTuple(args, "Os:_place_as_saved", &bytes, &location)) throw PythonError{};
    return wrap(
        files::place_as_saved(unwrap_checked(bytes, "_place_as_saved(): storage"), location));
  });
}

PyMethodDef functions[] = {
    {"_load", load, METH_VARARGS, "A file's values; it calls nothing the file names."},
    {"_save", save, METH_VARARGS, "Writes a pickle and its storages as an archive."},
    {"_unknown_globals", unknown, METH_VARARGS, "What a file names that is not allowed."},
    {"_verify_file", verify, METH_VARARGS, "Format, bytes, parts, checksums compared, globals."},
    {"_open_archive", open_archive, METH_VARARGS, "An archive, for unpickling in Python."},
    {"_archive_pickle", archive_pickle, METH_O, "Its data.pkl."},
    {"_archive_storage", archive_storage, METH_VARARGS, "One of its storages, as bytes."},
    {"_place_as_saved", place_as_saved, METH_VARARGS, "Bytes on the device a location names."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_save(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError{};
}

}  // namespace tessera::python
