// From a file's values to Python's objects: node after node in the order of the file, with what
// changed them in between, so that nothing recurses and circles close as they did.
#include <algorithm>
#include <random>
#include <unordered_map>

#include "methods.h"
#include "save.h"
#include "types.h"

namespace tessera::python {

PyObject* make_subclass(PyObject*, PyObject* args, PyObject* kwargs);  // values.cpp

namespace {

using files::Change;
using files::Graph;
using files::Id;
using files::Node;
using files::ValueKind;

class Builder {
 public:
  Builder(const files::Loaded& file, PyObject* allowed, PyObject* helpers)
      : file_(file),
        g_(file.graph),
        allowed_(allowed),
        helpers_(helpers),
        comparisons_left_(8 * file.graph.pickle.size() + (1 << 20)),
        salt_(std::random_device()() | 1ull << 32) {}

  PyObject* build() {
    find_needed();
    made_.resize(g_.nodes.size());
    size_t change = 0;
    for (Id id = 0; id < g_.nodes.size(); ++id) {
      for (; change < g_.changes.size() && g_.changes[change].before <= id; ++change)
        apply(g_.changes[change]);
      if (needed_[id]) made_[id] = PyRef(checked(make(id)));
    }
    for (; change < g_.changes.size(); ++change) apply(g_.changes[change]);
    return made_[g_.root].release();
  }

 private:
  // What the root leads to; the arguments of a tensor's making are not among it.
  void find_needed() {
    needed_.assign(g_.nodes.size(), false);
    std::vector<std::pair<Id, Id>> state_of;
    for (const Change& c : g_.changes)
      if (c.what == Change::What::kState) state_of.emplace_back(c.target, c.begin);
    std::sort(state_of.begin(), state_of.end());
    std::vector<Id> open{g_.root};
    needed_[g_.root] = true;
    auto need = [&](Id id) {
      if (needed_[id]) return;
      needed_[id] = true;
      open.push_back(id);
    };
    while (!open.empty()) {
      Id id = open.back();
      open.pop_back();
      for (Id item : g_.items(id)) need(item);
      auto at = std::lower_bound(state_of.begin(), state_of.end(), std::pair<Id, Id>{id, 0});
      for (; at != state_of.end() && at->first == id; ++at) need(at->second);
    }
  }

  PyObject* get(Id id) const { return made_[id].get(); }
  PyObject* help(const char* name, PyObject* a, PyObject* b = nullptr) {
    PyRef function(checked(PyObject_GetAttrString(helpers_, name)));
    return checked(PyObject_CallFunctionObjArgs(function.get(), a, b, nullptr));
  }
  PyObject* collections(const char* name, PyRef& type) {
    if (!type) {
      PyRef module(checked(PyImport_ImportModule("collections")));
      type = PyRef(checked(PyObject_GetAttrString(module.get(), name)));
    }
    return checked(PyObject_CallNoArgs(type.get()));
  }
  PyObject* text(Id id) {
    std::string_view s = g_.text(id);
    return PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "surrogatepass");
  }
  PyObject* bytes(Id id) {
    std::string_view s = g_.text(id);
    return PyBytes_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size()));
  }
  PyObject* tuple(Id id) {
    const std::vector<Id>& items = g_.items(id);
    PyRef out(checked(PyTuple_New(static_cast<Py_ssize_t>(items.size()))));
    for (size_t i = 0; i < items.size(); ++i)
      PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), Py_NewRef(get(items[i])));
    return out.release();
  }
  PyObject* type_or_none(int64_t type) {
    return type == files::kUntyped ? Py_NewRef(Py_None) : wrap_dtype(static_cast<DType>(type));
  }

  // What the user allowed makes objects of its own choice; only those of kinds that a pickle
  // changes are changed.
  [[noreturn]] void refuse_change(const char* what, PyObject* target) {
    PyRef module(checked(PyImport_ImportModule("pickle")));
    PyRef error(checked(PyObject_GetAttrString(module.get(), "UnpicklingError")));
    throw raise_python(error.get(),
                       "Weights only load failed. The file %s %s, which is not allowed", what,
                       Py_TYPE(target)->tp_name);
  }
  void check_state(PyObject* target) {
    PyObject *name, *allowed;
    for (Py_ssize_t at = 0; PyDict_Next(allowed_, &at, &name, &allowed);)
      if (PyType_Check(allowed) &&
          PyType_IsSubtype(Py_TYPE(target), reinterpret_cast<PyTypeObject*>(allowed)))
        return;
    refuse_change("sets the state of an object of type", target);
  }

  // Note [Keys with equal hashes]
  // Python compares a new key with every key of the same hash, and hashes of numbers are known in
  // advance: a file of n such keys takes n * n comparisons. They are counted for each container, by
  // the hashes that Python itself computes, and a file in which they exceed a multiple of its bytes
  // is refused. Hashes of strings and bytes are salted by Python, and are left out.
  // Returns the counter of the key's hash after counting its comparisons; null for a key that is
  // left out.
  uint64_t* count_comparisons(Id container, Id key) {
    constexpr size_t kMinCountedItems = 64;
    PyObject* object = get(key);
    if (PyUnicode_CheckExact(object) || PyBytes_CheckExact(object)) return nullptr;
    if (g_.items(container).size() < kMinCountedItems) return nullptr;
    Py_hash_t hash = PyObject_Hash(object);
    if (hash == -1) throw PythonError{};
    // Mixed, so that the map's own chains cannot be foreseen.
    uint64_t mixed = (static_cast<uint64_t>(hash) ^ salt_) * 0x9e3779b97f4a7c15ull;
    uint64_t& same = hashes_[container][mixed ^ mixed >> 32 ^ salt_ << 7];
    uint64_t steps;
    if (__builtin_mul_overflow(same, g_.hash_work(key), &steps) || steps > comparisons_left_)
      refuse("holds too many keys with the same hash: comparing them takes time without bound");
    comparisons_left_ -= steps;
    return &same;
  }
  [[noreturn]] void refuse(const char* why) {
    PyRef module(checked(PyImport_ImportModule("pickle")));
    PyRef error(checked(PyObject_GetAttrString(module.get(), "UnpicklingError")));
    throw raise_python(error.get(), "Weights only load failed. The file %s", why);
  }

  void set_items(PyObject* target, Id container, size_t begin, size_t end) {
    if (!PyDict_Check(target)) refuse_change("sets items of an object of type", target);
    const std::vector<Id>& items = g_.items(container);
    for (size_t i = begin; i + 1 < end; i += 2) {
      uint64_t* same = count_comparisons(container, items[i]);
      Py_ssize_t before = PyDict_Size(target);
      int failed = PyDict_CheckExact(target)
                       ? PyDict_SetItem(target, get(items[i]), get(items[i + 1]))
                       : PyObject_SetItem(target, get(items[i]), get(items[i + 1]));
      if (failed) throw PythonError{};
      if (same && PyDict_Size(target) > before) ++*same;
    }
  }
  PyObject* with_items(PyObject* made, Id id) {
    PyRef out(made);
    set_items(made, id, 0, g_[id].length);
    return out.release();
  }
  PyObject* set(Id id, PyObject* made) {
    PyRef out(checked(made));
    for (Id item : g_.items(id)) {
      uint64_t* same = count_comparisons(id, item);
      Py_ssize_t before = PySet_GET_SIZE(out.get());
      if (PySet_Add(out.get(), get(item)) < 0) throw PythonError{};
      if (same && PySet_GET_SIZE(out.get()) > before) ++*same;
    }
    return out.release();
  }

  PyObject* make(Id id) {
    const Node& node = g_[id];
    switch (node.kind) {
      case ValueKind::kNone:
        return Py_NewRef(Py_None);
      case ValueKind::kBool:
        return PyBool_FromLong(node.number != 0);
      case ValueKind::kInt:
        return PyLong_FromLongLong(node.number);
      case ValueKind::kBigInt:
        return help("big_int", PyRef(checked(bytes(id))).get());
      case ValueKind::kFloat:
        return PyFloat_FromDouble(node.real);
      case ValueKind::kComplex:
        return PyComplex_FromDoubles(g_[g_.items(id)[0]].real, g_[g_.items(id)[1]].real);
      case ValueKind::kText:
        return text(id);
      case ValueKind::kBytes:
        return bytes(id);
      case ValueKind::kByteArray:
        return PyByteArray_FromStringAndSize(node.text, node.length);
      case ValueKind::kTuple:
        return tuple(id);
      case ValueKind::kList:
        return PyList_New(0);
      case ValueKind::kSet:
        return set(id, PySet_New(nullptr));
      case ValueKind::kFrozenSet:
        return set(id, PyFrozenSet_New(nullptr));
      case ValueKind::kDict:
        return PyDict_New();
      case ValueKind::kOrderedDict:
        return with_items(collections("OrderedDict", ordered_dict_), id);
      case ValueKind::kCounter:
        return with_items(collections("Counter", counter_), id);
      default:
        return make_torch(id);
    }
  }

  PyObject* make_torch(Id id) {
    const Node& node = g_[id];
    switch (node.kind) {
      case ValueKind::kSize:
        return PyObject_CallOneArg(reinterpret_cast<PyObject*>(size_type),
                                   PyRef(checked(tuple(id))).get());
      case ValueKind::kDevice:
        return PyObject_CallObject(reinterpret_cast<PyObject*>(device_type),
                                   PyRef(checked(tuple(id))).get());
      case ValueKind::kDType:
        return wrap_dtype(static_cast<DType>(node.number));
      case ValueKind::kConstant:
        return help("constant", PyRef(checked(text(id))).get());
      case ValueKind::kStorageType:
        return help("storage_type", PyRef(checked(type_or_none(node.number))).get());
      case ValueKind::kTensorType:
        return help("tensor_type", PyRef(checked(text(id))).get());
      case ValueKind::kFunction: {
        std::string name = files::function_name(static_cast<files::Function>(node.number));
        return help("function", PyRef(checked(PyUnicode_FromString(name.c_str()))).get());
      }
      case ValueKind::kAllowed: {
        PyRef name(checked(text(id)));
        PyObject* found = PyDict_GetItemWithError(allowed_, name.get());
        if (!found) throw raise_python(PyExc_RuntimeError, "not allowed: %S", name.get());
        return Py_NewRef(found);
      }
      case ValueKind::kStorage: {
        PyRef memory(checked(wrap(file_.storages[node.link])));
        PyRef type(checked(type_or_none(g_.storages[node.link].type)));
        return help("storage", memory.get(), type.get());
      }
      case ValueKind::kTensor:
        return wrap(file_.tensors[node.link]);
      case ValueKind::kParameter: {
        PyRef args(checked(Py_BuildValue("OOO", parameter_type, get(g_.items(id)[0]),
                                         node.number ? Py_True : Py_False)));
        return make_subclass(nullptr, args.get(), nullptr);
      }
      default:
        return object(id);
    }
  }

  // The caller has allowed it: called here, and nowhere else.
  PyObject* object(Id id) {
    const std::vector<Id>& items = g_.items(id);
    PyObject *callee = get(items[0]), *args = get(items[1]);
    return g_[id].number ? help("new_object", callee, args) : PyObject_CallObject(callee, args);
  }

  void apply(const Change& c) {
    PyObject* target = get(c.target);
    if (!target) return;  // nothing leads to it
    if (c.what == Change::What::kState) {
      if (g_[c.target].kind == ValueKind::kObject) check_state(target);
      PyRef done(help("set_state", target, get(c.begin)));
      return;
    }
    if (c.what == Change::What::kSetItems) return set_items(target, c.target, c.begin, c.end);
    const std::vector<Id>& items = g_.items(c.target);
    if (!PyList_Check(target)) refuse_change("appends to an object of type", target);
    for (size_t i = c.begin; i < c.end; ++i)
      if (PyList_Append(target, get(items[i])) < 0) throw PythonError{};
  }

  const files::Loaded& file_;
  const Graph& g_;
  PyObject* allowed_;
  PyObject* helpers_;
  PyRef ordered_dict_, counter_;
  // Keys with a hash, by the hash, for each container with many keys.
  std::unordered_map<Id, std::unordered_map<uint64_t, uint64_t>> hashes_;
  uint64_t comparisons_left_;
  uint64_t salt_;
  std::vector<bool> needed_;
  std::vector<PyRef> made_;
};

}  // namespace

PyObject* to_python(const files::Loaded& file, PyObject* allowed, PyObject* helpers) {
  return Builder(file, allowed, helpers).build();
}

}  // namespace tessera::python
