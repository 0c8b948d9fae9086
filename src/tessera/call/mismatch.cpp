#include "tessera/call/mismatch.h"

#include "tessera/ops/call.h"

namespace tessera {

namespace {

using Argument = DeviceMismatch::Argument;

std::string place(const Argument& a) {
  return cat("'", a.name, "' of shape ", a.tensor.sizes(), " is on ", a.tensor.device());
}

std::string explain(const std::string& op_name, const Argument& first, const Argument& second) {
  // What is on the CPU moves; of two accelerators the second one.
  const Argument& moves = first.tensor.device().is_cpu() ? first : second;
  Device to = first.tensor.device().is_cpu() ? second.tensor.device() : first.tensor.device();
  return cat("Expected all tensors to be on the same device, but found at least two devices, ",
             first.tensor.device(), " and ", second.tensor.device(), "! In ", op_name,
             "(): ", place(first), ", ", place(second), ". Move '", moves.name,
             "' first: ", moves.name, " = ", moves.name, ".to('", to, "')");
}

// The first tensor of an operator's that is on another device than an earlier one.
class Search {
 public:
  // Tensors without dimensions may come from the CPU in many operators: they are blamed only when
  // nothing else differs.
  Search(const Op& op, bool with_numbers) : op_(op), with_numbers_(with_numbers) {}

  void look(const std::string& arg, int64_t at, const TensorBase& t) {
    if (!t.defined() || (t.dim() == 0 && !with_numbers_)) return;
    Argument found{at < 0 ? arg : cat(arg, "[", at, "]"), t};
    if (!first_.tensor.defined())
      first_ = std::move(found);
    else if (!(t.device() == first_.tensor.device()))
      throw DeviceMismatch(op_.name, std::move(first_), std::move(found));
  }

 private:
  const Op& op_;
  bool with_numbers_;
  Argument first_;
};

}  // namespace

DeviceMismatch::DeviceMismatch(std::string op_name, Argument first, Argument second)
    : Error(ErrorKind::kRuntime, explain(op_name, first, second)),
      op_name_(std::move(op_name)),
      first_(std::move(first)),
      second_(std::move(second)) {}

void check_same_device(const Op& op, Args args) {
  // Most calls are well: one pass that compares devices and makes no names.
  Device device;
  bool found = false, differ = false;
  auto compare = [&](const TensorBase& t) {
    if (!t.defined()) return;
    differ |= found && !(t.device() == device);
    device = t.device();
    found = true;
  };
  for (const Value& v : args) {
    if (v.is_tensor()) compare(*v.tensor);
    if (v.tag == Value::Tag::kTensors)
      for (const TensorBase& t : v.tensors) compare(t);
  }
  if (!differ) return;
  for (bool with_numbers : {false, true}) {
    Search search(op, with_numbers);
    for (size_t i = 0; i < args.size(); ++i) {
      if (args[i].is_tensor()) search.look(op.args[i].name, -1, *args[i].tensor);
      if (args[i].tag != Value::Tag::kTensors) continue;
      int64_t at = 0;
      for (const TensorBase& t : args[i].tensors) search.look(op.args[i].name, at++, t);
    }
  }
}

}  // namespace tessera
