// index_read, index_write, index_select, index_add, gather and scatter: what the operators hand
// over.
#include "indexed.h"

namespace tessera::cuda {
namespace {

// The operators' numbers for wrong indices begin with DataError::kIndex.
DataError error_of(int64_t number) {
  return static_cast<DataError>(static_cast<int32_t>(DataError::kIndex) +
                                static_cast<int32_t>(number));
}
// Does the caller ask for the same bits each time? Behind the numbers that a kernel needs.
bool asks_for_order(const KernelArgs& args, int at) {
  return args.num_ints > at && args.ints[at] != 0;
}

// inputs: the tensor, an index for each of the indexed dimensions; ints: dimensions before them,
// how many they are, how errors are worded, their numbers for the user.
Status run_index_read(Device& d, CUstream stream, const KernelArgs& args) {
  Indexed x;
  TS_TRY(Indexed::make(&x, args.inputs[0], static_cast<int>(args.ints[0]),
                       static_cast<int>(args.ints[1]), args.inputs + 1, args.outputs[0],
                       error_of(args.ints[2]), args.ints + 3));
  return x.read(d, stream);
}

// The same with values before the indices, and how they are combined before the numbers.
Status run_index_write(Device& d, CUstream stream, const KernelArgs& args) {
  const int count = static_cast<int>(args.ints[1]);
  Indexed x;
  TS_TRY(Indexed::make(&x, args.outputs[0], static_cast<int>(args.ints[0]), count, args.inputs + 1,
                       args.inputs[0], error_of(args.ints[2]), args.ints + 4));
  return x.combine(d, stream, static_cast<Combine>(args.ints[3]), asks_for_order(args, 4 + count));
}

Status run_index_select(Device& d, CUstream stream, const KernelArgs& args) {
  Indexed x;
  TS_TRY(Indexed::make(&x, args.inputs[0], static_cast<int>(args.ints[0]), 1, args.inputs + 1,
                       args.outputs[0], DataError::kSelect, args.ints));
  return x.read(d, stream);
}

// ints: the dimension.
Status run_index_add(Device& d, CUstream stream, const KernelArgs& args) {
  Indexed x;
  TS_TRY(Indexed::make(&x, args.outputs[0], static_cast<int>(args.ints[0]), 1, args.inputs,
                       args.inputs[1], DataError::kSelect, args.ints));
  return x.combine(d, stream, Combine::kAdd, asks_for_order(args, 1));
}

Status run_gather(Device& d, CUstream stream, const KernelArgs& args) {
  Indexed x;
  TS_TRY(Indexed::make_each(&x, args.inputs[0], args.inputs[1], args.outputs[0],
                            static_cast<int>(args.ints[0])));
  return x.read(d, stream);
}

// inputs: index, and src of its shape; ints: the dimension, how they are combined.
Status run_scatter(Device& d, CUstream stream, const KernelArgs& args) {
  Indexed x;
  TS_TRY(Indexed::make_each(&x, args.outputs[0], args.inputs[0], args.inputs[1],
                            static_cast<int>(args.ints[0])));
  return x.combine(d, stream, static_cast<Combine>(args.ints[1]), asks_for_order(args, 2));
}

TS_CUDA_KERNEL("index_read", run_index_read)
TS_CUDA_KERNEL("index_write", run_index_write)
TS_CUDA_KERNEL("index_select", run_index_select)
TS_CUDA_KERNEL("index_add", run_index_add)
TS_CUDA_KERNEL("gather", run_gather)
TS_CUDA_KERNEL("scatter", run_scatter)

}  // namespace
}  // namespace tessera::cuda
