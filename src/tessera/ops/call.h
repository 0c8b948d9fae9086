// What records are written with: the arguments of a call, the gradient's view of it, launches.
#pragma once
#include "tessera/driver/program.h"
#include "tessera/ops/record.h"

namespace tessera {

namespace detail {
template <int64_t N>
inline constexpr int64_t one_int_storage[] = {N};
// A list of one number, as a default argument.
template <int64_t N>
inline constexpr std::span<const int64_t> one_int{one_int_storage<N>, 1};
}  // namespace detail

// The arguments of one call, complete with defaults, in the order of the schema.
struct Call {
  const Op& op;
  Args args;
  const TensorBase* inplace = nullptr;  // the tensor that the in-place form of updates_self writes

  const TensorBase& tensor(int i) const { return *args[i].tensor; }
  bool has(int i) const { return !args[i].is_none(); }
  Scalar scalar(int i) const { return args[i].scalar; }
  int64_t integer(int i) const { return args[i].scalar.to_int(); }
  double number(int i) const { return args[i].scalar.to_double(); }
  bool flag(int i) const { return args[i].scalar.to_int() != 0; }
  Dims ints(int i) const { return Dims(args[i].ints); }
  std::span<const TensorBase> tensors(int i) const { return args[i].tensors; }
  std::span<const double> floats(int i) const { return args[i].floats; }
  std::string_view text(int i) const { return args[i].string; }
  // The argument as a tensor, undefined where it is None.
  TensorBase maybe(int i) const { return has(i) ? *args[i].tensor : TensorBase(); }
  Mt19937Generator* generator(int i) const { return has(i) ? args[i].generator : nullptr; }
  DType dtype(int i, DType otherwise) const { return has(i) ? args[i].dtype : otherwise; }
  // Of a tensor or a number.
  DType dtype_of(int i) const {
    return args[i].is_tensor() ? args[i].tensor->dtype() : args[i].scalar.dtype();
  }
};

// A tensor that an operator was called with, or that it returned, as backward still knows it.
struct Geometry {
  Dims sizes;
  DType dtype = DType::kFloat32;
  Device device;
  bool by_columns = false;  // each matrix of it lies column by column, as a transposed one does
};

// What a gradient sees: the gradients of the results, what was saved, the call's other arguments.
struct Backward {
  // Of the first result; zeros where only other results were used.
  const TensorBase& grad;
  std::span<const TensorBase> result_grads;  // of each result, undefined where not used
  std::span<const Value> args;               // tensors only where saved
  const TensorBase& result;                  // the first one, only where saved
  std::span<const TensorBase> results;       // only where saved
  std::span<const Geometry> result_geometry;
  // Slots are the tensor arguments one after the other, lists spread out; first_slot[i] is that of
  // argument i, first_slot[i + 1] its end.
  std::span<const int> first_slot;
  std::span<const Geometry> slots;
  std::span<const bool> wanted;
  std::span<TensorBase> grads;  // of each slot, to be filled
  bool by_hooks;                // some of what was saved came back through the program's hooks
  bool in_place;                // of the in-place variant

  bool wants(int i, int k = 0) const {
    int at = first_slot[i] + k;
    return at < first_slot[i + 1] && wanted[at];
  }
  // Any element of a list.
  bool wants_any(int i) const {
    for (int at = first_slot[i]; at < first_slot[i + 1]; ++at)
      if (wanted[at]) return true;
    return false;
  }
  // The engine sums broadcast dimensions away and converts to the argument's dtype.
  void set(int i, TensorBase g) { grads[first_slot[i]] = std::move(g); }
  void set(int i, int k, TensorBase g) { grads[first_slot[i] + k] = std::move(g); }
  int list_size(int i) const { return first_slot[i + 1] - first_slot[i]; }
  const Dims& shape(int i, int k = 0) const { return slots[first_slot[i] + k].sizes; }
  DType dtype(int i, int k = 0) const { return slots[first_slot[i] + k].dtype; }
  Device device(int i, int k = 0) const { return slots[first_slot[i] + k].device; }
  bool by_columns(int i) const { return slots[first_slot[i]].by_columns; }
  // The gradient of result k; zeros where it was not used.
  TensorBase grad_of(int k) const;
  bool has_grad(int k) const { return result_grads[k].defined(); }

  const TensorBase& tensor(int i) const { return *args[i].tensor; }
  std::span<const TensorBase> tensors(int i) const { return args[i].tensors; }
  bool is_tensor(int i) const { return args[i].is_tensor(); }
  Scalar scalar(int i) const { return args[i].scalar; }
  int64_t integer(int i) const { return args[i].scalar.to_int(); }
  double number(int i) const { return args[i].scalar.to_double(); }
  bool flag(int i) const { return args[i].scalar.to_int() != 0; }
  Dims ints(int i) const { return Dims(args[i].ints); }
  std::string_view text(int i) const { return args[i].string; }
  bool has(int i) const { return !args[i].is_none(); }
  // Is argument i, which was saved, the only way to its memory, and all of that, and will nobody go
  // backward here again? Its gradient may then take its place.
  bool is_last_use(int i) const;
};

// The call path (call/): autocast, rules, autograd, deferral or backend.
Outputs dispatch(const Op& op, Args args);
// `name_`: writes argument op.self_index and returns it.
TensorBase dispatch_inplace(const Op& op, Args args);
// `out=`: one tensor for each result.
void dispatch_out(const Op& op, Args args, std::span<const TensorBase> outs);
inline TensorBase dispatch_out(const Op& op, Args args, const TensorBase& out) {
  dispatch_out(op, args, std::span<const TensorBase>(&out, 1));
  return out;
}

// Has the device's backend this kernel? On the meta device every launch is one that does nothing.
bool has_kernel(Device device, const char* kernel);
// Runs a named kernel of the device's backend. Pending work that the inputs need runs first.
// Outputs have memory already.
void launch(const char* kernel, std::span<const TensorBase> outputs,
            std::span<const TensorBase> inputs, std::span<const int64_t> ints = {},
            std::span<const double> doubles = {});
// The same for outputs without memory: may wait, and take in pointwise work before and after it.
// The ints are those of the kernel in two dimensions, see Rows.
void launch_later(const char* kernel, std::span<const TensorBase> outputs,
                  std::span<const TensorBase> inputs, std::span<const int64_t> ints,
                  std::span<const double> doubles, const Rows& rows);
// What a record with updates_self changes.
TensorBase target(const Call& call);
// `source` where it can be read while `target` is written: itself, or a copy where it lies in the
// same memory. Raises where PyTorch refuses.
TensorBase apart_from(const TensorBase& target, const TensorBase& source);
// Dense on the CPU and up to date, to be looked at through raw().
TensorBase host_data(const TensorBase& t);
// The common dtype of tensors and numbers among the arguments, as a pointwise operator promotes.
DType result_type(Args args);
// Raises unless all are on one device; names the operator and both arguments.
void check_same_device(const Op& op, Args args);
// Reduces `in` over `dims` (sorted, non-negative); the result has the kept dimensions only, or ones
// in the place of the reduced with keepdim.
TensorBase reduce(const ReduceBody& body, const TensorBase& in, const Dims& dims, bool keepdim,
                  DType out_dtype);
// The dtype that tensors have together: torch.result_type.
DType common_dtype(std::span<const TensorBase> tensors);
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
// The values of a tensor of integers, and of a tensor of one element, read on the host.
Dims host_ints(const TensorBase& t);
Scalar host_scalar(const TensorBase& t);
// Makes the storage of `t` at least so long, for all tensors over it; what is in it stays.
void grow_storage(const TensorBase& t, size_t nbytes);

}  // namespace tessera
