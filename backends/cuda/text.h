// Kernels written as text with a few definitions in front: the way to add one.
//   constexpr TextKernel kFill{"fill", R"(
//   struct Params { T::S* out; int64_t n; double value; };
//   extern "C" __global__ void __launch_bounds__(256) fill(const __grid_constant__ Params p) {
//     for (int64_t i = thread(); i < p.n; i += threads()) p.out[i] = T::st((T::A)p.value);
//   })"};
//   struct Params { void* out; int64_t n; double value; } p{...};
//   return launch_text(d, stream, kFill, {def("T", out.dtype)}, {fill_blocks(d, n), 256}, &p);
// A structure is compiled once: what changes from call to call (sizes, addresses, numbers) belongs
// into Params, what the compiler should know (dtypes, small counts, flags) into definitions.
#pragma once
#include <initializer_list>
#include <string>

#include "joins.h"
#include "kernel.h"

namespace tessera::cuda {

struct Def {
  enum class Kind : uint8_t { kNumber, kType, kBytes };
  const char* name;
  Kind kind;
  int64_t value;
};
// A constant of the kernel.
template <class T>
requires std::is_integral_v<T>
constexpr Def def(const char* name, T value) {
  return {name, Def::Kind::kNumber, static_cast<int64_t>(value)};
}
// A struct of that name: S is what lies in memory, A what arithmetic is done in; ld and st go
// between them, and `take` converts a value of any class to A.
constexpr Def def(const char* name, DType t) {
  return {name, Def::Kind::kType, static_cast<int64_t>(t)};
}
// An unsigned type of that many bytes (1, 2, 4, 8, 16), to move elements whatever they are.
constexpr Def def_bytes(const char* name, int64_t bytes) {
  return {name, Def::Kind::kBytes, bytes};
}

struct TextKernel {
  const char* entry;  // also its identity: no two texts share one
  const char* text;
  bool philox = false;  // with the text of tessera/ops/philox.h before it
};

std::string full_text(const TextKernel& k, const Def* defs, size_t n,
                      const std::string& joins = kNoJoins);
Status find_text_kernel(Device& d, const TextKernel& k, std::initializer_list<Def> defs,
                        const Kernel** out, const Joins* joins = nullptr, int vec = 1);
// `params` is the kernel's one argument. Shared memory beyond 48 KiB is asked for as needed.
Status launch_text(Device& d, CUstream stream, const TextKernel& k, std::initializer_list<Def> defs,
                   const Grid& grid, const void* params);
// With pointwise work in it, in accesses of `vec` elements; null: without. `size`: bytes of
// params, whose text ends in JOIN_FIELDS.
Status launch_text(Device& d, CUstream stream, const TextKernel& k, std::initializer_list<Def> defs,
                   const Grid& grid, const void* params, size_t size, const Joins* joins, int vec);

}  // namespace tessera::cuda
