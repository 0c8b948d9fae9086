// What the core hands to a backend: bodies, programs over them, and arguments of kernels. Plain
// data: raw pointers, sizes, strides and scalars. Nothing here knows of a Tensor, throws, or uses
// thread-local state, so any driver can run it on its own threads.
#pragma once
#include <cstdint>
#include <cstring>

#include "tessera/base/complex.h"
#include "tessera/base/dtype.h"

namespace tessera {

inline constexpr int kMaxDims = 64;
inline constexpr int kMaxSources = 4;

// One element in register form.
union Imm {
  float f32;
  double f64;
  int64_t i64;
  uint8_t b8;
  c64 c32;
  c128 c;
};

// Computes n elements; every source is a dense run of n registers (or of memory in register form).
using TileFn = void (*)(void* out, const void* const* in, const Imm* scalars, int64_t n);

enum class Isa : uint8_t { kBaseline, kAvx2, kAvx512 };
inline constexpr int kNumIsas = 3;

// One pointwise expression: compiled for the CPU, kept as text for code generators.
struct PointwiseBody {
  const char* name;
  // Statements ending in `return`; T is the compute type, sources are a, b, c, d; scalars s0, s1...
  const char* text;
  // One letter a source: 't' is T, 'b' is bool, 'r' the real type of a complex T.
  const char* sources;
  // What it returns: 't' is T, 'b' bool, 'r' the real type of a complex T, 'c' the complex one of
  // a real T.
  char result;
  int num_scalars;
  // [isa][register class of T]; null where the body is not defined on that class.
  TileFn tiles[kNumIsas][kNumRegClasses];
};

// One reduction, as map / combine / finish over an accumulator of type A.
struct ReduceBody {
  const char* name;
  const char* map_text;  // of `a`: what one element contributes
  const char*
      combine_text;  // of `x`, `y`: two partial results to one; associative in exact arithmetic
  const char* finish_text;  // of `x` and `n`, the number of elements reduced (an A)
  const char* init_text;    // the neutral element
  // Elements are dense and in register form; `acc` are accumulators side by side.
  struct Loops {
    // acc[c], c < count: of the n elements at in + c * stride, in the fixed tree of lanes.
    void (*run)(void* acc, const void* in, int64_t n, int64_t count, int64_t stride);
    // acc[i], i < n: combined with in[r * stride + i], one row after the other; `seen` elements
    // are in each already, and with none it begins at the neutral element.
    void (*rows)(void* acc, const void* in, int64_t n, int64_t rows, int64_t stride, int64_t seen);
    // acc[i] = combine(acc[i], other[i]); so many elements are in each of the two.
    void (*merge)(void* acc, const void* other, int64_t n, int64_t seen, int64_t other_seen);
    void (*finish)(void* acc, int64_t n, int64_t count);
  };
  Loops loops[kNumIsas][kNumRegClasses];
};

enum class SourceKind : uint8_t { kInput, kValue, kImmediate };
struct Source {
  SourceKind kind;
  uint16_t index;  // into inputs, instructions (its result) or immediates
};

// One operator of a group. Its sources are converted by explicit kConvert instructions, so every
// source of a kBody instruction is already in the class the body asks for.
struct Instr {
  enum class Kind : uint8_t { kBody, kConvert };
  Kind kind;
  RegClass cls;         // kBody: T.  kConvert: class of the source
  RegClass result_cls;  // class of the result register
  DType round_to;       // the result is rounded to this dtype (its class is result_cls)
  uint8_t num_sources;
  uint8_t num_scalars;
  uint16_t first_scalar;  // in GroupProgram::immediates, of class cls
  const PointwiseBody* body;
  Source sources[kMaxSources];
};

// Memory a group reads or writes. Strides are in elements, one per dimension of the iteration
// space.
struct Operand {
  void* data;
  DType dtype;
  const int64_t* strides;
};

struct GroupOutput {
  Operand to;
  uint16_t value;  // the instruction whose result is stored; its round_to is to.dtype
};

// Pointwise operators over one iteration space. Every input is loaded (and converted to register
// form) at each point, every output stored. An output may be the same memory as an input only at
// the same strides and address.
struct GroupProgram {
  int ndim;  // dimensions already merged where they can be; sizes in row-major order
  const int64_t* sizes;
  int64_t numel;
  int num_inputs;
  const Operand* inputs;
  int num_instrs;
  const Instr* instrs;
  int num_outputs;
  const GroupOutput* outputs;
  int num_immediates;
  const Imm* immediates;
  // Register class of each immediate.
  const RegClass* immediate_cls;
};

inline DType dtype_of(const GroupProgram& g, const Source& s) {
  return s.kind == SourceKind::kInput ? g.inputs[s.index].dtype : g.instrs[s.index].round_to;
}

// Is the result the first source, rounding aside?
inline bool is_identity(const Instr& in) {
  return in.kind == Instr::Kind::kBody ? std::strcmp(in.body->text, "return a;") == 0
                                       : in.cls == in.result_cls;
}

// Does a value only pass? It keeps its bits then, a NaN's included.
inline bool is_plain_copy(const GroupProgram& g, const Instr& in) {
  return is_identity(in) && in.sources[0].kind != SourceKind::kImmediate &&
         dtype_of(g, in.sources[0]) == in.round_to;
}

// Reduces one operand over some dimensions. The result's tree depends on sizes, dtype and strides
// of the operand alone. Identity producer today; a group joins here in the second step.
struct ReduceProgram {
  const ReduceBody* body;
  RegClass cls;   // accumulator
  int kept_ndim;  // dimensions of the result, row-major
  const int64_t* kept_sizes;
  int reduced_ndim;  // dimensions reduced away, row-major
  const int64_t* reduced_sizes;
  int64_t kept_numel;
  int64_t reduced_numel;
  void* in;
  DType in_dtype;
  const int64_t* in_kept_strides;
  const int64_t* in_reduced_strides;
  void* out;  // dense, row-major over the kept dimensions
  DType out_dtype;
};

// An operand of a kernel with its own shape.
struct KernelTensor {
  void* data;
  DType dtype;
  int ndim;
  const int64_t* sizes;
  const int64_t* strides;
  int64_t numel;
};

// Where pointwise work may join a kernel: of input `in` and output `out`, row-major and dense, as
// `rows` rows of n elements, or of a reduction to one result a row. Each row of the outputs depends
// on the same row of the input alone, and their sizes are `rows` or all of it.
// A kernel is then given them in two dimensions, and outputs of one element a row as rows x 1.
struct Rows {
  int in = 0, out = 0;
  int64_t rows = 0;  // 0: nothing may join
  int64_t n = 0;
  int rows_at = -1;    // which of the kernel's ints is the number of rows
  uint32_t whole = 1;  // bits: which inputs are rows x n; the others belong to every row
  // Outputs other than `out` are sums over all rows: the kernel cannot be run in blocks of them.
  bool across = false;
};

// Arguments of a named kernel: outputs first written, inputs read. Outputs and workspace are
// allocated by the caller.
struct KernelArgs {
  int num_outputs;
  const KernelTensor* outputs;
  int num_inputs;
  const KernelTensor* inputs;
  int num_ints;
  const int64_t* ints;
  int num_doubles;
  const double* doubles;
};

// A kernel over rows (or a reduction of each row) with pointwise work before and after it.
struct JoinedProgram {
  const char* kernel;
  const KernelArgs* args;       // null for a reduction
  const ReduceProgram* reduce;  // ... else null
  Rows rows;
  // Of two dimensions, rows and n (after a reduction: rows and 1); null where there is none.
  // `before` has one output, which is the kernel's input and has no address; the first input of
  // `after` is the kernel's output, whose own address is null where it is not stored.
  const GroupProgram* before;
  const GroupProgram* after;
};

}  // namespace tessera
