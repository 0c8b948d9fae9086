// What records are written with: the arguments of a call, the gradient's view of it, launches.
#pragma once
#include "tessera/driver/program.h"
#include "tessera/ops/record.h"

namespace tessera {

// The arguments of one call, complete with defaults, in the order of the schema.
struct Call {
  const Op& op;
  Args args;

  const TensorBase& tensor(int i) const { return *args[i].tensor; }
  bool has(int i) const { return !args[i].is_none(); }
  Scalar scalar(int i) const { return args[i].scalar; }
  int64_t integer(int i) const { return args[i].scalar.to_int(); }
  double number(int i) const { return args[i].scalar.to_double(); }
  bool flag(int i) const { return args[i].scalar.to_int() != 0; }
  Dims ints(int i) const { return Dims(args[i].ints); }
  std::span<const TensorBase> tensors(int i) const { return args[i].tensors; }
  DType dtype(int i, DType otherwise) const { return has(i) ? args[i].dtype : otherwise; }
};

// What a gradient sees: the gradient of the result, what was saved, the call's other arguments.
struct Backward {
  const TensorBase& grad;
  std::span<const Value> args;   // tensors only where saved
  const TensorBase& result;      // only where saved
  std::span<const Dims> shapes;  // of each tensor argument, empty elsewhere
  std::span<const DType> dtypes;
  uint64_t wanted;              // bit i: argument i wants its gradient
  std::span<TensorBase> grads;  // to be filled

  bool wants(int i) const { return wanted >> i & 1; }
  // The engine sums broadcast dimensions away and converts to the argument's dtype.
  void set(int i, TensorBase g) { grads[i] = std::move(g); }
  const TensorBase& tensor(int i) const { return *args[i].tensor; }
  bool is_tensor(int i) const { return args[i].is_tensor(); }
  Scalar scalar(int i) const { return args[i].scalar; }
  int64_t integer(int i) const { return args[i].scalar.to_int(); }
  double number(int i) const { return args[i].scalar.to_double(); }
  bool flag(int i) const { return args[i].scalar.to_int() != 0; }
  Dims ints(int i) const { return Dims(args[i].ints); }
  bool has(int i) const { return !args[i].is_none(); }
};

// The call path (call/): autocast, rules, autograd, deferral or backend.
Outputs dispatch(const Op& op, Args args);
// `name_`: writes argument op.self_index and returns it.
TensorBase dispatch_inplace(const Op& op, Args args);
// `out=`.
TensorBase dispatch_out(const Op& op, Args args, const TensorBase& out);

// Runs a named kernel of the device's backend. Pending work that the inputs need runs first.
// Outputs have memory already.
void launch(const char* kernel, std::span<const TensorBase> outputs,
            std::span<const TensorBase> inputs, std::span<const int64_t> ints = {},
            std::span<const double> doubles = {});
// Raises unless all are on one device; names the operator and both arguments.
void check_same_device(const Op& op, Args args);
// Reduces `in` over `dims` (sorted, non-negative); the result has the kept dimensions only, or ones
// in the place of the reduced with keepdim.
TensorBase reduce(const ReduceBody& body, const TensorBase& in, const Dims& dims, bool keepdim,
                  DType out_dtype);
// Dimensions of an `int[1]? dim` argument: all when None or empty; duplicates raise.
Dims reduced_dims(const Call& call, int arg, int ndim);

// A pointwise body on its own, without autograd, deferred like any: what copies, fills and casts
// are made of. Sources broadcast to `out`, which may be fresh and without memory.
void pointwise_into(const Op& op, const PointwiseBody& body, Args sources, DType common,
                    const TensorBase& out);
// `out` has the shape of `self`, and its layout where that is dense.
TensorBase unallocated_like(const TensorBase& self, DType dtype);

// In-place on memory, without autograd: what copies and fills are made of.
void copy_into(const TensorBase& dst, const TensorBase& src, bool non_blocking);
void fill(const TensorBase& dst, Scalar value);

}  // namespace tessera
