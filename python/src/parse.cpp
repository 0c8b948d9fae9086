#include "parse.h"

#include <cstring>

#include "generator.h"
#include "numbers.h"
#include "tessera/driver/current.h"
#include "types.h"

namespace tessera::python {

namespace {

using Type = ArgSpec::Type;

// PyTorch's second names of some keywords, NumPy's.
constexpr const char* kAliases[][2] = {
    {"axis", "dim"}, {"keepdims", "keepdim"}, {"x", "input"}, {"x2", "other"}};

bool equal(PyObject* a, PyObject* b) { return a == b || PyUnicode_Compare(a, b) == 0; }

bool read_tensor(PyObject* o, Value& value, Parsed& out) {
  if (is_plain_tensor(o)) {
    value.tag = Value::Tag::kTensor;
    value.tensor = &unwrap(o);
    return true;
  }
  if (PyType_IsSubtype(Py_TYPE(o), tensor_type)) {
    note_overrider(o, out.overriders);
    value = Value(unwrap(o));
    return true;
  }
  // Anything else passes only if it handles the call itself.
  return note_overrider(o, out.overriders);
}

bool read_ints(const ArgInfo& arg, PyObject* o, Value& value, Parsed& out, Mismatch& why) {
  if (PyTuple_Check(o) || PyList_Check(o)) {
    Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    PyObject** items = PySequence_Fast_ITEMS(o);
    int64_t* to = out.take_ints(static_cast<size_t>(n));
    for (Py_ssize_t i = 0; i < n; ++i) {
      if (read_int(items[i], to[i])) continue;
      why.element = items[i];
      why.element_at = i;
      return false;
    }
    value = Value(std::span<const int64_t>(to, static_cast<size_t>(n)));
    return true;
  }
  if (!arg.one_int) return false;
  int64_t one;
  if (!read_int(o, one)) return false;
  int64_t* to = out.take_ints(1);
  *to = one;
  value = Value(std::span<const int64_t>(to, 1));
  return true;
}

bool read_tensors(std::span<PyObject* const> items, bool nones, Value& value, Parsed& out,
                  Mismatch& why) {
  auto& list = out.new_tensor_list();
  list.reserve(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    if (nones && items[i] == Py_None) {
      list.emplace_back();
      continue;
    }
    Value one;
    if (!read_tensor(items[i], one, out)) {
      why.element = items[i];
      why.element_at = static_cast<Py_ssize_t>(i);
      return false;
    }
    if (one.is_tensor()) list.push_back(*one.tensor);
  }
  value = Value(std::span<const TensorBase>(list));
  return true;
}

bool read_tensors(PyObject* o, bool nones, Value& value, Parsed& out, Mismatch& why) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
  std::span<PyObject* const> items(PySequence_Fast_ITEMS(o),
                                   static_cast<size_t>(PySequence_Fast_GET_SIZE(o)));
  return read_tensors(items, nones, value, out, why);
}

bool read_floats(PyObject* o, Value& value, Parsed& out, Mismatch& why) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
  auto& list = out.new_floats();
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
    PyObject* item = PySequence_Fast_ITEMS(o)[i];
    Scalar s;
    if (!read_number(item, s) || s.is_complex()) {
      why.element = item;
      why.element_at = i;
      return false;
    }
    list.push_back(s.to_double());
  }
  value = Value(std::span<const double>(list));
  return true;
}

// torch.channels_last, torch.strided: objects of python/tessera/_layout.py that carry their number.
bool read_named(PyObject* o, const char* type, Value& value) {
  if (std::strcmp(Py_TYPE(o)->tp_name, type) != 0) return false;
  PyRef code(checked(PyObject_GetAttrString(o, "_code")));
  value = Value(static_cast<int64_t>(PyLong_AsLongLong(code.get())));
  return true;
}

// `out=`: a tensor, or as many as there are results.
bool read_out(const OpInfo& info, PyObject* o, Parsed& out) {
  Value ignored;
  if (info.op->num_outputs == 1 && info.op->result_type == ResultType::kTensor)
    return read_tensor(o, ignored, out);
  if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
  bool any = info.op->result_type == ResultType::kTensors;
  if (!any && PySequence_Fast_GET_SIZE(o) != info.op->num_outputs) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
    if (!read_tensor(PySequence_Fast_ITEMS(o)[i], ignored, out)) return false;
  return true;
}

// Is the list given spread out from argument `i` on?
bool spreads(const OpInfo& info, const Arguments& call, Py_ssize_t i) {
  if (call.count > info.num_positional) return true;
  PyObject* o = call.items[i];
  if (info.args[static_cast<size_t>(i)].type == Type::kTensors)
    return !PyTuple_Check(o) && !PyList_Check(o);
  return PyLong_Check(o);
}

// The argument a keyword names, -1 if none.
int find_keyword(const OpInfo& info, Form form, PyObject* name) {
  int n = static_cast<int>(info.args.size());
  int first = is_method(form) ? 1 : 0;
  for (int i = first; i < n; ++i)
    if (info.args[i].name == name) return i;
  for (int i = first; i < n; ++i)
    if (equal(info.args[i].name, name)) return i;
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) throw PythonError{};
  for (auto& alias : kAliases)
    if (!std::strcmp(alias[0], text)) text = alias[1];
  // PyTorch's functions call `input` what its methods call `self`.
  if (!first && !std::strcmp(text, "input")) text = "self";
  for (int i = first; i < n; ++i)
    if (info.args[i].spec->name == text) return i;
  return -1;
}

bool fail(Mismatch& why, Mismatch::What what, int arg, int position, PyObject* object) {
  why.what = what;
  why.arg = arg;
  why.position = position;
  why.object = object;
  return false;
}

}  // namespace

bool read_memory_format(PyObject* o, Value& value) { return read_named(o, "memory_format", value); }

int64_t* Parsed::take_ints(size_t n) {
  if (num_ints_ + n > kInts) return more_ints_.emplace_back(n).data();
  int64_t* at = ints_ + num_ints_;
  num_ints_ += n;
  return at;
}

bool convert(const ArgInfo& arg, PyObject* o, Value& value, Parsed& out, Mismatch& why) {
  if (o == Py_None) {
    value = Value();
    return arg.optional;
  }
  switch (arg.type) {
    case Type::kTensor:
      return read_tensor(o, value, out);
    case Type::kTensorOrScalar:
      if (read_tensor(o, value, out)) return true;
      [[fallthrough]];
    case Type::kNumber:
    case Type::kScalar: {
      Scalar s;
      if (!read_number(o, s)) return false;
      value = Value(s);
      return true;
    }
    case Type::kInt: {
      int64_t i;
      if (!read_int(o, i)) return false;
      value = Value(i);
      return true;
    }
    case Type::kFloat: {
      Scalar s;
      if (!read_number(o, s) || s.is_complex()) return false;
      value = Value(s.to_double());
      return true;
    }
    case Type::kBool: {
      bool b;
      if (!read_bool(o, b)) return false;
      value = Value(b);
      return true;
    }
    case Type::kInts:
      return read_ints(arg, o, value, out, why);
    case Type::kTensors:
      return read_tensors(o, false, value, out, why);
    case Type::kOptionalTensors:
      return read_tensors(o, true, value, out, why);
    case Type::kFloats:
      return read_floats(o, value, out, why);
    case Type::kMemoryFormat:
      return read_memory_format(o, value);
    case Type::kLayout:
      return read_named(o, "layout", value);
    case Type::kGenerator: {
      Mt19937Generator* g;
      if (!read_generator(o, g)) return false;
      value = Value(g);
      return true;
    }
    case Type::kDType: {
      DType t;
      if (!read_dtype(o, t)) return false;
      value = Value(t);
      return true;
    }
    case Type::kDevice: {
      Device d;
      if (!read_device(o, d)) return false;
      value = Value(resolve_device(d));
      return true;
    }
    case Type::kString: {
      Py_ssize_t size;
      if (!PyUnicode_Check(o)) return false;
      const char* text = PyUnicode_AsUTF8AndSize(o, &size);
      if (!text) throw PythonError{};
      value = Value(std::string_view(text, static_cast<size_t>(size)));
      return true;
    }
  }
  return false;
}

bool parse(const OpInfo& info, Form form, bool takes_inplace, const Arguments& call, Parsed& out,
           Mismatch& why) {
  using What = Mismatch::What;
  Value* values = out.values();
  std::memcpy(static_cast<void*>(values), info.defaults.data(),
              info.defaults.size() * sizeof(Value));
  uint64_t given = 0;
  for (Py_ssize_t i = 0; i < call.count; ++i) {
    int at = static_cast<int>(i);
    if (at == info.varargs && spreads(info, call, i)) {
      // view(2, 3): the rest of the positional arguments is the list.
      Py_ssize_t n = call.count - i;
      if (info.args[at].type == Type::kTensors) {
        if (!read_tensors({call.items + i, static_cast<size_t>(n)}, false, values[at], out, why))
          return fail(why, What::kType, at, -1, why.element);
        given |= uint64_t{1} << at;
        break;
      }
      int64_t* to = out.take_ints(static_cast<size_t>(n));
      for (Py_ssize_t k = 0; k < n; ++k)
        if (!read_int(call.items[i + k], to[k]))
          return fail(why, What::kType, at, at + static_cast<int>(k), call.items[i + k]);
      values[at] = Value(std::span<const int64_t>(to, static_cast<size_t>(n)));
      given |= uint64_t{1} << at;
      break;
    }
    if (takes_inplace && at == info.num_positional && read_bool(call.items[i], out.inplace))
      continue;
    if (at >= info.num_positional) {
      why.given = call.count;
      return fail(why, What::kTooMany, at, at, nullptr);
    }
    if (!convert(info.args[at], call.items[i], values[at], out, why))
      return fail(why, What::kType, at, at, call.items[i]);
    given |= uint64_t{1} << at;
  }
  Py_ssize_t keywords = call.names ? PyTuple_GET_SIZE(call.names) : 0;
  for (Py_ssize_t k = 0; k < keywords; ++k) {
    PyObject* name = PyTuple_GET_ITEM(call.names, k);
    PyObject* o = call.items[call.count + k];
    int at = find_keyword(info, form, name);
    if (at < 0) {
      if (takes_inplace && PyUnicode_CompareWithASCIIString(name, "inplace") == 0) {
        if (!read_bool(o, out.inplace)) return fail(why, What::kType, -1, -1, o);
        continue;
      }
      bool takes_out = (info.op->record->forms & kOut) && !is_inplace(form);
      if (!takes_out || PyUnicode_CompareWithASCIIString(name, "out") != 0)
        return fail(why, What::kUnexpected, -1, -1, name);
      if (o == Py_None) continue;
      if (!read_out(info, o, out)) return fail(why, What::kType, -1, -1, o);
      out.out = o;
      continue;
    }
    if (given >> at & 1) return fail(why, What::kTwice, at, -1, name);
    if (!convert(info.args[at], o, values[at], out, why)) return fail(why, What::kType, at, -1, o);
    given |= uint64_t{1} << at;
  }
  if ((given & info.required) == info.required) [[likely]]
    return true;
  if (info.varargs >= 0 && !(given >> info.varargs & 1) &&
      !(~given & info.required & ~(uint64_t{1} << info.varargs))) {
    // permute() of a 0-d tensor: no number is an empty list.
    values[info.varargs] = Value(std::span<const int64_t>());
    return true;
  }
  why.given = static_cast<Py_ssize_t>(given);
  return fail(why, What::kMissing, -1, -1, nullptr);
}

}  // namespace tessera::python
