// tessera.fuse: what is deferred, and why it ran.
#include "tessera/fuse/stream.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "scaffolding.h"
#include "source.h"
#include "tensor_object.h"
#include "tessera/driver/current.h"
#include "tessera/ops/reserve.h"

namespace tessera::python {

namespace nb = nanobind;

namespace {

std::vector<fuse::Stream*> streams() {
  std::vector<fuse::Stream*> all = {&fuse::stream_of(Device{})};
  for (int d = 0; d < device_count(); ++d)
    all.push_back(&fuse::stream_of(Device{DeviceType::kCUDA, static_cast<int16_t>(d)}));
  return all;
}

nb::dict stats() {
  fuse::Stats sum;
  size_t pending = 0;
  for (fuse::Stream* s : streams()) {
    fuse::Stats one = s->stats();
    sum.recorded += one.recorded;
    sum.dropped += one.dropped;
    sum.groups += one.groups;
    sum.fused_groups += one.fused_groups;
    sum.largest_group = std::max(sum.largest_group, one.largest_group);
    for (size_t i = 0; i < sum.runs.size(); ++i) sum.runs[i] += one.runs[i];
    pending += s->pending_ops();
  }
  nb::dict reasons;
  for (size_t i = 0; i < sum.runs.size(); ++i)
    reasons[fuse::reason_name(static_cast<fuse::Reason>(i))] = sum.runs[i];
  nb::dict out;
  out["recorded"] = sum.recorded;
  out["dropped"] = sum.dropped;
  out["groups"] = sum.groups;
  out["fused_groups"] = sum.fused_groups;
  out["largest_group"] = sum.largest_group;
  out["pending"] = pending;
  out["reasons"] = reasons;
  return out;
}

constexpr const char* kModes[] = {"off", "on", "check"};

}  // namespace

void bind_fuse(nb::module_& m) {
  m.def("_fuse_stats", stats);
  m.def("_fuse_reset_stats", [] {
    for (fuse::Stream* s : streams()) s->reset_stats();
  });
  m.def("_fuse_explain", [] {
    std::string all;
    for (fuse::Stream* s : streams()) {
      std::string one = s->explain();
      if (one.empty()) continue;
      if (!all.empty()) all += "\n";
      all += cat(s->device(), ": ", one);
    }
    return all;
  });
  m.def("_fuse_mode", [] { return kModes[static_cast<int>(fuse::mode())]; });
  m.def("_fuse_set_mode", [](const std::string& mode) {
    for (int i = 0; i < 3; ++i)
      if (mode == kModes[i]) return fuse::set_mode(static_cast<fuse::Mode>(i));
    raise(ErrorKind::kValue, cat("the mode must be 'off', 'on' or 'check', not '", mode, "'"));
  });
  m.def("_fuse_source_lines", [] { return fuse::source_lines(); });
  m.def("_fuse_set_source_lines", fuse::set_source_lines);
  m.def("_fuse_tiny", fuse::tiny);
  m.def("_fuse_set_tiny", fuse::set_tiny);
  m.def("_fuse_pass_over", init_source);
  // Memory for tensors that are about to be written.
  m.def("_fuse_reserve", [](const nb::list& tensors) {
    std::vector<TensorBase> written;
    for (nb::handle t : tensors) written.push_back(unwrap_checked(t.ptr(), "a tensor to write"));
    reserve_for_writes(written, {});
  });
  m.def("_fuse_run", [] { fuse::run_everything(fuse::Reason::kUser); });
}

}  // namespace tessera::python
