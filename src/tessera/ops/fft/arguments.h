// Arguments that the Fourier transforms share: lengths, dimensions and norms.
#pragma once
#include "tessera/ops/call.h"

namespace tessera::fft {

// Which power of 1 / sqrt(n) a result is multiplied by.
enum Norm : int64_t { kNone = 0, kRoot = 1, kFull = 2 };
double scale_of(int64_t norm, const Dims& sizes, const Dims& dims);

// "backward" (None), "ortho" or "forward", of a transform in this direction.
int64_t norm_of(const Call& c, int arg, bool forward);

// As a floating-point or complex tensor; half floats have no transform on the CPU.
TensorBase promoted(const TensorBase& t);
// Raises, naming the operator, where the input is complex.
void check_real(const Call& c, const TensorBase& t);

// The dimensions of a transform and the lengths there, -1 where the input's is kept.
struct Axes {
  Dims dims;
  Dims sizes;
};
// Of `int? n, int dim`.
Axes one_axis(const Call& c, int n, int dim);
// Of `int[1]? s=None, int[1]? dim=None`: the last dimensions, as many as s has; without s all, or
// of fft2 and its kind the last two.
enum Default : uint8_t { kAll, kTwo };
Axes many_axes(const Call& c, int s, int dim, Default otherwise);
// ... of a transform to reals, which takes half as many along the last one as it gives; *last gets
// the number given.
Axes axes_to_real(const Call& c, int s, int dim, Default otherwise, int64_t* last);

// One dimension as a list of dimensions; the argument outlives the call.
inline std::span<const int64_t> over(const int64_t& dim) { return {&dim, 1}; }

// Cut or padded with zeros at the end.
TensorBase resized(const TensorBase& t, const Axes& axes);

}  // namespace tessera::fft
