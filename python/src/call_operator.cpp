// The way of a call from Python into the core.
#include "callable.h"

namespace tessera::python {

PyObject* wrap_outputs(Outputs&& outputs, int declared) {
  int n = outputs.size();
  if (n == 1 && declared == 1) [[likely]]
    return wrap(outputs.take());
  if (n == 0) Py_RETURN_NONE;
  PyRef tuple(checked(PyTuple_New(n)));
  for (int i = 0; i < n; ++i) PyTuple_SET_ITEM(tuple.get(), i, wrap(std::move(outputs[i])));
  return tuple.release();
}

PyObject* run_operator(const OpInfo& info, Form form, Parsed& parsed, PyObject* self) {
  Args args = parsed.args(info.args.size());
  if (is_inplace(form)) {
    TensorBase written = dispatch_inplace(*info.op, args);
    return self ? Py_NewRef(self) : wrap(std::move(written));
  }
  if (parsed.out) {
    dispatch_out(*info.op, args, unwrap(parsed.out));
    return Py_NewRef(parsed.out);
  }
  return wrap_outputs(dispatch(*info.op, args), info.op->num_outputs);
}

PyObject* call_operator(const OpSet& set, Form form, PyObject* callable, PyObject* name,
                        const Arguments& call) {
  if (is_method(form) && (call.count < 1 || !is_tensor(call.items[0])))
    throw raise_python(PyExc_TypeError, "descriptor '%U' for 'Tensor' objects doesn't apply to %s",
                       name, call.count < 1 ? "nothing" : Py_TYPE(call.items[0])->tp_name);
  constexpr size_t kMaxOverloads = 8;
  Mismatch whys[kMaxOverloads];
  size_t tried = 0;
  for (const OpInfo& info : set.overloads) {
    if (is_inplace(form) && !(info.op->record->forms & kInplace)) {
      ++tried;
      continue;
    }
    Parsed parsed;
    if (parse(info, form, call, parsed, whys[tried++])) [[likely]] {
      if (parsed.overriders.count) [[unlikely]]
        return call_torch_function(parsed.overriders, callable, call.items, call.count, call.names);
      return run_operator(info, form, parsed, call.count > 0 ? call.items[0] : nullptr);
    }
  }
  throw raise_mismatch(set, PyUnicode_AsUTF8(name), form, call, whys);
}

}  // namespace tessera::python
