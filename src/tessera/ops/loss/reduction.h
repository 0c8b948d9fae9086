// What becomes of the losses of single elements.
#pragma once
#include "tessera/gen/reduce.h"
#include "tessera/ops/call.h"

namespace tessera {

enum class Reduction : uint8_t { kNone, kMean, kSum };

inline Reduction reduction_named(std::string_view name) {
  if (name == "none") return Reduction::kNone;
  if (name == "mean") return Reduction::kMean;
  TS_CHECK_VALUE(name == "sum", name, " is not a valid value for reduction");
  return Reduction::kSum;
}

// By the places of three arguments; size_average and reduce are what PyTorch had before reduction.
inline Reduction reduction_of(const Call& c, int size_average, int reduce, int reduction) {
  if (!c.has(size_average) && !c.has(reduce)) return reduction_named(c.text(reduction));
  if (c.has(reduce) && !c.flag(reduce)) return Reduction::kNone;
  return c.has(size_average) && !c.flag(size_average) ? Reduction::kSum : Reduction::kMean;
}

inline TensorBase reduced(const TensorBase& losses, Reduction how) {
  if (how == Reduction::kNone) return losses;
  return how == Reduction::kMean ? op::mean(losses) : op::sum(losses);
}

}  // namespace tessera
