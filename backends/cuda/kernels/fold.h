// Lines folded to one state each: the skeleton of reductions that keep more than one number, and
// what an operator gives to it.
#pragma once
#include <string>

#include "../kernels.h"
#include "../walk.h"

namespace tessera::cuda {

// The text of an operator:
//   struct State;                               a multiple of 4 bytes, at most 32
//   State none();                               the neutral one
//   State join(const State& a, const State& b);
//   T::A pivot(const T::S* line, int64_t n);    a number of the line that `of` is given
//   State of(const T::A (&v)[N], int count, int64_t first, int64_t step, T::A pivot);
//     of the first `count` of a thread's elements; element i of run k is first + k * step + i
//   void finish(const Params& p, int64_t line, const State& s);
// T is the dtype of the input, O that of the first output, OUTPUTS their number, OPTION the
// operator's own.
struct FoldOp {
  const char* entry;
  const char* merge_entry;
  std::string text, merge_text;
};
FoldOp make_fold(const char* entry, const char* merge_entry, const char* text);

struct FoldParams {
  const void* x;
  void* out[2];
  CUdeviceptr parts;
  int64_t n, lines, piece, splits;
  double number;  // the operator's own
  Walk<1> kept, along;
};

// The elements of x along `along`, for every point of `kept`; out, number and the walks are filled
// in by the caller.
Status run_fold(Device& d, CUstream stream, const FoldOp& op, const KernelTensor& x, FoldParams& p,
                DType out, int outputs, int64_t option = 0);

}  // namespace tessera::cuda
