// From a group of pointwise operators to CUDA C.
//
// Note [What a kernel is specialised on]
// plan_group looks at the operands' strides and addresses and picks one of four shapes of kernel;
// group_key hashes that choice with the instructions and dtypes. Sizes, strides and scalar values
// are parameters of the kernel, so a training loop over many shapes compiles each group once.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "hash.h"
#include "tessera/driver/program.h"

namespace tessera::cuda {

inline constexpr int kMaxOperands = 128;
// The limit on a kernel's parameters: 4 KB before CUDA 12.1, of words of 8 bytes.
inline constexpr int kMaxParamWords = 508;

enum class GroupMode : uint8_t {
  kLinear,  // every operand dense or one element: the linear index is the address
  kInner,   // runs along the last dimension are dense (a bias, a slice): vectors along it
  kPoint,   // anything: one element at a time, addresses by division
  kTile,    // some inputs are transposed: they go through shared memory
};
enum class Layout : uint8_t {
  kDense,
  kScalar,       // one element for all
  kRun,          // kInner: the last stride is 1
  kRunOfScalar,  // kInner: the last stride is 0
  kStrided,
  kSwapped,  // kTile: the last but one stride is 1
};

struct GroupPlan {
  GroupMode mode;
  bool wide;    // 64-bit indices
  uint8_t vec;  // elements of one vector access
  uint8_t unroll;
  uint8_t ndim;  // dimensions the kernel takes apart; 0 in kLinear
  uint8_t tile;  // kTile: its edge
  uint8_t num_operands;
  Layout layouts[kMaxOperands];  // inputs, then outputs
};

// False if the program has more operands or dimensions than a kernel can be given.
bool plan_group(const GroupProgram& g, GroupPlan* plan);
// `batch`: a kernel that takes several programs of this structure, see Note [Batches].
Hash128 group_key(const GroupProgram& g, const GroupPlan& plan, uint64_t device,
                  bool batch = false);
std::string group_text(const GroupProgram& g, const GroupPlan& plan, bool batch = false);
// The functions of one that joins a kernel, in a struct of that name; plan.mode is kPoint.
std::string joined_text(const GroupProgram& g, const GroupPlan& plan, const char* name,
                        const std::vector<bool>& fast);
// Fills the kernel's parameters; the number of words, or 0 if there are too many.
int group_params(const GroupProgram& g, const GroupPlan& plan, uint64_t* words);

// Operators of a program; the rest of its instructions are conversions.
inline int num_bodies(const GroupProgram& g) {
  int n = 0;
  for (int i = 0; i < g.num_instrs; ++i) n += g.instrs[i].kind == Instr::Kind::kBody;
  return n;
}

// Is the result of doubles a source's, its sign aside? Then a NaN is left as it is; others become
// one, see one_nan in prelude.cpp.
bool keeps_nan(const Instr& in);

// Words of a kernel's parameters that an immediate takes.
inline int immediate_words(RegClass cls) { return cls == RegClass::kC128 ? 2 : 1; }

// Small blocks over all of the work, each of which does its share and ends: 4.1 TB/s of an
// H200's 4.3 where blocks that stay and take more have 3.8.
inline constexpr int kGroupThreads = 128, kTileThreads = 256;
// Elements from which tiles are large: more than a cache holds.
inline constexpr int64_t kLargeTiles = int64_t{1} << 23;
inline constexpr const char* kGroupEntry = "group";

// Note [Batches]
// One launch for several groups of one structure over dense operands, as the step of an optimizer
// makes them: a word for their number, then for each the number of its first block and the
// parameters that a launch of it alone would have. A block looks for the group it is of.
inline constexpr int kBatchHead = 1, kBatchRow = 1;

int64_t group_blocks(const GroupProgram& g, const GroupPlan& plan);

}  // namespace tessera::cuda
