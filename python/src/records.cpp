// The records as data, for tests, documentation and tools.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "callable.h"
#include "scaffolding.h"
#include "tessera/ops/record.h"

namespace tessera::python {

namespace nb = nanobind;

namespace {

const char* kind_name(Kind k) {
  switch (k) {
    case Kind::kPointwise:
      return "pointwise";
    case Kind::kReduction:
      return "reduction";
    case Kind::kView:
      return "view";
    case Kind::kKernel:
      return "kernel";
    case Kind::kComposite:
      return "composite";
  }
  return "";
}

nb::dict describe(const Op& op) {
  const OpRecord& r = *op.record;
  nb::dict out;
  out["name"] = op.name;
  out["schema"] = r.schema;
  out["aten"] = r.aten;
  out["family"] = op.family;
  out["kind"] = kind_name(op.kind);
  out["doc"] = r.doc;
  out["example"] = r.example;
  nb::list forms;
  if (r.forms & kFunction) forms.append("function");
  if (r.forms & kMethod) forms.append("method");
  if (r.forms & kInplace) forms.append("inplace");
  if (r.forms & kOut) forms.append("out");
  out["forms"] = forms;
  nb::list samples;
  for (const Sample& s : op.samples) samples.append(nb::str(s.args));
  out["samples"] = samples;
  out["random"] = r.random;
  out["differentiable"] = op.has_gradient;
  out["operators"] = r.operators;
  out["reference"] = r.reference;
  nb::list paths;
  for (const std::string& p : op.paths) paths.append(nb::str(p.c_str()));
  out["paths"] = paths;
  out["single"] = op.num_outputs == 1 && op.result_type == ResultType::kTensor;
  nb::list args;
  nb::dict defaults;  // as they are written in Python
  for (const ArgSpec& a : op.args) {
    args.append(nb::str(a.name.c_str()));
    if (a.has_default) defaults[a.name.c_str()] = a.default_text;
  }
  out["args"] = args;
  out["defaults"] = defaults;
  return out;
}

}  // namespace

void bind_records(nb::module_& m) {
  m.def("all_ops", [] {
    nb::list all;
    for (const Op* op : all_ops()) all.append(describe(*op));
    return all;
  });
  m.def("_return_type", [](const std::string& name) -> nb::object {
    const Op* op = nullptr;
    for (const Op* each : all_ops())
      if (each->name == name && !each->result_names.empty()) op = each;
    if (!op) return nb::none();
    return nb::borrow(reinterpret_cast<PyObject*>(named_tuple_of(*op)));
  });
}

}  // namespace tessera::python
