// The parts of the module that are called rarely and are bound with nanobind.
#pragma once
#include <nanobind/nanobind.h>

namespace tessera::python {

void bind_cuda(nanobind::module_& m);
void bind_watch(nanobind::module_& m);
void bind_graphs(nanobind::module_& m);
void bind_pin(nanobind::module_& m);
void bind_fuse(nanobind::module_& m);
void bind_records(nanobind::module_& m);
void bind_modes(nanobind::module_& m);
void bind_threads(nanobind::module_& m);
void bind_hooks(nanobind::module_& m);
void bind_printing(nanobind::module_& m);
void bind_distributed(nanobind::module_& m);
void bind_parallel(nanobind::module_& m);
void bind_profiler(nanobind::module_& m);

}  // namespace tessera::python
