// torch.nn.parallel: the reducer behind DistributedDataParallel, and the ends of backwards.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "scaffolding.h"
#include "shared_object.h"
#include "tensor_object.h"
#include "tessera/autograd/callbacks.h"
#include "tessera/parallel/reducer.h"

namespace tessera::python {

namespace nb = nanobind;
using parallel::Reducer;

namespace {

std::vector<TensorBase> tensors(nb::handle list) {
  std::vector<TensorBase> out;
  for (nb::handle h : list) out.push_back(unwrap_checked(h.ptr(), "parameters"));
  return out;
}

nb::list wrapped(const std::vector<TensorBase>& all) {
  nb::list out;
  for (const TensorBase& t : all) out.append(nb::steal(wrap(t)));
  return out;
}

// `f` gets a bucket's index, whether it is the last, its buffer, gradients and parameters; what it
// returns is called for the result.
Reducer::CommHook comm_hook(PyObject* f) {
  return [hook = share_object(f)](const Reducer::HookBucket& b) {
    PyRef wait(checked(PyObject_CallFunction(
        hook.get(), "iONNN", b.index, b.is_last ? Py_True : Py_False, wrap(b.buffer),
        wrapped(b.gradients).release().ptr(), wrapped(b.parameters).release().ptr())));
    return [result = share_object(wait.get())] {
      PyRef t(checked(PyObject_CallNoArgs(result.get())));
      return TensorBase(unwrap_checked(t.get(), "the result of a communication hook"));
    };
  };
}

void look_for_signals() {
  if (PyErr_CheckSignals() != 0) throw PythonError{};
}

}  // namespace

void bind_parallel(nb::module_& m) {
  parallel::while_waiting = look_for_signals;
  nb::class_<Reducer>(m, "_Reducer")
      .def("prepare_for_forward", &Reducer::prepare_for_forward)
      .def("prepare_for_backward",
           [](Reducer& r, nb::handle outputs) { r.prepare_for_backward(tensors(outputs)); })
      .def("expect_nothing", &Reducer::expect_nothing)
      .def("set_comm_hook", [](Reducer& r, nb::handle f) { r.set_comm_hook(comm_hook(f.ptr())); })
      .def("bucket_members", &Reducer::bucket_members)
      .def_prop_ro("overlapped", &Reducer::overlapped);
  m.def("_make_reducer", [](nb::handle parameters, std::vector<std::string> names,
                            std::shared_ptr<distributed::ProcessGroup> group, size_t bucket_bytes,
                            size_t first_bytes, bool find_unused, bool as_view, bool is_static) {
    return Reducer::make(tensors(parameters), std::move(names), std::move(group),
                         {.bucket_bytes = bucket_bytes,
                          .first_bucket_bytes = first_bytes,
                          .find_unused_parameters = find_unused,
                          .gradient_as_bucket_view = as_view,
                          .static_graph = is_static});
  });
  m.def("_broadcast_together",
        [](std::shared_ptr<distributed::ProcessGroup> group, nb::handle list, int root) {
          parallel::broadcast_together(*group, tensors(list), root);
        });
  m.def("_check_same_everywhere", [](std::shared_ptr<distributed::ProcessGroup> group,
                                     std::vector<std::string> lines, nb::handle parameter) {
    const Device device = unwrap_checked(parameter.ptr(), "parameters").device();
    parallel::check_same_everywhere(*group, lines, "parameter", device);
  });
  m.def("_at_end_of_backward", [](nb::handle f) {
    autograd::at_end_of_backward(
        [call = share_object(f.ptr())] { PyRef(checked(PyObject_CallNoArgs(call.get()))); });
  });
}

}  // namespace tessera::python
