#include "tessera/fuse/check.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "tessera/driver/current.h"
#include "tessera/fuse/group.h"
#include "tessera/memory/capture.h"

namespace tessera::fuse {

namespace {

TensorBase tensor_at(const PendingOperand& o, const Dims& shape) {
  Dims strides = o.dense ? contiguous_strides(shape) : o.strides;
  return TensorBase(Ref<TensorImpl>::make(Ref<Storage>::share(o.storage), o.dtype, shape,
                                          std::move(strides), o.offset));
}

// A dense copy on the host of what lies at a strided place of the device.
std::vector<char> host_bytes(Device device, Exec exec, const TensorBase& t) {
  std::vector<char> raw(t.storage().nbytes);
  const Backend& b = backend_of(device);
  if (device.is_cpu()) {
    std::memcpy(raw.data(), t.storage().data, raw.size());
  } else {
    check(b.copy(exec, CopyKind::kDeviceToHost, raw.data(), t.storage().data, raw.size(), true),
          "reading a result to check it");
    check(b.stream_synchronize(exec.device, exec.stream), "reading a result to check it");
  }
  size_t item = itemsize(t.dtype());
  std::vector<char> out(static_cast<size_t>(t.numel()) * item);
  Dims index(t.sizes().size());
  for (int64_t i = 0; i < t.numel(); ++i) {
    int64_t at = t.storage_offset();
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * t.strides()[d];
    std::memcpy(&out[static_cast<size_t>(i) * item], &raw[static_cast<size_t>(at) * item], item);
    for (int d = t.dim() - 1; d >= 0; --d) {
      if (++index[d] < t.sizes()[d]) break;
      index[d] = 0;
    }
  }
  return out;
}

std::string hex(const char* p, size_t n) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out = "0x";
  for (size_t i = n; i-- > 0;) {
    unsigned char c = static_cast<unsigned char>(p[i]);
    out += digits[c >> 4];
    out += digits[c & 15];
  }
  return out;
}

}  // namespace

namespace {

// Work of the stream goes where its other work goes, whatever the calling thread's stream is.
class OnStream {
 public:
  OnStream(Device device, StreamHandle stream) : device_(device) {
    if (device.is_cpu()) return;
    before_ = current_stream(device.index);
    set_current_stream(device.index, stream);
  }
  ~OnStream() {
    if (device_.is_cuda()) set_current_stream(device_.index, before_);
  }

 private:
  Device device_;
  StreamHandle before_ = nullptr;
};

Pointwise as_pointwise(const PendingOp& op, const Dims& shape, TensorBase (&sources)[kMaxSources]) {
  Pointwise p{op.op, op.body, op.common, op.result, &shape, op.num_sources, op.num_scalars};
  for (int k = 0; k < op.num_sources; ++k) {
    p.sources[k].immediate = op.immediates[k];
    if (op.immediate[k]) continue;
    if (!sources[k].defined()) sources[k] = tensor_at(op.sources[k], shape);
    p.sources[k].tensor = &sources[k];
    p.sources[k].wide = op.wide[k];
  }
  for (int k = 0; k < op.num_scalars; ++k) p.scalars[k] = op.scalars[k];
  return p;
}

}  // namespace

// What is captured does not run, so there is nothing to compare.
bool GroupRunner::checks() const {
  return mode() == Mode::kCheck &&
         (stream_.device_.is_cpu() || !memory::capture_of(stream_.device_.index, stream_.stream_));
}

void GroupRunner::drop_references() {
  for (Group& g : groups_) g.reference.clear();
}

// The unfused reference: each operator as a group of one, into memory of its own.
void GroupRunner::check_group(const Group& g, std::vector<TensorBase>& reference,
                              const TensorBase* joined, const Storage* joined_storage) {
  reference.resize(g.ops.size());
  OnStream scope(stream_.device_, stream_.stream_);
  for (size_t n = 0; n < g.ops.size(); ++n) {
    const PendingOp& op = *g.ops[n];
    if (!op.live) continue;
    TensorBase sources[kMaxSources];
    for (int k = 0; k < op.num_sources; ++k) {
      if (op.immediate[k]) continue;
      if (joined && op.sources[k].storage == joined_storage) sources[k] = *joined;
      for (size_t m = 0; m < n; ++m)
        if (g.ops[m]->id == op.sources[k].value) sources[k] = reference[m];
    }
    Pointwise p = as_pointwise(op, *g.shape, sources);
    reference[n] = new_empty(*g.shape, op.out.dtype, stream_.device_);
    run_now(p, reference[n]);
  }
}

// What a backend cannot take as one program runs as the program order says.
void GroupRunner::run_one_by_one(const Group& g) {
  OnStream scope(stream_.device_, stream_.stream_);
  for (const PendingOp* op : g.ops) {
    if (!op->live) continue;
    allocate_result(op->out, *op);
    TensorBase sources[kMaxSources];
    Pointwise p = as_pointwise(*op, *g.shape, sources);
    run_now(p, tensor_at(op->out, *g.shape));
  }
}

void compare_stored(Device device, Exec exec, const Stored& result, const TensorBase& reference,
                    const std::function<std::string()>& description) {
  TensorBase fused = tensor_at(result.place, result.shape);
  std::vector<char> got = host_bytes(device, exec, fused);
  std::vector<char> want = host_bytes(device, exec, reference);
  if (got == want) return;
  size_t item = itemsize(result.place.dtype);
  size_t at = 0;
  while (std::memcmp(&got[at * item], &want[at * item], item) == 0) ++at;
  std::string report =
      cat("TESSERA_FUSE=check: the fused result differs from the unfused one\nvalue v", result.id,
          " of ", result.name, ", element ", at, ": fused ", hex(&got[at * item], item),
          ", unfused ", hex(&want[at * item], item), "\n", description());
  std::string file =
      cat("tessera_fuse_mismatch_", static_cast<int64_t>(getpid()), "_", result.id, ".txt");
  if (std::FILE* out = std::fopen(file.c_str(), "wx")) {
    std::fputs(report.c_str(), out);
    std::fclose(out);
    report += cat("written to ", file);
  }
  raise(ErrorKind::kInternal, report);
}

}  // namespace tessera::fuse
