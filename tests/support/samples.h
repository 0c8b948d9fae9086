// The records' samples as arguments: the texts are Python, of which this reads what samples use.
#pragma once
#include <deque>

#include "support/tensors.h"

namespace tessera::test {

// How the tensors that T makes lie in memory; the last two also replace their shapes.
enum class Layout { kContiguous, kTransposed, kStepped, kExpanded, kOffset, kEmpty, kZeroDim };
inline constexpr Layout kLayouts[] = {Layout::kContiguous, Layout::kTransposed, Layout::kStepped,
                                      Layout::kExpanded,   Layout::kOffset,     Layout::kEmpty,
                                      Layout::kZeroDim};
const char* layout_name(Layout l);

// A tensor with the values of `sample`, laid out as asked where its shape allows.
Tensor laid_out(const Dims& sizes, DType dtype, Device device, int seed, Layout layout,
                char kind = 'T');

// The arguments of one call, complete with defaults, and what they borrow from.
struct Arguments {
  std::vector<Value> values;
  std::vector<int> made;  // positions of the tensors that T made
  std::deque<Tensor> tensors;
  std::deque<Dims> ints;
  std::deque<std::string> strings;

  const Tensor& tensor(int position) const {
    return static_cast<const Tensor&>(*values[static_cast<size_t>(position)].tensor);
  }
};

// Null where the text holds something this does not read: the Python tests run all samples.
std::unique_ptr<Arguments> read_sample(const Op& op, std::string_view text, DType dtype,
                                       Device device, Layout layout);

// The record's samples; for internal records, which have none, those written in samples.cpp.
std::vector<std::string> samples_of(const Op& op);

}  // namespace tessera::test
