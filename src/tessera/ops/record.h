// What a record is: everything true of an operator whatever the device. One entry in one file of
// ops/<family>/; all else (C++ and Python functions, methods, in-place and out forms, stub, docs,
// generic tests, benchmark case) is derived from it.
#pragma once
#include <initializer_list>
#include <string>
#include <vector>

#include "tessera/driver/program.h"
#include "tessera/ops/value.h"

namespace tessera {

enum class Kind : uint8_t {
  kPointwise,  // a body; deferred and fused
  kReduction,  // map / combine / finish
  kView,       // metadata only
  kKernel,     // its own kernel in each backend
  kComposite,  // calls other operators
};

// How the dtype a pointwise operator computes in, and that of its result, follow from its inputs.
enum class TypeRule : uint8_t {
  kPromote,       // common dtype of the inputs
  kPromoteFloat,  // the same, integers become the default float dtype
  kSame,          // that of the first tensor
  kCompare,       // computes in the common dtype, result is bool
  kBool,          // sources converted to bool, result bool
};

// How numbers among the sources join elements of the common dtype.
enum class Numbers : uint8_t {
  kJoin,   // wrapped to a narrow integer; beside half floats kept in float, as 0-d tensors are
  kRound,  // rounded to the common dtype first, as those compared always are
  kFit,    // refused where the common dtype has no place for them
  kBound,  // brought into the range of an integer
};

// What autocast does with the floating-point arguments of an operator.
enum class Cast : uint8_t {
  kNone,
  kLower,    // float16 or bfloat16, as the program asked
  kFloat32,  // not where the call names a dtype for the result
  kPromote,  // the widest of them
  kKeep,     // as they are, also for the operators it is made of
  kRefuse,   // raises: its results would not be finite in the lower precision
};

// By device: PyTorch's lists for GPUs and for the CPU differ.
struct Autocast {
  Cast gpu = Cast::kNone;
  Cast cpu = Cast::kNone;
  static const Autocast kNone, kLower, kFloat32, kPromote;
  static const Autocast kLowerGpu, kFloat32Gpu, kFloat32Cpu, kPromoteGpu, kPromoteCpu;
};
inline constexpr Autocast Autocast::kNone{};
inline constexpr Autocast Autocast::kLower{Cast::kLower, Cast::kLower};
inline constexpr Autocast Autocast::kFloat32{Cast::kFloat32, Cast::kFloat32};
inline constexpr Autocast Autocast::kPromote{Cast::kPromote, Cast::kPromote};
inline constexpr Autocast Autocast::kLowerGpu{Cast::kLower, Cast::kNone};
inline constexpr Autocast Autocast::kFloat32Gpu{Cast::kFloat32, Cast::kNone};
inline constexpr Autocast Autocast::kFloat32Cpu{Cast::kNone, Cast::kFloat32};
inline constexpr Autocast Autocast::kPromoteGpu{Cast::kPromote, Cast::kNone};
inline constexpr Autocast Autocast::kPromoteCpu{Cast::kNone, Cast::kPromote};

enum Forms : uint8_t {
  kFunction = 1,
  kMethod = 2,
  kInplace = 4,  // `name_`, writes self
  kOut = 8,      // `out=`
};

struct Call;      // ops/call.h: what run() sees
struct Backward;  // ops/call.h: what backward() sees

// One sample of the generic tests: argument texts in Python, in which T(2,3) is a random tensor.
struct Sample {
  const char* args;
};

struct OpRecord {
  // name(arguments) -> results, in the grammar of ops/schema.h.
  const char* schema;
  // Further names, by words. "absolute" is an alias in all forms; "nn.functional.relu" and
  // "special.expit" are functions of Python's modules.
  const char* also = "";
  const char* doc = "";
  // Python, run by the documentation test.
  const char* example = "";
  Kind kind = Kind::kComposite;
  TypeRule types = TypeRule::kPromote;
  uint8_t forms = kFunction | kMethod;
  // An overload that messages about wrong arguments do not offer.
  bool hidden = false;

  // Raises by the arguments before anything is computed: what the type and shape rules do not see.
  void (*check)(const Call&) = nullptr;
  // Pointwise: the body, or a choice of one by the arguments. Tensor arguments and Tensor|Scalar
  // arguments are its sources in order, Scalar arguments its scalars.
  const PointwiseBody* body = nullptr;
  const PointwiseBody* (*choose)(Args) = nullptr;

  // Every other kind: computes the result.
  Outputs (*run)(const Call&) = nullptr;

  // Names of what backward reads, by words: arguments, "result" (the first), or results by the
  // names the schema gives them. Nothing else is kept.
  // "self:other" keeps self only where other wants its gradient.
  const char* saves = "";
  // Gradient of each differentiable tensor argument as expressions over operators.
  void (*backward)(Backward&) = nullptr;

  // Its name in profiles where that is not the schema's: what PyTorch calls the same work.
  const char* aten = "";
  // Floating point operations of a call, as PyTorch's profiler counts them.
  int64_t (*flops)(const Call&) = nullptr;

  Autocast autocast;
  Numbers numbers = Numbers::kJoin;
  // What `out=` or the in-place form writes must have the result's dtype: nothing is converted.
  bool exact_out = false;
  // `out=` must have dtype bool or uint8.
  bool bool_out = false;
  // May raise by its data (division of integers by zero): never deferred.
  bool raises_on_data = false;
  // run() changes target(call): self itself in the in-place form, a copy of it otherwise. Without
  // it the in-place form computes beside self and copies.
  bool updates_self = false;
  // Its result depends on a random draw: generic tests compare shapes only.
  bool random = false;
  // Its gradient is deliberately absent (comparison, rounding).
  bool not_differentiable = false;
  // Mean-time names in Python's operator protocol, by words: "__add__ __radd__".
  const char* operators = "";
  // What it computes, as a Python expression over NumPy (np) and the arguments' names, in float64:
  // "1 / (1 + np.exp(-self))". The generic tests hold samples to it that have no answer of
  // PyTorch's recorded.
  const char* reference = "";
  std::initializer_list<Sample> samples = {};
};

struct ArgSpec {
  enum class Type : uint8_t {
    kTensor,
    kTensorOrScalar,
    kScalar,
    kNumber,  // of a pointwise operator a source, as a tensor is
    kInt,
    kFloat,
    kBool,
    kInts,             // int[]
    kFloats,           // float[]
    kTensors,          // Tensor[]
    kOptionalTensors,  // Tensor?[]: elements may be None
    kDType,
    kDevice,
    kString,
    kMemoryFormat,
    kLayout,
    kGenerator,
  };
  std::string name;
  Type type;
  bool optional = false;  // None is allowed
  bool keyword_only = false;
  bool varargs = false;  // int..., Tensor...: x.view(2, 3) as well as x.view((2, 3))
  bool one_int = false;  // int[1], int[2]...: a single int is a list of one
  bool has_default = false;
  Value default_value;
  std::string default_text;
  bool saved = false;
  int saved_for = -1;  // the argument whose gradient reads it; -1: any
};

// What a call returns to Python where it is no tensor: the item of a 0-d one.
enum class ResultType : uint8_t { kTensor, kTensors, kBool, kInt, kFloat, kScalar };

// A record with its schema parsed, as the call path uses it.
struct Op {
  const OpRecord* record;
  std::string name;  // in C++: linalg_det
  // Where Python finds it: "linalg.det", "relu", aliases. The first is the schema's.
  std::vector<std::string> paths;
  std::vector<std::string> result_names;  // "values", "indices"; empty where the schema has none
  ResultType result_type = ResultType::kTensor;
  std::string family;  // folder of its record
  std::vector<ArgSpec> args;
  std::vector<Sample> samples;  // a copy: the record's list ends with the expression it stands in
  int num_outputs = 1;
  int self_index = -1;         // argument an in-place form writes
  uint32_t saved_results = 0;  // bit i: result i is kept for backward
  bool has_gradient = false;
  bool writes_self = false;  // named with a trailing underscore: in-place by itself
  Kind kind;
  int id;
};

// Registers at load time; see TS_OP.
struct RegisterOp {
  RegisterOp(const char* file, OpRecord record);
};

// All overloads of a name, in order of registration; empty when there is none.
std::span<const Op* const> find_ops(std::string_view name);
// An overload of a name, by its place in the file; raises when there is none.
const Op& get_op(std::string_view name, size_t overload = 0);
const std::vector<const Op*>& all_ops();

#define TS_CONCAT_(a, b) a##b
#define TS_CONCAT(a, b) TS_CONCAT_(a, b)
#define TS_OP(...)                                                         \
  static const ::tessera::RegisterOp TS_CONCAT(register_op_, __COUNTER__)( \
      __FILE__, ::tessera::OpRecord __VA_ARGS__)

}  // namespace tessera
