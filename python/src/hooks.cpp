// Hooks of tensors and nodes, saved_tensors_hooks, anomaly mode, and graphs that are alive.
#include "tessera/autograd/hooks.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "methods.h"
#include "node_object.h"
#include "scaffolding.h"
#include "shared_object.h"
#include "tessera/call/batch_writes.h"
#include "tessera/tensor/batch_scope.h"

namespace tessera::python {

namespace nb = nanobind;
using autograd::Grads;

namespace {

PyObject* call_one(PyObject* f, PyObject* argument) {
  return checked(PyObject_CallOneArg(f, argument));
}

std::string name_of(PyObject* hook) {
  PyRef name(PyObject_GetAttrString(hook, "__name__"));
  const char* text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  PyErr_Clear();
  return text ? text : "<unknown>";
}

// Raises if the hook `name` cannot replace the gradient `given` by `result`, which is not None.
void check_replacement(const std::string& name, const TensorBase& given, PyObject* result) {
  TS_CHECK(given.defined(), "can't replace a None gradient with a non-None value");
  if (!is_tensor(result))
    throw raise_python(PyExc_TypeError, "expected Variable, but hook returned '%s'",
                       Py_TYPE(result)->tp_name);
  autograd::check_hook_result(given, unwrap(result), name);
}

// Returns the gradient that a hook returned in the place of `given`; undefined for None.
TensorBase replacement(PyObject* hook, const TensorBase& given, PyObject* result) {
  if (result == Py_None) return TensorBase();
  check_replacement(name_of(hook), given, result);
  return unwrap(result);
}

PyObject* tuple_of(const Grads& grads) {
  PyRef all(checked(PyTuple_New(static_cast<Py_ssize_t>(grads.size()))));
  for (size_t i = 0; i < grads.size(); ++i)
    PyTuple_SET_ITEM(all.get(), static_cast<Py_ssize_t>(i), wrap(grads[i]));
  return all.release();
}

void replace_all(PyObject* hook, Grads& grads, PyObject* result) {
  if (result == Py_None) return;
  if (!PyTuple_Check(result))
    throw raise_python(PyExc_TypeError, "expected tuple, but hook returned '%s'",
                       Py_TYPE(result)->tp_name);
  Py_ssize_t n = PyTuple_GET_SIZE(result);
  TS_CHECK(static_cast<size_t>(n) == grads.size(), "hook '", name_of(hook),
           "' has returned an incorrect number of values (got ", static_cast<int64_t>(n),
           ", but expected ", static_cast<int64_t>(grads.size()), ")");
  for (Py_ssize_t i = 0; i < n; ++i) {
    TensorBase& grad = grads[static_cast<size_t>(i)];
    grad = replacement(hook, grad, PyTuple_GET_ITEM(result, i));
  }
}

// What takes a hook off again.
struct HookHandle {
  std::weak_ptr<autograd::Hooks> hooks;
  uint64_t id;
};
PyObject* handle_of(const std::shared_ptr<autograd::Hooks>& hooks, uint64_t id) {
  return nb::cast(HookHandle{hooks, id}).release().ptr();
}

PyObject* register_hook(PyObject* self, const Arguments& args) {
  PyObject* f;
  bind_arguments("register_hook", {"hook"}, args, &f);
  if (!f) throw raise_python(PyExc_TypeError, "register_hook() needs a function");
  uint32_t output;
  auto hooks = autograd::hooks_of(unwrap(self), &output);
  uint64_t id = autograd::new_hook_id();
  hooks->tensors.push_back({id, output, [hook = share_object(f)](const TensorBase& g) {
                              PyRef grad(wrap(g));
                              PyRef out(call_one(hook.get(), grad.get()));
                              return replacement(hook.get(), g, out.get());
                            }});
  return handle_of(hooks, id);
}

// Leaves only: called with the tensor once its gradient was added.
PyObject* register_post_accumulate(PyObject* self, const Arguments& args) {
  PyObject* f;
  bind_arguments("register_post_accumulate_grad_hook", {"hook"}, args, &f);
  if (!f) throw raise_python(PyExc_TypeError, "a function is needed");
  const TensorBase& t = unwrap(self);
  TS_CHECK(autograd::is_leaf(t),
           "post accumulate grad hooks cannot be registered on non-leaf tensors");
  uint32_t output;
  auto hooks = autograd::hooks_of(t, &output);
  uint64_t id = autograd::new_hook_id();
  // The tensor owns the hooks, so it outlives them.
  hooks->after.push_back({id, [hook = share_object(f), leaf = t.impl()](Grads&, const Grads&) {
                            PyRef tensor(wrap(TensorBase(Ref<TensorImpl>::share(leaf))));
                            PyRef out(call_one(hook.get(), tensor.get()));
                            if (out.get() != Py_None)
                              throw raise_python(PyExc_TypeError,
                                                 "expected Variable, but hook returned '%s'",
                                                 Py_TYPE(out.get())->tp_name);
                          }});
  return handle_of(hooks, id);
}

PyObject* retain_grad(PyObject* self, const Arguments& args) {
  bind_arguments("retain_grad", {}, args, nullptr);
  autograd::retain_grad(unwrap(self));
  Py_RETURN_NONE;
}

PyObject* node_hook(nb::handle node, nb::handle f, bool before) {
  Ref<autograd::Node> n = unwrap_node(node.ptr());
  if (!n->hooks) n->hooks = std::make_shared<autograd::Hooks>();
  uint64_t id = autograd::new_hook_id();
  auto hook = share_object(f.ptr());
  if (before) {
    n->hooks->before.push_back({id, [hook](Grads& outputs) {
                                  PyRef given(tuple_of(outputs));
                                  PyRef out(call_one(hook.get(), given.get()));
                                  replace_all(hook.get(), outputs, out.get());
                                }});
  } else {
    n->hooks->after.push_back({id, [hook](Grads& inputs, const Grads& outputs) {
                                 PyRef in(tuple_of(inputs)), given(tuple_of(outputs));
                                 PyRef out(checked(PyObject_CallFunctionObjArgs(
                                     hook.get(), in.get(), given.get(), nullptr)));
                                 replace_all(hook.get(), inputs, out.get());
                               }});
  }
  return handle_of(n->hooks, id);
}

void push_saved(nb::handle pack, nb::handle unpack) {
  auto hooks = std::make_shared<autograd::SavedHooks>();
  hooks->pack = [f = share_object(pack.ptr())](const TensorBase& t) -> std::shared_ptr<void> {
    PyRef tensor(wrap(t));
    PyRef packed(call_one(f.get(), tensor.get()));
    return share_object(packed.get());
  };
  hooks->unpack = [f = share_object(unpack.ptr())](const std::shared_ptr<void>& packed) {
    PyRef out(call_one(f.get(), static_cast<PyObject*>(packed.get())));
    if (!is_tensor(out.get()))
      throw raise_python(
          PyExc_TypeError,
          "Output of saved tensor unpack_hook expected to be a Tensor but got result "
          "of type %s",
          Py_TYPE(out.get())->tp_name);
    return unwrap(out.get());
  };
  autograd::push_saved_hooks(std::move(hooks));
}

std::string python_stack() {
  PyGILState_STATE state = PyGILState_Ensure();
  std::string text;
  {
    PyRef module(PyImport_ImportModule("traceback"));
    PyRef lines(module ? PyObject_CallMethod(module.get(), "format_stack", nullptr) : nullptr);
    PyRef empty(PyUnicode_FromString(""));
    PyRef joined(lines ? PyUnicode_Join(empty.get(), lines.get()) : nullptr);
    if (joined) text = PyUnicode_AsUTF8(joined.get());
    PyErr_Clear();
  }
  PyGILState_Release(state);
  return text;
}

}  // namespace

void bind_hooks(nb::module_& m) {
  autograd::describe_stack = python_stack;
  nb::class_<HookHandle>(m, "HookHandle")
      .def_ro("id", &HookHandle::id)
      .def("remove",
           [](HookHandle& h) {
             if (auto hooks = h.hooks.lock()) hooks->remove(h.id);
           })
      .def("__enter__", [](nb::object self) { return self; })
      .def("__exit__", [](HookHandle& h, nb::args) {
        if (auto hooks = h.hooks.lock()) hooks->remove(h.id);
      });
  add_native_method(
      "register_hook", register_hook,
      "Calls hook(grad) when the gradient is there; what it returns takes its place.");
  add_native_method("register_post_accumulate_grad_hook", register_post_accumulate,
                    "Calls hook(tensor) once its gradient was added to .grad.");
  add_native_method("retain_grad", retain_grad, "A result keeps its gradient in .grad too.");
  m.def("_node_hook", [](nb::handle node, nb::handle f, bool before) {
    return nb::steal(node_hook(node, f, before));
  });
  m.def("_check_hook_result", [](nb::handle given, nb::handle result, const std::string& name) {
    check_replacement(name, is_tensor(given.ptr()) ? unwrap(given.ptr()) : TensorBase(),
                      result.ptr());
  });
  m.def("_push_batch_scope", [](int64_t size, bool different, const nb::list& mapped) {
    auto* scope = new BatchScope(size, different);
    for (nb::handle t : mapped) scope->add_mapped(unwrap(t.ptr()));
  });
  m.def("_push_transform_scope", [](const nb::list& arguments) {
    auto* scope = new BatchScope();
    for (nb::handle t : arguments) scope->add_mapped(unwrap(t.ptr()));
  });
  m.def("_pop_batch_scope", [] { delete BatchScope::innermost(); });
  m.def("_begin_next_example", begin_next_example);
  m.def("_push_saved_hooks", push_saved);
  m.def("_pop_saved_hooks", autograd::pop_saved_hooks);
  m.def("_set_anomaly", [](bool enabled, bool check_nan) {
    autograd::anomaly() = {enabled, check_nan};
  });
  m.def("_anomaly",
        [] { return nb::make_tuple(autograd::anomaly().enabled, autograd::anomaly().check_nan); });
  m.def("_track_graphs", autograd::track_graphs);
  m.def("_live_graphs", [] {
    nb::list out;
    for (const autograd::LiveNodes& g : autograd::live_graphs())
      out.append(nb::make_tuple(g.name, g.source, g.count, g.saved_bytes));
    return out;
  });
}

}  // namespace tessera::python
