// Kernels and reductions: memory made ready, arguments laid out, the backend called.
#include "tessera/base/blocking.h"
#include "tessera/call/mismatch.h"
#include "tessera/driver/current.h"
#include "tessera/fuse/stream.h"
#include "tessera/ops/call.h"

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
  for (size_t i = 0; i < inputs.size(); ++i) {
    fuse::ensure_readable(inputs[i]);
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

TensorBase reduce(const ReduceBody& body, const TensorBase& in, const Dims& dims, bool keepdim,
                  DType out_dtype) {
  Dims kept_sizes, kept_strides, reduced_sizes, reduced_strides, shape;
  size_t next = 0;
  for (int d = 0; d < in.dim(); ++d) {
    if (next < dims.size() && dims[next] == d) {
      reduced_sizes.push_back(in.sizes()[d]);
      reduced_strides.push_back(in.strides()[d]);
      if (keepdim) shape.push_back(1);
      ++next;
    } else {
      kept_sizes.push_back(in.sizes()[d]);
      kept_strides.push_back(in.strides()[d]);
      shape.push_back(in.sizes()[d]);
    }
  }
  auto merge = [](Dims& sizes, Dims& strides) {
    size_t n = 0;
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d] == 1) continue;
      if (n > 0 && strides[n - 1] == strides[d] * sizes[d]) {
        sizes[n - 1] *= sizes[d];
        strides[n - 1] = strides[d];
      } else {
        sizes[n] = sizes[d];
        strides[n] = strides[d];
        ++n;
      }
    }
    sizes.resize(n);
    strides.resize(n);
  };
  int64_t kept = 1, reduced = 1;
  for (int64_t n : kept_sizes) kept *= n;
  for (int64_t n : reduced_sizes) reduced *= n;
  merge(kept_sizes, kept_strides);
  merge(reduced_sizes, reduced_strides);

  TensorBase out = new_empty(shape, out_dtype, in.device());
  if (out.numel() == 0 || out.device().is_meta()) return out;
  fuse::ensure_readable(in);
  RegClass cls = reg_class(out_dtype);
  if (cls == RegClass::kB8 && !body.loops[0][static_cast<int>(cls)].run) cls = RegClass::kI64;
  ReduceProgram program{&body,
                        cls,
                        kept_sizes.ndim(),
                        kept_sizes.data(),
                        reduced_sizes.ndim(),
                        reduced_sizes.data(),
                        kept,
                        reduced,
                        in.numel() ? in.raw() : nullptr,
                        in.dtype(),
                        kept_strides.data(),
                        reduced_strides.data(),
                        out.raw(),
                        out_dtype};
  Exec exec = exec_for(in.device());
  Status status;
  if (in.numel() < kLongWork) {
    status = backend_of(in.device()).run_reduce(exec, &program);
  } else {
    BlockingScope scope;
    status = backend_of(in.device()).run_reduce(exec, &program);
  }
  check(status, body.name);
  return out;
}

}  // namespace tessera
