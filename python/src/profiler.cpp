// torch.profiler: profiles, their events and tables, over those of the C++ face.
#include "tessera/face/profiler.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "save.h"
#include "scaffolding.h"
#include "tessera/base/error.h"
#include "tessera/profile/page.h"

namespace tessera::python {

namespace nb = nanobind;
using profile::Category;
using profile::Row;
using profile::Trace;
using profile::TraceEvent;

namespace {

// One event of a trace, which it keeps.
struct EventRef {
  std::shared_ptr<const Trace> trace;
  int index;
  const TraceEvent& operator*() const { return trace->events()[static_cast<size_t>(index)]; }
  const TraceEvent* operator->() const { return &**this; }
};

struct Interval {
  double start, end;
};

double us(int64_t ns) { return static_cast<double>(ns) / 1000.0; }

nb::list sizes_list(const std::vector<int64_t>& sizes) {
  nb::list out;
  for (int64_t n : sizes) out.append(n);
  return out;
}
nb::list shapes_of(const EventRef& e) {
  nb::list out;
  for (const profile::Argument& a : e.trace->arguments(*e))
    out.append(a.kind == profile::Arg::kTensor ? sizes_list(a.tensors[0].sizes) : nb::list());
  return out;
}
nb::list values_of(const EventRef& e) {
  nb::list out;
  for (const profile::Argument& a : e.trace->arguments(*e)) {
    switch (a.kind) {
      case profile::Arg::kInt:
        out.append(a.ints[0]);
        break;
      case profile::Arg::kBool:
        out.append(a.ints[0] != 0);
        break;
      case profile::Arg::kDouble:
        out.append(a.number);
        break;
      case profile::Arg::kInts:
        out.append(sizes_list(a.ints));
        break;
      default:
        out.append(nb::none());
    }
  }
  return out;
}

// Kernels and copies that it started itself: name, device, microseconds.
nb::list kernels_of(const EventRef& e) {
  nb::list out;
  const auto& events = e.trace->events();
  for (int i : e.trace->started_by(e.index)) {
    const TraceEvent& k = events[static_cast<size_t>(i)];
    out.append(nb::make_tuple(nb::str(k.name.data(), k.name.size()), k.device, us(k.duration())));
  }
  return out;
}

std::vector<EventRef> events_of(const std::shared_ptr<const Trace>& trace) {
  std::vector<EventRef> out;
  for (size_t i = 0; i < trace->events().size(); ++i)
    if (profile::is_listed(trace->events()[i])) out.push_back({trace, static_cast<int>(i)});
  return out;
}

std::vector<EventRef> children_of(const EventRef& e) {
  std::vector<EventRef> out;
  const auto& events = e.trace->events();
  for (size_t i = static_cast<size_t>(e.index) + 1; i < events.size(); ++i) {
    if (events[i].start > e->end) break;
    if (events[i].parent == e.index && profile::is_listed(events[i]))
      out.push_back({e.trace, static_cast<int>(i)});
  }
  return out;
}

const char* activity_name(Category c) {
  static constexpr const char* names[] = {
      "cpu_op",     "user_annotation", "cuda_runtime",     "concurrent_kernel",
      "gpu_memcpy", "gpu_memset",      "cpu_instant_event"};
  return names[static_cast<int>(c)];
}

std::vector<Row> rows_of(const nb::list& events) {
  std::vector<Row> rows;
  for (nb::handle h : events) {
    if (nb::isinstance<EventRef>(h)) {
      const auto& e = nb::cast<const EventRef&>(h);
      rows.push_back(profile::row_of(*e.trace, *e, true, 64));
      if (rows.back().shapes == "[]") rows.back().shapes.clear();
    } else {
      rows.push_back(nb::cast<const Row&>(h));
    }
  }
  return rows;
}

template <class C, class Get>
void def_times(C& c, Get row) {
  for (const char* name : {"cpu_time_total", "self_cpu_time_total", "device_time_total",
                           "self_device_time_total", "cpu_time", "device_time"}) {
    c.def_prop_ro(
        name, [row, name](const typename C::Type& e) { return profile::value_of(row(e), name); });
    c.def_prop_ro(cat(name, "_str").c_str(), [row, name](const typename C::Type& e) {
      return profile::time_text(profile::value_of(row(e), name));
    });
  }
  for (const char* name : {"cpu_memory_usage", "self_cpu_memory_usage", "device_memory_usage",
                           "self_device_memory_usage", "flops", "count"})
    c.def_prop_ro(name, [row, name](const typename C::Type& e) {
      return static_cast<int64_t>(profile::value_of(row(e), name));
    });
  // Their names before there were other devices.
  const std::pair<const char*, const char*> old[] = {
      {"cuda_time_total", "device_time_total"},
      {"self_cuda_time_total", "self_device_time_total"},
      {"cuda_time", "device_time"}};
  for (const auto& [name, now] : old)
    c.def_prop_ro(name,
                  [row, now](const typename C::Type& e) { return profile::value_of(row(e), now); });
  for (const auto& [name, now] : {std::pair{"cuda_memory_usage", "device_memory_usage"},
                                  std::pair{"self_cuda_memory_usage", "self_device_memory_usage"}})
    c.def_prop_ro(name, [row, now](const typename C::Type& e) {
      return static_cast<int64_t>(profile::value_of(row(e), now));
    });
}

void bind_events(nb::module_& m) {
  nb::class_<Interval>(m, "_ProfileInterval")
      .def_ro("start", &Interval::start)
      .def_ro("end", &Interval::end)
      .def("elapsed_us", [](const Interval& i) { return i.end - i.start; });

  nb::class_<EventRef> event(m, "_ProfileEvent");
  def_times(event, [](const EventRef& e) { return profile::row_of(*e.trace, *e, false, 0); });
  const auto name = [](const EventRef& e) { return profile::row_of(*e.trace, *e, false, 0).key; };
  event.def_prop_ro("name", name)
      .def_prop_ro("key", name)
      .def_prop_ro("trace_name", [](const EventRef& e) { return std::string(e->name); })
      .def_prop_ro("id", [](const EventRef& e) { return e->id ? e->id : e->correlation; })
      .def_prop_ro("time_range",
                   [](const EventRef& e) {
                     return Interval{us(e->start), us(e->end)};
                   })
      .def_prop_ro("thread", [](const EventRef& e) { return e->thread; })
      .def_prop_ro("fwd_thread", [](const EventRef& e) { return e->forward_thread; })
      .def_prop_ro("sequence_nr", [](const EventRef& e) { return e->sequence; })
      .def_prop_ro("scope",
                   [](const EventRef& e) {
                     return e->backward ? 1 : e->category == Category::kUser ? 7 : 0;
                   })
      .def_prop_ro("_on_device", [](const EventRef& e) { return e->on_device(); })
      .def_prop_ro("device_index", [](const EventRef& e) { return e->on_device() ? e->device : 0; })
      .def_prop_ro("device_resource_id",
                   [](const EventRef& e) {
                     return e->on_device() ? e->stream : static_cast<int64_t>(e->thread);
                   })
      .def_prop_ro("is_user_annotation",
                   [](const EventRef& e) { return e->category == Category::kUser; })
      .def_prop_ro("activity_type", [](const EventRef& e) { return activity_name(e->category); })
      .def_prop_ro("input_shapes", shapes_of)
      .def_prop_ro("concrete_inputs", values_of)
      .def_prop_ro("stack", [](const EventRef& e) { return e.trace->stack(*e); })
      .def_prop_ro("operators", [](const EventRef& e) { return e.trace->members(*e); })
      .def_prop_ro("_kernels", kernels_of)
      .def_prop_ro("cpu_children", children_of)
      .def_prop_ro("cpu_parent", [](const EventRef& e) -> std::optional<EventRef> {
        if (e->parent < 0) return std::nullopt;
        return EventRef{e.trace, e->parent};
      });

  nb::class_<Row> row(m, "_ProfileRow");
  row.def(nb::init<>());
  def_times(row, [](const Row& r) -> const Row& { return r; });
  row.def_rw("key", &Row::key)
      .def_ro("_shapes", &Row::shapes)
      .def_rw("stack", &Row::stack)
      .def_prop_ro("_on_device", [](const Row& r) { return r.device >= 0; })
      .def_ro("is_user_annotation", &Row::user)
      .def("_add", [](Row& r, const Row& other) { r.add(other); })
      .def("_add",
           [](Row& r, const EventRef& e) { r.add(profile::row_of(*e.trace, *e, false, 0)); });
}

}  // namespace

void bind_profiler(nb::module_& m) {
  bind_events(m);
  nb::class_<profiler::Profile>(m, "_Profile")
      .def("__init__",
           [](profiler::Profile* at, bool cpu, bool cuda, bool shapes, bool memory, bool stack,
              bool flops) {
             new (at) profiler::Profile({cpu, cuda, shapes, memory, stack, flops}, false);
           })
      .def("prepare", &profiler::Profile::prepare)
      .def("start", &profiler::Profile::start)
      .def("stop", &profiler::Profile::stop)
      .def_prop_ro("started", &profiler::Profile::started)
      .def_prop_ro("uses_device",
                   [](const profiler::Profile& p) { return p.trace().uses_device(); })
      .def_prop_ro("measured_by", [](const profiler::Profile& p) { return p.trace().measured_by; })
      .def_prop_ro("dropped", [](const profiler::Profile& p) { return p.trace().dropped; })
      .def("events",
           [](const profiler::Profile& p) {
             p.trace();
             return events_of(p.shared_trace());
           })
      .def("key_averages", &profiler::Profile::key_averages)
      .def("export_chrome_trace",
           [](profiler::Profile& p, nb::handle path) {
             const profile::Written w = p.export_chrome_trace(file_name(path.ptr()));
             return std::pair{w.events, w.left_out};
           })
      .def("page_data", [](const profiler::Profile& p,
                           size_t most) { return profile::page_data(p.trace(), most); })
      .def("export_stacks",
           [](const profiler::Profile& p, nb::handle path, const std::string& metric) {
             p.export_stacks(file_name(path.ptr()), metric);
           })
      .def("add_metadata_json", &profiler::Profile::add_metadata_json);

  m.def(
      "_profile_table",
      [](const nb::list& events, const std::optional<std::string>& sort_by, int64_t row_limit,
         int src_width, int name_width, int shapes_width, const std::optional<std::string>& header,
         bool top_level_only, const std::optional<std::string>& time_unit, bool memory, bool flops,
         const std::optional<std::string>& device) {
        profile::TableOptions o;
        o.sort_by = sort_by.value_or("");
        o.row_limit = row_limit;
        o.max_src_width = src_width;
        o.max_name_width = name_width;
        o.max_shapes_width = shapes_width;
        o.has_header = header.has_value();
        o.header = header.value_or("");
        o.top_level_only = top_level_only;
        o.time_unit = time_unit.value_or("");
        o.memory = memory;
        o.flops = flops;
        o.device = device.value_or("");
        return profile::table(rows_of(events), o);
      },
      nb::arg("events"), nb::arg("sort_by").none(), nb::arg("row_limit"), nb::arg("src_width"),
      nb::arg("name_width"), nb::arg("shapes_width"), nb::arg("header").none(),
      nb::arg("top_level_only"), nb::arg("time_unit").none(), nb::arg("memory"), nb::arg("flops"),
      nb::arg("device").none());

  nb::class_<profiler::RecordFunction>(m, "_RecordFunction")
      .def("end", &profiler::RecordFunction::end);
  // None while nothing is recorded.
  m.def("_record_function",
        [](std::string_view name,
           std::string_view arguments) -> std::unique_ptr<profiler::RecordFunction> {
          if (!profile::recording()) return nullptr;
          return std::make_unique<profiler::RecordFunction>(name, arguments);
        });
  m.def("_profile_marks", profiler::emit_ranges);
  m.def("_is_profiling", [] { return profile::recording(); });
}

}  // namespace tessera::python
