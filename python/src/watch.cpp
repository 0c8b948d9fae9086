// What the program had its devices do, and what the machine's GPUs are doing.
#include "tessera/driver/watch.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "scaffolding.h"
#include "tessera/driver/gpus.h"

namespace tessera::python {

namespace nb = nanobind;

namespace {

nb::dict copies(const CopyCount& c) {
  nb::dict out;
  out["copies"] = c.copies;
  out["bytes"] = c.bytes;
  out["pageable_copies"] = c.pageable_copies;
  out["pageable_bytes"] = c.pageable_bytes;
  out["seconds"] = static_cast<double>(c.wait_ns) * 1e-9;
  return out;
}

nb::dict activity() {
  const Activity a = watch_read();
  nb::dict out;
  out["watching"] = a.watching;
  out["seconds"] = a.seconds;
  out["samples"] = a.samples;
  out["busy"] = a.busy;
  out["loading"] = a.loading;
  out["launching"] = a.launching;
  out["idle"] = a.idle;
  out["loading_at_all"] = a.loading_at_all;
  out["cpu_launches"] = a.cpu_launches;
  out["cpu_seconds"] = static_cast<double>(a.cpu_ns) * 1e-9;
  nb::list devices;
  for (int i = 0; i < a.devices; ++i) {
    const WatchedDevice& d = a.device[i];
    nb::dict device;
    device["launches"] = d.launches;
    device["graphs"] = d.graphs;
    device["to_device"] = copies(d.to_device);
    device["to_host"] = copies(d.to_host);
    device["between_bytes"] = d.between_bytes;
    device["synchronized"] = d.synchronized;
    device["synchronized_seconds"] = static_cast<double>(d.synchronized_ns) * 1e-9;
    device["busy_samples"] = d.busy_samples;
    devices.append(device);
  }
  out["devices"] = devices;
  return out;
}

nb::dict gpu(const GpuState& g) {
  nb::dict out;
  out["name"] = nb::str(g.name);
  out["bus"] = nb::str(g.bus);
  out["is_virtual"] = g.is_virtual;
  out["memory_used"] = g.memory_used;
  out["memory_total"] = g.memory_total;
  out["power_limit_mw"] = g.power_limit_mw;
  out["busy"] = g.now.busy_percent;
  out["memory_busy"] = g.now.memory_busy_percent;
  out["temperature"] = g.now.temperature;
  out["power_mw"] = g.now.power_mw;
  out["fan"] = g.now.fan_percent;
  out["clock_mhz"] = g.now.clock_mhz;
  out["memory_clock_mhz"] = g.now.memory_clock_mhz;
  out["performance_state"] = g.now.performance_state;
  nb::list processes;
  for (int i = 0; i < g.num_processes; ++i) {
    const GpuProcess& p = g.processes[i];
    processes.append(nb::make_tuple(p.pid, p.memory, p.busy_percent));
  }
  out["processes"] = processes;
  return out;
}

nb::tuple gpus(const std::string& backend) {
  GpuDriver driver{};
  std::vector<GpuState> found;
  {
    nb::gil_scoped_release released;
    found = list_gpus(backend.c_str(), &driver);
  }
  nb::dict about;
  about["driver"] = nb::str(driver.driver);
  about["cuda"] = nb::str(driver.cuda);
  about["why"] = nb::str(driver.why);
  nb::list all;
  for (const GpuState& g : found) all.append(gpu(g));
  return nb::make_tuple(all, about);
}

}  // namespace

void bind_watch(nb::module_& m) {
  m.def("_watch_start", [] {
    nb::gil_scoped_release released;
    watch_start();
  });
  m.def("_watch_stop", [] {
    nb::gil_scoped_release released;
    watch_stop();
  });
  m.def("_watch_read", &activity);
  m.def("_watch_loading", &watch_loading);
  m.def("_gpus", &gpus);
}

}  // namespace tessera::python
