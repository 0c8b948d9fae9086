// Hooks of tensors and nodes, saved_tensors_hooks, anomaly mode, and graphs that are alive.
#include "tessera/autograd/hooks.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "methods.h"
#include "node_object.h"
#include "scaffolding.h"
#include "shared_object.h"

namespace tessera::python {

namespace nb = nanobind;
using autograd::Grads;

namespace {

PyObject* call_one(PyObject* f, PyObject* argument) {
  return checked(PyObject_CallOneArg(f, argument));
}

// What a hook returned: a tensor, or None for "as it was".
TensorBase replacement(PyObject* o, const char* what) {
  if (o == Py_None) return TensorBase();
  return unwrap_checked(o, what);
}

PyObject* tuple_of(const Grads& grads) {
  PyRef all(checked(PyTuple_New(static_cast<Py_ssize_t>(grads.size()))));
  for (size_t i = 0; i < grads.size(); ++i)
    PyTuple_SET_ITEM(all.get(), static_cast<Py_ssize_t>(i), wrap(grads[i]));
  return all.release();
}

void replace_all(Grads& grads, PyObject* result, const char* what) {
  if (result == Py_None) return;
  if (is_tensor(result) && grads.size() == 1) {
    grads[0] = unwrap(result);
    return;
  }
  PyRef items(checked(PySequence_Fast(result, "hook should return a tensor or a tuple of them")));
  Py_ssize_t n = PySequence_Fast_GET_SIZE(items.get());
  TS_CHECK(static_cast<size_t>(n) == grads.size(), what,
           ": hook has returned an incorrect number of values (got ", static_cast<int64_t>(n),
           ", but expected ", static_cast<int64_t>(grads.size()), ")");
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
    grads[static_cast<size_t>(i)] = item == Py_None ? TensorBase() : unwrap_checked(item, what);
  }
}

autograd::Edge edge_of(const TensorBase& t, const char* what) {
  TS_CHECK(t.requires_grad(), "cannot register a hook on a tensor that doesn't require gradient");
  autograd::Edge e = autograd::gradient_edge(t);
  TS_ASSERT(e.node, ": ", what);
  return e;
}

// The node is kept by the handle: removing a hook must find it.
PyObject* handle_of(Ref<autograd::Node> node, uint64_t id) {
  PyRef wrapped(wrap_node(std::move(node)));
  return checked(Py_BuildValue("(OK)", wrapped.get(), static_cast<unsigned long long>(id)));
}

PyObject* register_hook(PyObject* self, const Arguments& args) {
  PyObject* f;
  bind_arguments("_register_hook", {"hook"}, args, &f);
  autograd::Edge e = edge_of(unwrap(self), "register_hook");
  uint64_t id = autograd::new_hook_id();
  auto hook = share_object(f);
  e.node->make_hooks().tensors.push_back({id, e.output, [hook](const TensorBase& g) {
                                            PyRef grad(wrap(g));
                                            PyRef out(call_one(hook.get(), grad.get()));
                                            return replacement(out.get(), "a hook's result");
                                          }});
  return handle_of(e.node, id);
}

// Leaves only: called with the tensor once its gradient was added.
PyObject* register_post_accumulate(PyObject* self, const Arguments& args) {
  PyObject* f;
  bind_arguments("_register_post_accumulate_grad_hook", {"hook"}, args, &f);
  const TensorBase& t = unwrap(self);
  TS_CHECK(autograd::is_leaf(t),
           "post accumulate grad hooks cannot be registered on non-leaf tensors");
  autograd::Edge e = edge_of(t, "register_post_accumulate_grad_hook");
  uint64_t id = autograd::new_hook_id();
  auto hook = share_object(f);
  auto* leaf = static_cast<autograd::AccumulateGrad*>(e.node.get());
  e.node->make_hooks().after.push_back({id, [hook, leaf](Grads&, const Grads&) {
                                          PyRef tensor(wrap(leaf->leaf()));
                                          PyRef out(call_one(hook.get(), tensor.get()));
                                        }});
  return handle_of(e.node, id);
}

PyObject* retain_grad(PyObject* self, const Arguments& args) {
  bind_arguments("retain_grad", {}, args, nullptr);
  autograd::retain_grad(unwrap(self));
  Py_RETURN_NONE;
}

uint64_t node_hook(nb::handle node, nb::handle f, bool before) {
  Ref<autograd::Node> n = unwrap_node(node.ptr());
  uint64_t id = autograd::new_hook_id();
  auto hook = share_object(f.ptr());
  if (before) {
    n->make_hooks().before.push_back({id, [hook](Grads& outputs) {
                                        PyRef given(tuple_of(outputs));
                                        PyRef out(call_one(hook.get(), given.get()));
                                        replace_all(outputs, out.get(), "prehook");
                                      }});
  } else {
    n->make_hooks().after.push_back({id, [hook](Grads& inputs, const Grads& outputs) {
                                       PyRef in(tuple_of(inputs)), given(tuple_of(outputs));
                                       PyRef out(checked(PyObject_CallFunctionObjArgs(
                                           hook.get(), in.get(), given.get(), nullptr)));
                                       replace_all(inputs, out.get(), "hook");
                                     }});
  }
  return id;
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
  add_native_method("_register_hook", register_hook, "");
  add_native_method("_register_post_accumulate_grad_hook", register_post_accumulate, "");
  add_native_method("retain_grad", retain_grad, "A result keeps its gradient in .grad too.");
  m.def("_node_hook", node_hook);
  m.def("_remove_hook", [](nb::handle node, uint64_t id) {
    Ref<autograd::Node> n = unwrap_node(node.ptr());
    return n->hooks && n->hooks->remove(id);
  });
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
