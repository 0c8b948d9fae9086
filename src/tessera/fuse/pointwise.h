// One pointwise operator after the type and shape rules, and how it becomes instructions.
#pragma once
#include "tessera/driver/program.h"
#include "tessera/ops/record.h"

namespace tessera::fuse {

inline constexpr int kMaxScalars = 3;

struct PointwiseSource {
  const TensorBase* tensor = nullptr;  // null: an immediate
  Scalar immediate;
  bool wide = false;  // a 0-d tensor beside half floats: read in float, not rounded as they are
};

struct Pointwise {
  const Op* op;
  const PointwiseBody* body;
  DType common;  // sources of kind T are converted to it
  DType result;  // the result is rounded to it; converted to the output's dtype where that differs
  const Dims* shape;  // iteration space
  int num_sources = 0;
  int num_scalars = 0;
  PointwiseSource sources[kMaxSources];
  Scalar scalars[kMaxScalars];
};

// The register class `body` computes in for values of `common`; raises NotImplementedError when the
// body is not defined on it.
RegClass compute_class(const Op& op, const PointwiseBody& body, DType common);

// A source as lowering sees it: where it comes from, and the dtype it has there.
struct LoweredSource {
  Source source;
  DType dtype;
  bool immediate = false;
  bool wide = false;
  Scalar scalar;
};

// Appends instructions to arrays the caller provides. At most kMaxInstrsPerOp are used per
// operator.
inline constexpr int kMaxInstrsPerOp = 2 * kMaxSources + 3;
inline constexpr int kMaxImmediatesPerOp = kMaxSources + kMaxScalars;
struct ProgramBuilder {
  Instr* instrs;
  Imm* immediates;
  RegClass* immediate_cls;
  int num_instrs = 0;
  int num_immediates = 0;

  // Returns the value that holds the result in the form of `out`.
  uint16_t lower(const PointwiseBody& body, RegClass cls, DType common, DType result, DType out,
                 const LoweredSource* sources, int num_sources, const Scalar* scalars,
                 int num_scalars);

 private:
  uint16_t convert(Source s, DType from, DType to);
  uint16_t immediate(const Scalar& s, RegClass cls);
};

// Drops dimensions of size one, orders dimensions by the leading operand's strides and merges those
// that every operand steps through as one. `strides[k]` is the row of operand k.
void merge_dims(Dims& sizes, std::span<Dims> strides, size_t leading = 0);

// Runs one operator now, as a group of one. Inputs and output have memory.
void run_now(const Pointwise& p, const TensorBase& out);

}  // namespace tessera::fuse
