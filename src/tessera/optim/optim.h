// optim: optimizers and schedules of the learning rate. See docs/guide/cpp.md.
#pragma once
#include "tessera/optim/grad_scaler.h"
#include "tessera/optim/lbfgs.h"
#include "tessera/optim/lr_scheduler.h"
#include "tessera/optim/optimizers.h"
