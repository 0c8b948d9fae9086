// Kernels and reductions: memory made ready, arguments laid out, the backend called.
#include "tessera/base/blocking.h"
#include "tessera/call/mismatch.h"
#include "tessera/driver/current.h"
#include "tessera/fuse/rows.h"
#include "tessera/fuse/stream.h"
#include "tessera/ops/call.h"
#include "tessera/ops/modes.h"
#include "tessera/ops/support.h"

namespace tessera {

namespace {

constexpr int64_t kLongWork = 1 << 15;  // elements from which other Python threads may go on

KernelTensor describe(const TensorBase& t) {
  return {t.raw(), t.dtype(), t.dim(), t.sizes().data(), t.strides().data(), t.numel()};
}

// A record that did not look at its arguments' devices: the binder names those of the program's
// call.
[[noreturn]] void refuse_two_devices(const char* kernel, std::span<const TensorBase> outputs,
                                     std::span<const TensorBase> inputs) {
  const TensorBase& out = outputs[0];
  DeviceMismatch::Argument first{"an output", out}, second = first;
  for (std::span<const TensorBase> list : {outputs, inputs})
    for (size_t i = 0; i < list.size(); ++i)
      if (!(list[i].device() == out.device())) second = {cat("operand ", i), list[i]};
  throw DeviceMismatch(kernel, std::move(first), std::move(second));
}

// A kernel may read its outputs, and may leave elements of them as they are.
void pass_marks(std::span<const TensorBase> outputs, std::span<const TensorBase> inputs) {
  if (!has_marks()) [[likely]]
    return;
  PassedMarks marks;
  for (const TensorBase& t : inputs) marks.read(t);
  for (const TensorBase& t : outputs) marks.update(t);
  for (const TensorBase& t : outputs) marks.write(t, false);
}

}  // namespace

bool has_kernel(Device device, const char* kernel) {
  return device.is_meta() || backend_of(device).has_kernel(kernel);
}

void launch(const char* kernel, std::span<const TensorBase> outputs,
            std::span<const TensorBase> inputs, std::span<const int64_t> ints,
            std::span<const double> doubles) {
  const Device device = outputs[0].device();
  for (std::span<const TensorBase> list : {outputs, inputs})
    for (const TensorBase& t : list)
      if (!(t.device() == device)) [[unlikely]]
        refuse_two_devices(kernel, outputs, inputs);
  if (device.is_meta()) return;
  pass_marks(outputs, inputs);
  constexpr size_t kMax = 8;
  KernelTensor on_stack[2 * kMax];
  std::vector<KernelTensor> many;  // lists of tensors
  KernelTensor* out = on_stack;
  KernelTensor* in = on_stack + kMax;
  if (outputs.size() > kMax || inputs.size() > kMax) {
    many.resize(outputs.size() + inputs.size());
    out = many.data();
    in = out + outputs.size();
  }
  int64_t work = 0;
  fuse::ensure_readable(inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    in[i] = describe(inputs[i]);
    work += inputs[i].numel();
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    fuse::ensure_writable(outputs[i]);
    out[i] = describe(outputs[i]);
    work += outputs[i].numel();
  }
  KernelArgs args{static_cast<int>(outputs.size()), out,
                  static_cast<int>(inputs.size()),  in,
                  static_cast<int>(ints.size()),    ints.data(),
                  static_cast<int>(doubles.size()), doubles.data()};
  Status status;
  if (work < kLongWork) {
    status = backend_of(device).run_kernel(exec_for(device), kernel, &args);
  } else {
    BlockingScope scope;
    status = backend_of(device).run_kernel(exec_for(device), kernel, &args);
  }
  check(status, kernel);
}

bool supports(Device device, const char* kernel, std::span<const KernelTensor> operands,
              std::span<const int64_t> ints) {
  if (device.is_meta() || !has_kernel(device, kernel)) return false;
  const KernelArgs args{0,
                        nullptr,
                        static_cast<int>(operands.size()),
                        operands.data(),
                        static_cast<int>(ints.size()),
                        ints.data(),
                        0,
                        nullptr};
  Status status = backend_of(device).run_kernel(exec_for(device), kernel, &args);
  if (status.code == Code::kUnsupported) return false;
  check(status, kernel);
  return true;
}

bool is_recorded(std::initializer_list<TensorBase> tensors) {
  if (!records_gradients()) return false;
  for (const TensorBase& t : tensors)
    if (t.requires_grad()) return true;
  return false;
}

Dims reduced_dims(const Call& call, int arg, int ndim) {
  Dims dims;
  if (call.has(arg))
    for (int64_t d : call.args[arg].ints) dims.push_back(wrap_dim(d, ndim));
  std::sort(dims.begin(), dims.end());
  for (size_t i = 1; i < dims.size(); ++i)
    TS_CHECK(dims[i] != dims[i - 1], "dim ", dims[i],
             " appears multiple times in the list of dims");
  if (ndim == 0) return {};
  if (dims.empty())
    for (int d = 0; d < ndim; ++d) dims.push_back(d);
  return dims;
}

namespace {

// May a kernel on these wait? Its results are fresh; what has left us is read at once.
bool may_wait(Device device, std::span<const TensorBase> inputs) {
  if (device.is_meta() || !fuse::defers(device)) return false;
  if (inputs[0].numel() == 0) return false;
  bool pending = false;
  for (const TensorBase& t : inputs) {
    if (t.storage().exposed.load(std::memory_order_relaxed)) return false;
    pending |= t.storage().pending.load(std::memory_order_relaxed) != nullptr;
  }
  return pending || !device.is_cpu() || inputs[0].numel() > fuse::tiny();
}

}  // namespace

void launch_later(const char* kernel, std::span<const TensorBase> outputs,
                  std::span<const TensorBase> inputs, std::span<const int64_t> ints,
                  std::span<const double> doubles, const Rows& rows) {
  const Device device = outputs[0].device();
  bool together = true;
  for (std::span<const TensorBase> list : {outputs, inputs})
    for (const TensorBase& t : list) together &= t.device() == device;
  if (together && may_wait(device, inputs)) {
    pass_marks(outputs, inputs);
    fuse::stream_of(device).record({kernel, nullptr, outputs, inputs, ints, doubles, rows});
    return;
  }
  if (device.is_meta()) return;
  // As rows, in two dimensions.
  std::vector<TensorBase> as_rows;
  auto flat = [&](const TensorBase& t) {
    const Dims sizes{rows.rows, t.numel() / rows.rows};
    return alias(t, sizes, contiguous_strides(sizes), t.storage_offset());
  };
  for (const TensorBase& t : outputs) {
    allocate(t.storage());
    as_rows.push_back(flat(t));
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    as_rows.push_back((rows.whole >> i & 1) != 0 ? flat(inputs[i]) : inputs[i]);
  const std::span all(as_rows);
  launch(kernel, all.first(outputs.size()), all.subspan(outputs.size()), ints, doubles);
}

TensorBase reduce(const ReduceBody& body, const TensorBase& in, const Dims& dims, bool keepdim,
                  DType out_dtype) {
  Dims shape;
  size_t next = 0;
  int64_t kept = 1, reduced = 1;
  for (int d = 0; d < in.dim(); ++d) {
    const bool goes = next < dims.size() && dims[next] == d;
    next += goes;
    (goes ? reduced : kept) *= in.sizes()[d];
    if (!goes || keepdim) shape.push_back(goes ? 1 : in.sizes()[d]);
  }
  TensorBase out = new_unallocated(shape, out_dtype, in.device());
  if (out.device().is_meta()) return out;
  // Here, on the caller's line: a device, or whoever reads the result, would say so later.
  const auto has = [&body](RegClass cls) {
    return body.loops[0][static_cast<int>(cls)].run != nullptr;
  };
  TS_CHECK_IMPLEMENTED(out.numel() == 0 || has(reg_class(out_dtype)) ||
                           (out_dtype == DType::kBool && has(RegClass::kI64)),
                       body.name, "(): not implemented for ", dtype_name(out_dtype));
  pass_marks({&out, 1}, {&in, 1});
  constexpr int kMostDims = 8;  // of what surely finds a kernel
  if (out.numel() > 0 && in.dim() <= kMostDims && may_wait(in.device(), {&in, 1})) {
    // Of the last dimensions: of each row.
    const bool last = in.is_contiguous() &&
                      (dims.empty() || dims[0] == in.dim() - static_cast<int64_t>(dims.size()));
    Rows rows{0, 0, last ? kept : 0, reduced, -1};
    fuse::stream_of(in.device())
        .record({body.name, &body, {&out, 1}, {&in, 1}, dims.span(), {}, rows});
    return out;
  }
  allocate(out.storage());
  if (out.numel() == 0) return out;
  fuse::ensure_readable(in);
  fuse::Reduction reduction(body, in.dtype(), in.sizes(), in.strides(), dims.span(), out_dtype);
  reduction.program.in = in.numel() ? in.raw() : nullptr;
  reduction.program.out = out.raw();
  Exec exec = exec_for(in.device());
  Status status;
  if (in.numel() < kLongWork) {
    status = backend_of(in.device()).run_reduce(exec, &reduction.program);
  } else {
    BlockingScope scope;
    status = backend_of(in.device()).run_reduce(exec, &reduction.program);
  }
  check(status, body.name);
  return out;
}

}  // namespace tessera
