// data: datasets, samplers, the loader of batches. See docs/guide/cpp.md.
#pragma once
#include "tessera/data/dataloader.h"
#include "tessera/data/dataset.h"
#include "tessera/data/sampler.h"
