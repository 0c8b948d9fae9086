// torch.distributed: stores, process groups and handles of work, those of the C++ face.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "save.h"
#include "scaffolding.h"
#include "tensor_object.h"
#include "tessera/distributed/engine.h"
#include "tessera/distributed/environment.h"
#include "tessera/distributed/error.h"
#include "tessera/distributed/world.h"

namespace tessera::python {

namespace nb = nanobind;
namespace dist = tessera::distributed;
using dist::Milliseconds;
using dist::ProcessGroup;
using dist::Store;
using dist::Work;
using dist::WorkPtr;

namespace {

PyObject* g_errors[4];  // by DistErrorKind

TensorBase tensor(nb::handle h) { return unwrap_checked(h.ptr(), "a collective"); }

std::vector<TensorBase> tensors(nb::handle list) {
  std::vector<TensorBase> out;
  for (nb::handle h : list) out.push_back(tensor(h));
  return out;
}

nb::list wrapped(const std::vector<TensorBase>& all) {
  nb::list out;
  for (const TensorBase& t : all) out.append(nb::steal(wrap(t)));
  return out;
}

Milliseconds seconds(double s) { return Milliseconds(static_cast<int64_t>(s * 1000)); }

nb::bytes as_bytes(const std::string& s) { return nb::bytes(s.data(), s.size()); }
std::string value_of(nb::handle h) {
  if (PyBytes_Check(h.ptr())) {
    nb::bytes b = nb::borrow<nb::bytes>(h);
    return {b.c_str(), b.size()};
  }
  return nb::cast<std::string>(h);
}

// In slices, so that Ctrl-C is heard. With a timeout, it also waits for the device's part.
bool wait(Work& w, double timeout) {
  auto until = dist::Clock::now() + seconds(timeout < 0 ? 1e9 : timeout);
  for (;;) {
    auto left = std::chrono::ceil<Milliseconds>(until - dist::Clock::now());
    const auto slice = std::clamp<Milliseconds>(left, Milliseconds(0), Milliseconds(200));
    if (w.wait_for(slice, timeout >= 0)) return true;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (left.count() <= 0)
      dist::fail(dist::DistErrorKind::kBackend, w.what(), ": not done within ", timeout, " s");
  }
}

void bind_stores(nb::module_& m) {
  nb::class_<Store>(m, "Store", nb::is_weak_referenceable())
      .def("set",
           [](Store& s, const std::string& key, nb::handle value) { s.set(key, value_of(value)); })
      .def("get", [](Store& s, const std::string& key) { return as_bytes(s.get(key)); })
      .def("add", &Store::add, nb::arg("key"), nb::arg("amount"))
      .def("check", &Store::check, nb::arg("keys"))
      .def("delete_key", &Store::delete_key, nb::arg("key"))
      .def("compare_set",
           [](Store& s, const std::string& key, nb::handle expected, nb::handle desired) {
             return as_bytes(s.compare_set(key, value_of(expected), value_of(desired)));
           })
      .def("append", [](Store& s, const std::string& key,
                        nb::handle value) { s.append(key, value_of(value)); })
      .def("num_keys", &Store::num_keys)
      .def("_wait", [](Store& s, const std::vector<std::string>& keys) { s.wait(keys); })
      .def("_wait", [](Store& s, const std::vector<std::string>& keys,
                       double timeout) { s.wait(keys, seconds(timeout)); })
      .def("_set_timeout", [](Store& s, double t) { s.set_timeout(seconds(t)); })
      .def("_timeout", [](const Store& s) { return s.timeout().count() / 1000.0; });
  nb::class_<dist::HashStore, Store>(m, "HashStore").def(nb::init<>());
  nb::class_<dist::PrefixStore, Store>(m, "PrefixStore")
      .def(nb::init<std::string, std::shared_ptr<Store>>(), nb::arg("prefix"), nb::arg("store"))
      .def_prop_ro("underlying_store", &dist::PrefixStore::underlying);
  nb::class_<dist::FileStore, Store>(m, "FileStore")
      .def(
          "__init__",
          [](dist::FileStore* self, nb::handle name, int world_size) {
            new (self) dist::FileStore(file_name(name.ptr()), world_size);
          },
          nb::arg("file_name"), nb::arg("world_size") = -1)
      .def_prop_ro("path", [](const dist::FileStore& s) {
        PyObject* path = PyUnicode_DecodeFSDefaultAndSize(s.path().data(),
                                                          static_cast<Py_ssize_t>(s.path().size()));
        return nb::steal<nb::object>(checked(path));
      });
  nb::class_<dist::TCPStore, Store>(m, "_TCPStore")
      .def("__init__",
           [](dist::TCPStore* self, const std::string& host, int port, int world_size,
              bool is_master, double timeout, bool wait_for_workers) {
             TS_CHECK_VALUE(port >= 0 && port < 65536, "the port of a store cannot be ", port);
             new (self) dist::TCPStore({.host = host,
                                        .port = static_cast<uint16_t>(port),
                                        .world_size = world_size,
                                        .is_master = is_master,
                                        .timeout = seconds(timeout),
                                        .wait_for_workers = wait_for_workers});
           })
      .def_prop_ro("host", &dist::TCPStore::host)
      .def_prop_ro("port", [](const dist::TCPStore& s) { return int{s.port()}; });
}

void bind_groups(nb::module_& m) {
  nb::class_<Work>(m, "Work")
      .def("wait", &wait, nb::arg("timeout") = -1.0)
      .def("is_completed", &Work::is_completed)
      .def("is_success", &Work::is_success)
      .def("_exception", [](const Work& w) { w.completion()->rethrow(); })
      .def("result", [](const Work& w) { return wrapped(w.result()); })
      .def("source_rank", &Work::source_rank)
      .def_prop_ro("_what", &Work::what);
  nb::class_<ProcessGroup>(m, "_ProcessGroup", nb::is_weak_referenceable(), nb::dynamic_attr())
      .def("rank", &ProcessGroup::rank)
      .def("size", &ProcessGroup::size)
      .def("name", [](const ProcessGroup& g) { return g.backend_name(); })
      .def_prop_ro("group_name", &ProcessGroup::name)
      .def_prop_ro("_ranks", &ProcessGroup::ranks)
      .def_prop_ro("_world_rank", [](const ProcessGroup& g) { return g.job()->rank(); })
      .def_prop_ro("_store", [](const ProcessGroup& g) { return g.job()->store(); })
      .def_prop_ro("_timeout", [](const ProcessGroup& g) { return g.timeout().count() / 1000.0; })
      .def("_set_timeout", [](ProcessGroup& g, double t) { g.set_timeout(seconds(t)); })
      .def("_get_sequence_number_for_group", &ProcessGroup::sequence_number)
      .def("_all_reduce", [](ProcessGroup& g, nb::handle t,
                             int op) { return g.all_reduce(tensor(t), dist::ReduceOp(op)); })
      .def("_reduce", [](ProcessGroup& g, nb::handle t, int root,
                         int op) { return g.reduce(tensor(t), root, dist::ReduceOp(op)); })
      .def("_broadcast",
           [](ProcessGroup& g, nb::handle t, int root) { return g.broadcast(tensor(t), root); })
      .def("_all_gather", [](ProcessGroup& g, nb::handle out,
                             nb::handle in) { return g.all_gather(tensors(out), tensor(in)); })
      .def("_gather", [](ProcessGroup& g, nb::handle out, nb::handle in,
                         int root) { return g.gather(tensors(out), tensor(in), root); })
      .def("_scatter", [](ProcessGroup& g, nb::handle out, nb::handle in,
                          int root) { return g.scatter(tensor(out), tensors(in), root); })
      .def("_reduce_scatter",
           [](ProcessGroup& g, nb::handle out, nb::handle in, int op) {
             return g.reduce_scatter(tensor(out), tensors(in), dist::ReduceOp(op));
           })
      .def("_all_to_all", [](ProcessGroup& g, nb::handle out,
                             nb::handle in) { return g.all_to_all(tensors(out), tensors(in)); })
      .def("_all_to_all_single",
           [](ProcessGroup& g, nb::handle out, nb::handle in, std::vector<int64_t> out_split,
              std::vector<int64_t> in_split) {
             return g.all_to_all_single(tensor(out), tensor(in), std::move(out_split),
                                        std::move(in_split));
           })
      .def("_send", [](ProcessGroup& g, nb::handle t, int to,
                       uint32_t tag) { return g.send(tensor(t), to, tag); })
      .def("_recv", [](ProcessGroup& g, nb::handle t, int from,
                       uint32_t tag) { return g.receive(tensor(t), from, tag); })
      .def("_begin_batch", [](ProcessGroup& g) { g.begin_batch(DeviceType::kCUDA); })
      .def("_end_batch", [](ProcessGroup& g) { g.end_batch(DeviceType::kCUDA); })
      .def("_barrier", [](ProcessGroup& g, bool cuda) {
        return g.barrier(cuda ? DeviceType::kCUDA : DeviceType::kCPU);
      });
}

}  // namespace

PyObject* class_of_dist_error(const dist::DistError& e) {
  return g_errors[static_cast<int>(e.dist_kind())];
}

void bind_distributed(nb::module_& m) {
  const char* names[] = {"DistError", "DistBackendError", "DistNetworkError", "DistStoreError"};
  for (int i = 0; i < 4; ++i) {
    g_errors[i] = checked(PyErr_NewException(cat("tessera.distributed.", names[i]).c_str(),
                                             i ? g_errors[0] : PyExc_RuntimeError, nullptr));
    if (PyModule_AddObjectRef(m.ptr(), names[i], g_errors[i]) < 0) throw PythonError{};
  }
  bind_stores(m);
  bind_groups(m);
  m.def(
      "_dist_init",
      [](const std::string& backend, const std::string& method, int rank, int size, double timeout,
         std::shared_ptr<Store> store) {
        return dist::init_process_group({.backend = backend,
                                         .init_method = method,
                                         .rank = rank,
                                         .world_size = size,
                                         .timeout = seconds(timeout),
                                         .store = std::move(store)});
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
  m.def("_dist_destroy", &dist::destroy_process_group);
  m.def("_dist_leave", &dist::leave_job);
  m.def("_dist_report_failures", &dist::report_failures);
  m.def("_dist_flush", [](double timeout) { return dist::flush_job(seconds(timeout)); });
  m.def("_dist_new_group", [](std::vector<int> ranks, const std::string& backend, double timeout,
                              const std::string& name) {
    return dist::new_group(std::move(ranks),
                           {.backend = backend, .timeout = seconds(timeout), .name = name});
  });
  m.def("_dist_rendezvous", [](const std::string& method, int rank, int size, double timeout) {
    dist::Rendezvous r = dist::rendezvous(
        {.init_method = method, .rank = rank, .world_size = size, .timeout = seconds(timeout)});
    return nb::make_tuple(r.store, r.rank, r.world_size);
  });
  m.def("_dist_environment", &dist::launch_environment);
  m.def("_dist_has_backend", [](const std::string& name) {
    std::string why;
    bool there = dist::is_backend_available(name, &why);
    return nb::make_tuple(there, why);
  });
}

}  // namespace tessera::python
