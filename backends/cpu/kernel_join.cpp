// cat: several tensors side by side along a dimension, in one pass.
#include <algorithm>
#include <cstring>

#include "kernels.h"
#include "scratch.h"
#include "strided.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

// Bytes that a piece of the work moves at least.
constexpr int64_t kPieceBytes = 64 * 1024;

// An input as [outer, run]: a run is all that lies behind one position of the dimensions before
// the joined one, and goes to the output as one piece.
struct Part {
  const KernelTensor* t;
  int64_t run;     // elements
  int64_t before;  // elements of the output's run that come first
  bool dense;      // a run is dense, and so is what steps over them
};

}  // namespace

// ints: the dimension. The output is row-major; inputs have its dtype, and any strides.
Status cat(const KernelArgs& args) {
  const KernelTensor& out = args.outputs[0];
  const int dim = static_cast<int>(args.ints[0]);
  const int64_t item = static_cast<int64_t>(itemsize(out.dtype));
  int64_t outer = 1, whole = 1;
  for (int d = 0; d < dim; ++d) outer *= out.sizes[d];
  for (int d = dim; d < out.ndim; ++d) whole *= out.sizes[d];
  if (outer == 0 || whole == 0) return {};
  OutOfScratch failure;
  Scratch memory(static_cast<size_t>(args.num_inputs) * sizeof(Part), failure);
  Part* parts = static_cast<Part*>(memory.get());
  if (!parts) return failure.status("cat");
  int64_t before = 0;
  for (int i = 0; i < args.num_inputs; ++i) {
    const KernelTensor& t = args.inputs[i];
    Part& p = parts[i];
    p = {&t, 1, before, true};
    for (int d = t.ndim - 1; d >= 0; --d) {
      int64_t expected = p.run;
      if (d < dim)
        for (int e = d + 1; e < dim; ++e) expected *= t.sizes[e];
      if (t.sizes[d] != 1 && t.strides[d] != expected) p.dense = false;
      if (d >= dim) p.run *= t.sizes[d];
    }
    before += p.run;
  }
  char* to = static_cast<char*>(out.data);
  // Pieces of the output, wherever they begin: few long inputs and many short ones alike.
  parallel_for(
      0, outer * whole, std::max<int64_t>(1, kPieceBytes / item), [&](int64_t b, int64_t e) {
        int64_t o = b / whole, at = b % whole;
        int i = static_cast<int>(
                    std::upper_bound(parts, parts + args.num_inputs, at,
                                     [](int64_t x, const Part& p) { return x < p.before; }) -
                    parts) -
                1;
        for (int64_t left = e - b; left > 0;) {
          const Part& p = parts[i];
          const int64_t skip = at - p.before, n = std::min(left, p.run - skip);
          if (n > 0) {
            char* dst = to + (o * whole + at) * item;
            const char* src = static_cast<const char*>(p.t->data);
            if (p.dense) {
              std::memcpy(dst, src + (o * p.run + skip) * item, static_cast<size_t>(n * item));
            } else {
              int64_t coords[kMaxDims];
              unravel(o * p.run + skip, p.t->ndim, p.t->sizes, coords);
              gather_run(dst, src, p.t->ndim, p.t->sizes, p.t->strides, coords, n,
                         static_cast<size_t>(item));
            }
            at += n;
            left -= n;
          }
          if (at == whole && left > 0) {
            at = 0;
            ++o;
            i = 0;
          } else if (left > 0) {
            ++i;
          }
        }
      });
  return {};
}

TS_KERNEL("cat", cat)

}  // namespace tessera::cpu
