// Running a reduction.
#pragma once
#include "context.h"
#include "joins.h"
#include "kernel.h"
#include "reduce_text.h"

namespace tessera::cuda {

// Its kernels are found before the first is launched, so that work that may be put off (kernel.h)
// never waits for the second.
class PreparedReduction {
 public:
  PreparedReduction(const ReduceProgram& r, const Joins& joins) : r_(r), joins_(joins) {}
  Status prepare(Device& d, CUstream stream);
  Status run(Device& d, CUstream stream) const;

 private:
  const ReduceProgram& r_;
  Joins joins_;
  ReducePass first_{}, second_{};
  const Kernel* kernels_[2] = {};
};

Status run_reduce_on(Device& d, CUstream stream, const ReduceProgram& r,
                     const Joins& joins = {nullptr, nullptr});
// Several, none of which needs another; see Note [Batches of reductions].
Status run_reduces_on(Device& d, CUstream stream, const JoinedProgram* const* programs, int count);

}  // namespace tessera::cuda
