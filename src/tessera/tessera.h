// The C++ face: #include <tessera/tessera.h>.
#pragma once
#include "tessera/data/data.h"
#include "tessera/face/build.h"
#include "tessera/face/cuda.h"
#include "tessera/face/ints.h"
#include "tessera/face/print.h"
#include "tessera/face/scopes.h"
#include "tessera/face/tensor.h"
#include "tessera/nn/nn.h"
#include "tessera/optim/optim.h"
#include "tessera/save/safetensors.h"
#include "tessera/save/save.h"
#include "tessera/tensor/generators.h"
