// Plans and text of reductions.
//
// Note [The tree of a reduction]
// Threads, vectors, splits and passes are functions of the sizes, the dtype and the strides alone.
// Where an address is not aligned the same elements go to the same threads by single loads, and the
// number of multiprocessors plays no part, so a sum has the same bits wherever its operand lies and
// whatever ran before. Partial results of a split row are combined by a second kernel, in order;
// there are no atomics.
#pragma once
#include <string>

#include "joins.h"
#include "tessera/driver/program.h"

namespace tessera::cuda {

inline constexpr int kReduceThreads = 256;
inline constexpr int kReduceMaxDims = 12;
inline constexpr int kReduceMostVec = 8;
inline constexpr const char *kReduceEntry = "reduce", *kGeneralReduceEntry = "reduce_any";

struct ReducePass {
  const ReduceBody* body;
  RegClass cls;
  DType in_dtype, out_dtype;
  bool columns;        // else rows: the reduced elements of one result lie (mostly) side by side
  bool from_partials;  // reads accumulators instead of elements
  bool to_partials;    // writes accumulators instead of results
  bool wide;           // 64-bit offsets
  bool vector_loads;
  int vec;    // elements a thread takes side by side
  int group;  // rows: threads a row; columns: threads side by side
  int kept_ndim, reduced_ndim;
  int64_t kept_sizes[kReduceMaxDims], kept_strides[kReduceMaxDims];
  int64_t reduced_sizes[kReduceMaxDims], reduced_strides[kReduceMaxDims];
  int64_t kept_numel, reduced_numel;
  int64_t chunk, splits;
  int64_t count;  // elements behind one result, for finish

  // Of the launch.
  int64_t blocks() const;
};

// False if the operand has more dimensions than a kernel can be given. splits > 1 means a second
// pass, second_pass(first), over splits * kept_numel accumulators.
bool plan_reduce(const ReduceProgram& r, ReducePass* pass);
ReducePass second_pass(const ReducePass& first);

Hasher reduce_key(const ReducePass& pass, uint64_t device);
// `joins`: see Note [Company of a kernel]; of rows alone. `batch_rows`: the reductions one launch
// has room for, see Note [Batches of reductions]; 0: one, by itself.
std::string reduce_text(const ReducePass& pass, const std::string& joins = kNoJoins,
                        int batch_rows = 0);
// Note [A reduction of any form]
// A form (vectors, threads, dimensions, partial results) that nobody has compiled is compiled on
// another thread, as groups are (interpret.h). Meanwhile one kernel of the same body and dtypes
// takes the form from its parameters: elements go to the same threads and are combined in the same
// order, so the bits are the same. It takes no company.
Hash128 general_reduce_key(const ReducePass& pass, uint64_t device);
std::string general_reduce_text(const ReducePass& pass);
inline constexpr int kReduceHead = 8, kReduceWords = kReduceHead + 4 * kReduceMaxDims;
void reduce_params(const ReducePass& pass, const void* in, void* out, uint64_t* words);

// Note [Batches of reductions]
// Clipping gradients takes the norm of every one: one dense run each, to one number. Those of one
// structure are one launch: a word for their number, then for each the number of its first block,
// the first kReduceHead words of the parameters it would have alone, and those of its company. Its
// blocks do what they would do alone, so the bits are the same.
bool fits_in_batch(const ReducePass& pass);

}  // namespace tessera::cuda
