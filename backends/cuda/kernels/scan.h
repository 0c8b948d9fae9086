// Scans along a dimension by a rule of joining: the skeleton, and what an operator gives to it.
#pragma once
#include <string>

#include "../kernels.h"

namespace tessera::cuda {

// The text of an operator:
//   struct State;                                       a multiple of 4 bytes, at most 32
//   State none();                                       the neutral one
//   State make(const T::A* x, int64_t j);               element j of a line, of each input
//   State join(const State& before, const State& after);
//   void put(const State& s, T::S& y, int64_t& z);      what is stored
// T is the dtype of the inputs and the first output; a second output has integers. OPTION is the
// operator's own.
struct ScanOp {
  const char* entry;
  std::string text;
  bool large;  // states of more than 16 bytes
  int inputs, outputs;
};
inline constexpr int64_t kMostStateBytes = 32;
ScanOp make_scan(const char* entry, const std::string& text, bool large = false, int inputs = 1,
                 int outputs = 1);

// Along dimension `dim` of operands of one shape, from the end if `reverse`.
Status run_scan(Device& d, CUstream stream, const ScanOp& op, const KernelArgs& args, int64_t dim,
                bool reverse, int64_t option = 0);

}  // namespace tessera::cuda
