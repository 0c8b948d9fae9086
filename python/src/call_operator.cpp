// The way of a call from Python into the core.
#include "callable.h"

#include <map>
#include <memory>

#include "default_device.h"
#include "numbers.h"
#include "tessera/call/mismatch.h"

namespace tessera::python {

PyTypeObject* named_tuple_of(const Op& op) {
  static auto& made = *new std::map<const Op*, PyTypeObject*>;
  PyTypeObject*& type = made[&op];
  if (type) return type;
  auto fields = std::make_unique<std::vector<PyStructSequence_Field>>();
  for (const std::string& name : op.result_names) fields->push_back({name.c_str(), nullptr});
  fields->push_back({nullptr, nullptr});
  auto name = std::make_unique<std::string>("torch.return_types." + op.name);
  PyStructSequence_Desc desc = {name->c_str(), nullptr, fields->data(), op.num_outputs};
  type = PyStructSequence_NewType(&desc);
  if (!type) throw PythonError{};
  (void)fields.release();  // the type refers to both
  (void)name.release();
  return type;
}

namespace {

PyObject* wrap_or_none(TensorBase&& t) {
  return t.defined() ? wrap(std::move(t)) : Py_NewRef(Py_None);
}

PyObject* wrap_outputs(Outputs&& outputs, const Op& op) {
  switch (op.result_type) {
    case ResultType::kTensor:
      break;
    case ResultType::kTensors:
      return wrap_tuple(outputs);
    default: {
      // The item, as the schema's type.
      const TensorBase& t = outputs[0];
      Scalar s = item_of(t);
      if (op.result_type == ResultType::kBool) return PyBool_FromLong(!s.is_zero());
      if (op.result_type == ResultType::kInt) return PyLong_FromLongLong(s.to_int());
      if (op.result_type == ResultType::kFloat) return PyFloat_FromDouble(s.to_double());
      return scalar_object(s, t.dtype());
    }
  }
  if (op.num_outputs == 1) [[likely]]
    return wrap(outputs.take());
  if (op.result_names.empty()) return wrap_tuple(outputs);
  PyRef tuple(checked(PyStructSequence_New(named_tuple_of(op))));
  for (int i = 0; i < outputs.size(); ++i)
    PyStructSequence_SET_ITEM(tuple.get(), i, wrap_or_none(std::move(outputs[i])));
  return tuple.release();
}

PyObject* write_outputs(const Op& op, Args args, PyObject* out) {
  if (is_tensor(out)) {
    dispatch_out(op, args, {&unwrap(out), 1});
    return Py_NewRef(out);
  }
  std::vector<TensorBase> outs;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(out); ++i)
    outs.push_back(unwrap(PySequence_Fast_ITEMS(out)[i]));
  dispatch_out(op, args, outs);
  if (op.result_names.empty()) return Py_NewRef(out);
  PyRef tuple(checked(PyStructSequence_New(named_tuple_of(op))));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(out); ++i)
    PyStructSequence_SET_ITEM(tuple.get(), i, Py_NewRef(PySequence_Fast_ITEMS(out)[i]));
  return tuple.release();
}

// An overload that others have in a form may lack it: Tensor.pow has no form with a number first.
bool has_form(uint8_t forms, Form form) {
  if (is_inplace(form) && !(forms & kInplace)) return false;
  return forms & (is_method(form) ? kMethod : kFunction);
}

}  // namespace

PyObject* wrap_tuple(Outputs& outputs) {
  PyRef tuple(checked(PyTuple_New(outputs.size())));
  for (int i = 0; i < outputs.size(); ++i)
    PyTuple_SET_ITEM(tuple.get(), i, wrap_or_none(std::move(outputs[i])));
  return tuple.release();
}

namespace {

PyObject* run(const OpInfo& info, Form form, Args args, Parsed& parsed, PyObject* self) {
  if (is_inplace(form) || parsed.inplace) {
    TensorBase written = dispatch_inplace(*info.op, args);
    return self ? Py_NewRef(self) : wrap(std::move(written));
  }
  if (parsed.out) return write_outputs(*info.op, args, parsed.out);
  return wrap_outputs(dispatch(*info.op, args), *info.op);
}

}  // namespace

PyObject* run_operator(const OpInfo& info, Form form, Parsed& parsed, PyObject* self) {
  Args args = parsed.args(info.args.size());
  try {
    return run(info, form, args, parsed, self);
  } catch (const DeviceMismatch&) {
    // Found by something the operator is made of: what the program called is said instead.
    check_same_device(*info.op, args);
    throw;
  }
}

PyObject* call_operator(const OpSet& set, Form form, PyObject* callable, PyObject* name,
                        const Arguments& call) {
  if (is_method(form) && (call.count < 1 || !is_tensor(call.items[0])))
    throw raise_python(PyExc_TypeError, "descriptor '%U' for 'Tensor' objects doesn't apply to %s",
                       name, call.count < 1 ? "nothing" : Py_TYPE(call.items[0])->tp_name);
  constexpr size_t kMaxOverloads = 12;
  Mismatch whys[kMaxOverloads];
  size_t tried = 0;
  for (const OpInfo& info : set.overloads) {
    if (!has_form(info.op->record->forms, form)) {
      ++tried;
      continue;
    }
    Parsed parsed;
    if (parse(info, form, set.takes_inplace, call, parsed, whys[tried++])) [[likely]] {
      if (parsed.overriders.count) [[unlikely]]
        return call_torch_function(parsed.overriders, callable, call.items, call.count, call.names);
      use_default_device(info, parsed);
      return run_operator(info, form, parsed, call.count > 0 ? call.items[0] : nullptr);
    }
  }
  throw raise_mismatch(set, PyUnicode_AsUTF8(name), form, call, whys);
}

}  // namespace tessera::python
