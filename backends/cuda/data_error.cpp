#include "data_error.h"

#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "context.h"

namespace tessera::cuda {
namespace {

struct Wording {
  Code code;
  const char* format;  // with {index}, {dim} and {size} in any order
};
// In the order of DataError.
constexpr Wording kWordings[] = {
    {Code::kInvalid, "index {index} is out of bounds for dimension {dim} with size {size}"},
    {Code::kRefused, "index {index} is out of bounds for dimension {dim} with size {size}"},
    {Code::kInvalid,
     "index out of range in self: index {index} in dimension {dim} with size {size}"},
    {Code::kInvalid,
     "index_copy_(): index {index} is out of bounds for dimension {dim} with size {size}"},
    {Code::kInvalid, "out of range: tried to access index {index} on a tensor of {size} elements."},
    {Code::kRefused, "found an invalid max index: {index} (output volume of a plane is {size})"},
    {Code::kInvalid, "Target {index} is out of bounds."},
    {Code::kInvalid, "ctc_loss(): target {index} is not a class below {size}"},
    {Code::kRefused, "probability tensor contains either `inf`, `nan` or element < 0"},
    {Code::kRefused, "invalid multinomial distribution (encountering probability entry < 0)"},
    {Code::kRefused, "invalid multinomial distribution (sum of probabilities <= 0)"},
    {Code::kRefused, "invalid Poisson rate, expected rate to be non-negative"},
};
static_assert(sizeof kWordings / sizeof *kWordings == static_cast<size_t>(DataError::kCount));

std::string worded(const char* format, int64_t index, int64_t dim, int64_t size) {
  std::string text = format;
  const std::pair<const char*, int64_t> words[] = {
      {"{index}", index}, {"{dim}", dim}, {"{size}", size}};
  for (const auto& [word, value] : words)
    if (size_t at = text.find(word); at != std::string::npos)
      text.replace(at, std::strlen(word), std::to_string(value));
  return text;
}

}  // namespace

Status take_data_error(Device& d) {
  volatile ErrorSlot* slot = d.slot;
  int32_t kind = slot->kind;
  if (kind == 0) [[likely]]
    return ok();
  std::atomic_thread_fence(std::memory_order_acquire);
  const Wording& w = kWordings[kind - 1];
  const std::string message = worded(w.format, slot->index, slot->dim, slot->size);
  slot->kind = 0;
  return fail(w.code, "%s", message.c_str());
}

}  // namespace tessera::cuda
