#include "data_error.h"

#include <atomic>
#include <cstdio>

#include "context.h"

namespace tessera::cuda {
namespace {

struct Wording {
  Code code;
  const char* format;  // 1: index, 2: dim, 3: size
};
// In the order of DataError.
constexpr Wording kWordings[] = {
    {Code::kInvalid, "index %1$lld is out of bounds for dimension %2$lld with size %3$lld"},
    {Code::kRefused, "index %1$lld is out of bounds for dimension %2$lld with size %3$lld"},
    {Code::kInvalid,
     "index out of range in self: index %1$lld in dimension %2$lld with size %3$lld"},
    {Code::kInvalid,
     "index_copy_(): index %1$lld is out of bounds for dimension %2$lld with size %3$lld"},
    {Code::kInvalid, "out of range: tried to access index %1$lld on a tensor of %3$lld elements."},
    {Code::kRefused, "found an invalid max index: %1$lld (output volume of a plane is %3$lld)"},
    {Code::kInvalid, "Target %1$lld is out of bounds."},
    {Code::kInvalid, "ctc_loss(): target %1$lld is not a class below %3$lld"},
    {Code::kRefused, "probability tensor contains either `inf`, `nan` or element < 0"},
    {Code::kRefused, "invalid multinomial distribution (encountering probability entry < 0)"},
    {Code::kRefused, "invalid multinomial distribution (sum of probabilities <= 0)"},
    {Code::kRefused, "invalid Poisson rate, expected rate to be non-negative"},
};
static_assert(sizeof kWordings / sizeof *kWordings == static_cast<size_t>(DataError::kCount));

}  // namespace

Status take_data_error(Device& d) {
  volatile ErrorSlot* slot = d.slot;
  int32_t kind = slot->kind;
  if (kind == 0) [[likely]]
    return ok();
  std::atomic_thread_fence(std::memory_order_acquire);
  const Wording& w = kWordings[kind - 1];
  char message[256];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
  std::snprintf(message, sizeof message, w.format, static_cast<long long>(slot->index),
                static_cast<long long>(slot->dim), static_cast<long long>(slot->size));
#pragma GCC diagnostic pop
  slot->kind = 0;
  return fail(w.code, "%s", message);
}

}  // namespace tessera::cuda
