// The engine of reductions: cuts one operand into leaves, has loops reduce them, and combines the
// results in a fixed tree, on all threads.
#pragma once
#include <optional>

#include "tessera/driver/backend.h"

namespace tessera::cpu {

struct Reduction {
  const void* in;
  // Instead of `in`: makes n elements, from number `first` on, of an operand that would be dense.
  void (*make)(const void* ctx, int64_t first, int64_t n, void* to) = nullptr;
  const void* make_ctx = nullptr;
  DType in_dtype;
  RegClass cls;  // elements are converted to it before the loops see them
  // The dtype that elements are converted to, where its class is cls.
  std::optional<DType> element_dtype = std::nullopt;
  int kept_ndim;  // row-major
  const int64_t* kept_sizes;
  const int64_t* kept_strides;
  int reduced_ndim;
  const int64_t* reduced_sizes;
  const int64_t* reduced_strides;

  const ReduceBody::Loops* loops;  // finish is not used
  size_t acc_bytes;                // of one accumulator
  // An accumulator may have several parts of one size: then n of them are n first parts, n
  // second...
  int acc_parts = 1;
  // Gets n finished accumulators, of results number at, at + step, ...; `tile` has room for n
  // elements of 16 bytes.
  void (*finish)(const void* ctx, void* acc, int64_t n, int64_t at, int64_t step, char* tile);
  const void* ctx;
};

// n registers to results number at, at + step, ... of a dense output.
void store_results(void* out, DType dtype, const void* from, int64_t n, int64_t at, int64_t step);

// Whether a reduction of each of `rows` rows of n dense elements can have them made.
bool can_make(int64_t rows, int64_t n);

Status run_reduction(const Reduction& reduction, const char* name) noexcept;

}  // namespace tessera::cpu
