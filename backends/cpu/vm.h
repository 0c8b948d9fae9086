// The vector VM: runs a group of pointwise operators tile by tile.
//
// Note [How a group runs]
// The plan is a list of steps over numbered values: first the inputs, then the immediates, then the
// instructions' results. A value lives in a tile register (a slot of the thread's scratch, reused
// when its last reader has run) or directly in memory, where that is dense and in register form.
// Points are visited in tiles in one of three ways:
//   rows    a tile is a piece of one row of the innermost dimension: the usual case;
//   linear  rows are short: a tile is a run of points over several rows;
//   blocks  an operand is transposed: a tile is a square of two dimensions, so that cache lines
//           of both orders are used whole.
// Every element goes through the same instructions whatever its tile, so cutting never changes a
// value. A result that only passes an input on has its bits: it does not go through a register,
// where float16 and bfloat16 are numbers and a NaN is any NaN.
#pragma once
#include "convert.h"
#include "tessera/driver/backend.h"

namespace tessera::cpu {

inline constexpr int64_t kMaxTile = 1024;

struct Step {
  enum class Kind : uint8_t { kLoad, kHold, kBody, kConvert, kPass, kStore };
  Kind kind;
  uint8_t num_sources;
  uint16_t dst;  // value written; for kPass and kStore the output's number
  // Values read; first, for kLoad, kHold and kPass, the input's number. A kPass of two reads what
  // was held.
  uint16_t src[kMaxSources];
  union {
    TileFn tile;
    ConvertFn convert;
  };
  ConvertFn round;  // applied in place to the result; may be null
  const Imm* scalars;
};

// Where a value is during a tile.
struct Place {
  enum class Kind : uint8_t { kNone, kSlot, kMemory };
  Kind kind;
  bool constant;     // filled once per thread
  uint16_t operand;  // kMemory: input or (num_inputs + output) whose memory it is
  int32_t slot;
};

struct OperandPlan {
  bool direct;  // a tile of it is one dense run of memory
  int32_t itemsize;
};

enum class Visit : uint8_t { kRows, kLinear, kBlocks };

struct Plan {
  const GroupProgram* program;
  Visit visit;
  int block_dim;  // kBlocks: the dimension besides the innermost
  int64_t tile;   // points per tile
  int64_t block_rows, block_cols;
  int64_t num_tiles;
  int64_t tiles_per_row;  // kRows; kBlocks: tiles along the innermost dimension
  bool prefetch;          // operands are too large to be in the second-level cache
  bool stream;            // and the last-level one: results are written past it
  int num_slots;
  int32_t slot_bytes;  // bytes of a register of one element
  int num_values;
  int num_steps;
  Place* places;
  Step* steps;
  OperandPlan* operands;  // inputs, then outputs
};

// Fills plan; its arrays point to memory of at least plan_bytes(program).
size_t plan_bytes(const GroupProgram& program);
void make_plan(const GroupProgram& program, void* memory, Plan& plan);

Status run_group(Exec exec, const GroupProgram* program) noexcept;

}  // namespace tessera::cpu
