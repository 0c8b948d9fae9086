#include "slots.h"

#include <cstring>

#include "methods.h"
#include "numbers.h"
#include "protocol_words.h"

namespace tessera::python {

namespace {

struct Entry {
  const OpSet* set = nullptr;
  const OpInfo* info = nullptr;
  Form form = Form::kMethod;
};
Entry g_entries[kNumWords];

// What __torch_function__ is told was called.
PyObject* callable_of(const Entry& e) {
  if (e.form == Form::kFunction) return find_function(e.set->path);
  if (!is_inplace(e.form)) return find_method(e.set->name);
  PyRef name(checked(PyUnicode_FromFormat("%U_", e.set->name)));
  return find_method(name.get());
}

PyObject* not_there(int word, PyObject* a, PyObject* b) {
  Scalar s;
  auto is_operand = [&](PyObject* o) { return is_tensor(o) || read_number(o, s); };
  if (!is_operand(a) || !is_operand(b)) Py_RETURN_NOTIMPLEMENTED;
  throw raise_python(PyExc_NotImplementedError, "Tensor.%s is not implemented in Tessera yet",
                     kWords[word]);
}

// self OP other, or NotImplemented if `other` is nothing the operator takes.
PyObject* apply(const Entry& e, PyObject* self, PyObject* other) {
  Parsed parsed;
  Value* values = parsed.values();
  std::memcpy(static_cast<void*>(values), e.info->defaults.data(),
              e.info->defaults.size() * sizeof(Value));
  Mismatch why;
  if (!convert(e.info->args[0], self, values[0], parsed, why) ||
      (other && !convert(e.info->args[1], other, values[1], parsed, why)))
    Py_RETURN_NOTIMPLEMENTED;
  if (parsed.overriders.count) [[unlikely]] {
    PyObject* args[] = {self, other};
    return call_torch_function(parsed.overriders, callable_of(e), args, other ? 2 : 1, nullptr);
  }
  return run_operator(*e.info, e.form, parsed, self);
}

// a OP b for a tensor b and an `a` that the reflected record does not take.
PyObject* reflect_foreign(int word, PyObject* a, PyObject* b) {
  Overriders overriders;
  if (!is_tensor(a) && note_overrider(a, overriders)) {
    auto* type = reinterpret_cast<PyObject*>(tensor_type);
    PyRef function(checked(PyObject_GetAttrString(type, kWords[word + 1])));
    PyObject* args[] = {b, a};
    return call_torch_function(overriders, function.get(), args, 2, nullptr);
  }
  if (word != kTrueDiv) Py_RETURN_NOTIMPLEMENTED;
  // PyTorch defines it so, and a / b works for arrays: b.reciprocal() * a.
  PyRef inverse(wrap(call_op("reciprocal", {Value(unwrap(b))})));
  PyObject* product = PyNumber_Multiply(inverse.get(), a);
  if (product || !PyErr_ExceptionMatches(PyExc_TypeError)) return product;
  PyErr_Clear();
  Py_RETURN_NOTIMPLEMENTED;
}

PyObject* binary(int word, PyObject* a, PyObject* b) {
  try {
    const Entry& e = g_entries[word];
    if (is_tensor(a)) {
      if (e.set) [[likely]]
        return apply(e, a, b);
      return not_there(word, a, b);
    }
    const Entry& reflected = g_entries[word + 1];
    if (!reflected.set) {
      if (!e.set) return not_there(word, a, b);
      return reflect_foreign(word, a, b);  // 2 @ x
    }
    // A record of its own (2 ** x), or one whose arguments change places (x + 2).
    bool number_first = reflected.info->args[0].type == ArgSpec::Type::kNumber;
    PyObject* result = number_first ? apply(reflected, a, b) : apply(reflected, b, a);
    if (result != Py_NotImplemented) [[likely]]
      return result;
    Py_DECREF(result);
    return reflect_foreign(word, a, b);
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

PyObject* inplace(int word, PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    const Entry& e = g_entries[word + 2];
    if (e.set) return apply(e, a, b);
    Py_RETURN_NOTIMPLEMENTED;  // a = a OP b
  });
}

PyObject* unary(int word, PyObject* a) {
  return guarded([&]() -> PyObject* {
    const Entry& e = g_entries[word];
    if (!e.set) return not_there(word, a, a);
    return apply(e, a, nullptr);
  });
}

#define TS_BINARY(name, word)                                                  \
  PyObject* nb_##name(PyObject* a, PyObject* b) { return binary(word, a, b); } \
  PyObject* nb_inplace_##name(PyObject* a, PyObject* b) { return inplace(word, a, b); }
TS_BINARY(add, kAdd)
TS_BINARY(subtract, kSub)
TS_BINARY(multiply, kMul)
TS_BINARY(true_divide, kTrueDiv)
TS_BINARY(floor_divide, kFloorDiv)
TS_BINARY(remainder, kMod)
TS_BINARY(matrix_multiply, kMatMul)
TS_BINARY(and, kAnd)
TS_BINARY(or, kOr)
TS_BINARY(xor, kXor)
TS_BINARY(lshift, kLShift)
TS_BINARY(rshift, kRShift)
#undef TS_BINARY
PyObject* nb_power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return binary(kPow, a, b);
}
PyObject* nb_inplace_power(PyObject* a, PyObject* b, PyObject*) { return inplace(kPow, a, b); }
PyObject* nb_negative(PyObject* a) { return unary(kNeg, a); }
PyObject* nb_absolute(PyObject* a) { return unary(kAbs, a); }
PyObject* nb_invert(PyObject* a) { return unary(kInvert, a); }
PyObject* nb_positive(PyObject* a) { return unary(kPos, a); }

// Note [Tensor and array]
// Tensor == array compares elements, as in PyTorch. The other comparisons return NotImplemented, as
// there: tensor != array is True, tensor < array raises TypeError. For arithmetic operators
// tensor OP array is left to the array, and array OP tensor is not defined, except array / tensor.
PyObject* compare_with_array(const Entry& e, PyObject* tensor, PyObject* array) {
  PyRef wide;  // dtypes that Tessera lacks: small unsigned integers fit into int64
  Py_buffer view;
  if (PyObject_GetBuffer(array, &view, PyBUF_STRIDED_RO | PyBUF_FORMAT) < 0) {
    PyErr_Clear();  // such as arrays of dates
    Py_RETURN_NOTIMPLEMENTED;
  }
  const char* format = view.format ? view.format : "B";
  const char kind = *format && std::strchr("@=<>!", *format) ? format[1] : *format;
  const bool is_comparable = kind && std::strchr("?bBhHiIlLqQefdZ", kind);
  const bool is_unsigned = *format == kind && (kind == 'H' || kind == 'I');
  PyBuffer_Release(&view);
  if (!is_comparable) Py_RETURN_NOTIMPLEMENTED;  // such as objects and strings
  if (is_unsigned) wide = PyRef(checked(PyObject_CallMethod(array, "astype", "s", "int64")));
  PyRef other(wrap(tensor_from_buffer(is_unsigned ? wide.get() : array)));
  return apply(e, tensor, other.get());
}

PyObject* compare(PyObject* a, PyObject* b, int what) {
  constexpr int words[] = {kLt, kLe, kEq, kNe, kGt, kGe};  // in the order of Py_LT, Py_LE, ...
  return guarded([&]() -> PyObject* {
    const Entry& e = g_entries[words[what]];
    if (!e.set) return not_there(words[what], a, b);
    PyObject* result = apply(e, a, b);
    if (result != Py_NotImplemented || what != Py_EQ || !is_array(b)) [[likely]]
      return result;
    Py_DECREF(result);
    return compare_with_array(e, a, b);
  });
}

// For float(x), int(x): matplotlib and others catch ValueError.
Scalar value_of(PyObject* o) {
  if (unwrap(o).numel() != 1)
    throw raise_python(PyExc_ValueError,
                       "only one element tensors can be converted to Python scalars");
  return item_of(unwrap(o));
}
Scalar real_value_of(PyObject* o, const char* type) {
  Scalar s = value_of(o);
  if (s.is_complex() && s.im != 0)
    throw raise_python(PyExc_RuntimeError, "value cannot be converted to type %s without overflow",
                       type);
  return s;
}

int nb_bool(PyObject* o) {
  try {
    const TensorBase& t = unwrap(o);
    if (t.numel() == 0)
      throw raise_python(PyExc_RuntimeError, "Boolean value of Tensor with no values is ambiguous");
    if (t.numel() > 1)
      throw raise_python(PyExc_RuntimeError,
                         "Boolean value of Tensor with more than one value is ambiguous");
    Scalar s = value_of(o);
    return !s.is_zero();
  } catch (...) {
    set_python_error();
    return -1;
  }
}
PyObject* nb_int(PyObject* o) {
  return guarded([&]() -> PyObject* {
    Scalar s = real_value_of(o, "int64_t");
    return s.is_double() ? PyLong_FromDouble(s.d) : PyLong_FromLongLong(s.i);
  });
}
PyObject* nb_float(PyObject* o) {
  return guarded([&] { return PyFloat_FromDouble(real_value_of(o, "double").to_double()); });
}
PyObject* nb_index(PyObject* o) {
  return guarded([&]() -> PyObject* {
    const TensorBase& t = unwrap(o);
    if (t.numel() != 1 || !is_integral(t.dtype(), true))
      throw raise_python(PyExc_TypeError,
                         "only integer tensors of a single element can be converted to an index");
    return PyLong_FromLongLong(value_of(o).to_int());
  });
}

Py_ssize_t length(PyObject* o) {
  const TensorBase& t = unwrap(o);
  if (t.dim() == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
  }
  return static_cast<Py_ssize_t>(t.sizes()[0]);
}
PyObject* item_at(PyObject* o, Py_ssize_t i) {
  PyRef index(PyLong_FromSsize_t(i));
  if (!index) return nullptr;
  return tensor_getitem(o, index.get());
}
PyObject* iterate(PyObject* o) {
  if (unwrap(o).dim() == 0) {
    PyErr_SetString(PyExc_TypeError, "iteration over a 0-d tensor");
    return nullptr;
  }
  return PySeqIter_New(o);
}

}  // namespace

void add_protocol_slots(std::vector<PyType_Slot>& slots) {
#define TS_SLOT(slot, function) slots.push_back({Py_##slot, reinterpret_cast<void*>(function)})
#define TS_NUMBER(name) TS_SLOT(nb_##name, nb_##name)
#define TS_PAIR(name) TS_NUMBER(name), TS_NUMBER(inplace_##name)
  TS_PAIR(add), TS_PAIR(subtract), TS_PAIR(multiply), TS_PAIR(true_divide), TS_PAIR(floor_divide);
  TS_PAIR(remainder), TS_PAIR(matrix_multiply), TS_PAIR(and), TS_PAIR(or), TS_PAIR(xor);
  TS_PAIR(lshift), TS_PAIR(rshift), TS_PAIR(power);
  TS_NUMBER(negative), TS_NUMBER(absolute), TS_NUMBER(invert), TS_NUMBER(positive);
  TS_NUMBER(bool), TS_NUMBER(int), TS_NUMBER(float), TS_NUMBER(index);
  TS_SLOT(tp_richcompare, compare);
  TS_SLOT(tp_iter, iterate);
  TS_SLOT(tp_new, tensor_new);
  TS_SLOT(sq_length, length);
  TS_SLOT(sq_item, item_at);
  TS_SLOT(sq_contains, tensor_contains);
  TS_SLOT(mp_length, length);
  TS_SLOT(mp_subscript, tensor_getitem);
  TS_SLOT(mp_ass_subscript, tensor_setitem);
#undef TS_PAIR
#undef TS_NUMBER
#undef TS_SLOT
}

void load_protocol() {
  for (const OpSet* set : op_sets()) {
    for (const OpInfo& info : set->overloads) {
      std::string_view words = info.op->record->operators;
      while (!words.empty()) {
        size_t end = words.find(' ');
        std::string_view word = words.substr(0, end);
        words = end == std::string_view::npos ? std::string_view() : words.substr(end + 1);
        if (word.empty()) continue;
        int at = find_word(word);
        TS_ASSERT(at >= 0, "record of ", info.op->name, ": unknown operator ", word);
        bool writes = is_inplace_word(at);
        bool method = info.op->record->forms & kMethod;
        if (!g_entries[at].set)
          g_entries[at] = {set, &info,
                           writes   ? Form::kInplaceMethod
                           : method ? Form::kMethod
                                    : Form::kFunction};
      }
    }
  }
}

}  // namespace tessera::python
