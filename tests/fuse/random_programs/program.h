// Random programs over the operators, run once with deferral off and once with it on.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tessera/tessera.h"

namespace random_programs {

// Everything a program could see: bytes it read, and errors it met, in order.
struct Log {
  std::vector<std::string> entries;
  std::vector<std::string> steps;  // what was done, for the report
};

// The same seed gives the same steps, whatever the mode.
Log run_program(uint64_t seed, tessera::Device device);

}  // namespace random_programs
