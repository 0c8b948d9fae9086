// What all copies of a module share.
#pragma once
#include "tessera/nn/module.h"

namespace tessera::nn {

struct ModuleBody {
  struct Slot {
    std::string name;
    Tensor value;  // undefined: the place of one that is not there
    bool persistent = true;
  };
  std::vector<Slot> parameters;
  std::vector<Slot> buffers;
  std::vector<NamedModule> children;
  bool training = true;
};

}  // namespace tessera::nn
