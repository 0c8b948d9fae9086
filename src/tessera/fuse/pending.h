// What is recorded and has not run: pointwise operators, and kernels that pointwise work may join.
#pragma once
#include <memory>
#include <vector>

#include "tessera/base/source.h"
#include "tessera/fuse/pointwise.h"

namespace tessera::fuse {

struct PendingOp;

struct PendingOperand {
  Storage* storage = nullptr;  // holds a reference, counted in pending_refs
  int64_t offset = 0;
  DType dtype = DType::kFloat32;
  // The operator whose result it is, and its id: slots are used again, ids are not.
  PendingOp* producer = nullptr;
  int32_t value = -1;
  bool dense = true;  // row-major over the operator's shape; else strides say
  Dims strides;
};

// A reduction or a kernel over rows that waits for its turn. Its results are fresh.
struct PendingKernel {
  const char* name;
  const ReduceBody* body;  // of a reduction over `ints`, else null
  std::vector<int64_t> ints;
  std::vector<double> doubles;
  Rows rows;
  struct Place : PendingOperand {
    Dims shape;
  };
  std::vector<Place> outputs, inputs;
};

// Whether an operator waits for memory; see Note [Parked operators] in stream.cpp.
enum class Parked : uint8_t {
  kNo,
  kFailed,    // a run that did not need its result had no memory for it
  kReported,  // the error has been raised
};

struct PendingOp {
  // State of the run that is under way.
  bool selected;
  bool done;
  bool live;    // its value is needed
  bool store;   // its value is written to memory
  bool in_run;  // belongs to a run in several pieces
  bool failed;  // had no memory in this run

  Parked parked;
  int group;
  uint16_t value;  // the instruction that holds its result

  int32_t id;
  const Op* op;
  const PointwiseBody* body;
  RegClass cls;
  DType common;
  DType result;
  uint8_t num_sources;
  uint8_t num_scalars;
  bool immediate[kMaxSources];
  bool wide[kMaxSources];
  Scalar immediates[kMaxSources];
  Scalar scalars[kMaxScalars];
  int64_t numel;
  Dims shape;
  PendingOperand out;
  PendingOperand sources[kMaxSources];
  SourceRef source;  // where it was called; empty unless source_lines()
  uint64_t call;     // the event of its call, while a profile is on; else 0
  // Null for a pointwise operator; `out` and `sources` mean nothing for a kernel.
  std::unique_ptr<PendingKernel> kernel;

  const char* name() const { return kernel ? kernel->name : op->name.c_str(); }

  // f(operand, shape) for everything it writes, or reads.
  template <class F>
  void each_output(F f) const {
    if (!kernel) return f(out, shape);
    for (const PendingKernel::Place& o : kernel->outputs) f(o, o.shape);
  }
  template <class F>
  void each_input(F f) const {
    if (kernel) {
      for (const PendingKernel::Place& o : kernel->inputs) f(o, o.shape);
      return;
    }
    for (int k = 0; k < num_sources; ++k)
      if (!immediate[k]) f(sources[k], shape);
  }
};

// Same storage, same elements, in the same order of iteration.
bool same_place(const PendingOperand& a, const Dims& shape_a, const PendingOperand& b,
                const Dims& shape_b);
// The operator whose result the operand is, as long as that is pending.
inline PendingOp* pending_producer(const PendingOperand& o) {
  return o.producer && o.producer->id == o.value ? o.producer : nullptr;
}

}  // namespace tessera::fuse
