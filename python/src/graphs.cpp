// Captured graphs: those of the C++ face.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include "generator.h"
#include "scaffolding.h"
#include "tensor_object.h"
#include "tessera/face/graph.h"
#include "tessera/fuse/stream.h"

namespace tessera::python {

namespace nb = nanobind;
using cuda::CUDAGraph;

namespace {

using Pool = std::pair<uint64_t, uint64_t>;

CaptureMode mode_of(const std::string& name) {
  if (name == "global") return CaptureMode::kGlobal;
  if (name == "thread_local") return CaptureMode::kThreadLocal;
  TS_CHECK(name == "relaxed",
           "Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got ",
           name);
  return CaptureMode::kRelaxed;
}

int64_t address(const void* p) { return static_cast<int64_t>(reinterpret_cast<intptr_t>(p)); }

}  // namespace

void bind_graphs(nb::module_& m) {
  nb::class_<CUDAGraph>(m, "CUDAGraphBase")
      .def(nb::init<bool>(), nb::arg("keep_graph") = false)
      .def("_begin",
           [](CUDAGraph& g, Pool pool, const std::string& mode) {
             g.capture_begin({pool.first, pool.second}, mode_of(mode));
           })
      .def("_end", &CUDAGraph::capture_end)
      .def("_abandon", &CUDAGraph::abandon)
      .def("_instantiate", &CUDAGraph::instantiate)
      .def("_replay", &CUDAGraph::replay)
      .def("_reset", &CUDAGraph::reset)
      .def("_pool",
           [](const CUDAGraph& g) {
             cuda::MempoolId_t id = g.pool();
             return Pool{id.first, id.second};
           })
      .def("_register",
           [](CUDAGraph& g, nb::handle generator) {
             Mt19937Generator* at = nullptr;
             TS_CHECK_TYPE(read_generator(generator.ptr(), at), "expected a torch.Generator");
             g.register_generator_state(*at);
           })
      .def("_raw_graph", [](const CUDAGraph& g) { return address(g.raw_cuda_graph()); })
      .def("_raw_executable", [](const CUDAGraph& g) { return address(g.raw_cuda_graph_exec()); })
      .def_prop_ro("_captured", &CUDAGraph::captured);
  m.def("_graph_pool_handle", [] {
    cuda::MempoolId_t id = cuda::graph_pool_handle();
    return Pool{id.first, id.second};
  });
  m.def("_cuda_is_capturing", &cuda::is_current_stream_capturing);
  // Where a tensor lies and how, to compare. Its memory is not taken for exposed.
  m.def("_place", [](nb::handle tensor) {
    if (!is_tensor(tensor.ptr())) raise(ErrorKind::kType, "_place(): expected a Tensor");
    const TensorBase& t = unwrap(tensor.ptr());
    if (!t.storage().data) fuse::ensure_readable(t);  // pending: it gets its memory now
    uint64_t layout = 1469598103934665603u;
    auto mix = [&](int64_t v) { layout = (layout ^ static_cast<uint64_t>(v)) * 1099511628211u; };
    for (int64_t n : t.sizes()) mix(n);
    for (int64_t n : t.strides()) mix(n);
    mix(t.impl()->requires_grad);
    return nb::make_tuple(address(&t.storage()), address(t.storage().data), t.storage_offset(),
                          layout);
  });
}

}  // namespace tessera::python
