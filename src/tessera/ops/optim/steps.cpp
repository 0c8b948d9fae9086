#include "tessera/ops/optim/steps.h"
#include "tessera/driver/current.h"
#include "tessera/driver/used.h"
#include "tessera/memory/capture.h"

#include "tessera/gen/binary.h"
#include "tessera/gen/complex.h"
#include "tessera/gen/unary.h"
#include "tessera/ops/loops.h"
#include "tessera/ops/reserve.h"

namespace tessera {

namespace optim {

constexpr int kGradients = 1;  // the list of gradients in the schemas of all steps

void check_lists(const Call& call, std::initializer_list<int> lists) {
  size_t count = call.tensors(0).size();
  for (int i : lists) {
    size_t size = call.tensors(i).size();
    TS_CHECK(size == count || size == 0, call.op.name, ": ", count, " parameters, but ", size, " ",
             call.op.args[static_cast<size_t>(i)].name);
  }
  for (const TensorBase& p : call.tensors(0))
    TS_CHECK_IMPLEMENTED(is_floating(p.dtype()), call.op.name, " of ", p.dtype(),
                         " parameters is not implemented in Tessera yet");
  std::vector<TensorBase> written(call.tensors(0).begin(), call.tensors(0).end());
  for (int i : lists)
    if (i != kGradients)
      written.insert(written.end(), call.tensors(i).begin(), call.tensors(i).end());
  reserve_for_writes(written, call.tensors(kGradients));
}

bool any_complex(const Call& call) {
  for (const TensorBase& p : call.tensors(0))
    if (is_complex(p.dtype())) return true;
  return false;
}

Outputs step_of_reals(const Call& call) {
  std::vector<Value> args(call.args.begin(), call.args.end());
  std::vector<std::vector<TensorBase>> lists;
  lists.reserve(args.size());  // the arguments point into them
  for (Value& arg : args) {
    if (arg.tag != Value::Tag::kTensors) continue;
    std::vector<TensorBase>& reals = lists.emplace_back(arg.tensors.begin(), arg.tensors.end());
    for (TensorBase& t : reals)
      if (is_complex(t.dtype())) t = op::view_as_real(t);
    arg = Value(std::span<const TensorBase>(reals));
  }
  call.op.record->run(Call{call.op, args});
  return call.tensors(0)[0];
}

namespace {

// Memory of the CPU that no pending work reads or writes: looked at and written directly.
bool is_plain(const TensorBase& t) {
  return t.device().is_cpu() && t.numel() == 1 &&
         t.storage().pending.load(std::memory_order_acquire) == nullptr && t.storage().data;
}

double load(const TensorBase& t) {
  switch (t.dtype()) {
    case DType::kFloat32:
      return *reinterpret_cast<const float*>(t.raw());
    case DType::kFloat64:
      return *reinterpret_cast<const double*>(t.raw());
    case DType::kInt64:
      return static_cast<double>(*reinterpret_cast<const int64_t*>(t.raw()));
    default:
      TS_CHECK(false, "an optimizer's state holds a number as ", t.dtype(),
               "; expected float32, float64 or int64");
      return 0;
  }
}

}  // namespace

double read_number(const TensorBase& t) { return load(is_plain(t) ? t : host_data(t)); }

void write_number(const TensorBase& t, double value) {
  if (!is_plain(t) || (t.dtype() != DType::kFloat32 && t.dtype() != DType::kFloat64))
    return fill(t, Scalar(value));
  if (t.dtype() == DType::kFloat32)
    *reinterpret_cast<float*>(t.raw()) = static_cast<float>(value);
  else
    *reinterpret_cast<double*>(t.raw()) = value;
  count_write(t);
}

double scale_number(const TensorBase& t, double factor) {
  double value = read_number(t);
  // As PyTorch multiplies a float32 by a number: both are rounded first.
  value = t.dtype() == DType::kFloat32 ? static_cast<float>(value) * static_cast<float>(factor)
                                       : value * factor;
  write_number(t, value);
  return value;
}

double count_step(const TensorBase& step) {
  if (accelerator_used()) {
    const int device = current_device();
    memory::refuse_in_capture(
        device, current_stream(device),
        "the step of an optimizer that counts its steps on the host (Adam and "
        "AdamW with capturable=True count them on the device)");
  }
  double next = read_number(step) + 1;
  write_number(step, next);
  return next;
}

TensorBase gradient(const TensorBase& grad, const TensorBase& param, bool maximize,
                    double weight_decay) {
  TensorBase g = maximize ? op::neg(grad) : grad;
  return weight_decay == 0 ? g : op::add(g, param, Scalar(weight_decay));
}

}  // namespace optim

// Towards `other` by a share of the way, from the nearer end.
TS_BODY(optim_toward, "tt", 't', 1, (TS_FLOATS), T gap = b - a;
        return select(s0 < T(0.5), a + s0 * gap, b - gap * (T(1) - s0));)
TS_OP({
    .schema = "_optim_toward(Tensor self, Tensor other, float weight) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kSame,
    .forms = kFunction | kInplace,
    .body = &optim_toward_body,
    .not_differentiable = true,
});

TS_BODY(optim_add_square, "tt", 't', 2, (TS_FLOATS), return a * s0 + s1 * b * b;)
TS_OP({
    .schema = "_optim_add_square(Tensor self, Tensor other, float keep, float share) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kSame,
    .forms = kFunction | kInplace,
    .body = &optim_add_square_body,
    .not_differentiable = true,
});

// self - size * direction / (sqrt(square) / root + eps).
TS_BODY(optim_descend, "ttt", 't', 3, (TS_FLOATS), return a - s0 * b / (sqrt(c) / s1 + s2);)
TS_OP({
    .schema = "_optim_descend(Tensor self, Tensor direction, Tensor square, float size, "
              "float root, float eps) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kSame,
    .forms = kFunction | kInplace,
    .body = &optim_descend_body,
    .not_differentiable = true,
});

}  // namespace tessera
