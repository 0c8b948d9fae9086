// Drawing into memory from a device's generator, or from one the program made.
#pragma once
#include "tessera/ops/call.h"
#include "tessera/tensor/generators.h"

namespace tessera::random {

// Fills dense memory: the CPU's generators in sequence, a GPU's by counter. `ints` come after the
// three that say where the numbers come from. `blocks`: how many Philox blocks to take, 0 for one
// word (two for doubles) an element.
void draw(const char* kernel, const TensorBase& out, std::initializer_list<double> doubles,
          Mt19937Generator* generator = nullptr, std::initializer_list<int64_t> ints = {},
          std::span<const TensorBase> inputs = {}, uint64_t blocks = 0);
// ... into any layout, as an in-place operator: the version counts up.
Outputs draw_into(const TensorBase& self, const char* kernel, std::initializer_list<double> doubles,
                  Mt19937Generator* generator = nullptr, std::initializer_list<int64_t> ints = {});
// Uniform doubles from [0, 1) in the shape of `like`.
TensorBase uniform_doubles(const TensorBase& like, Mt19937Generator* generator);

// dtype, device and requires_grad of a creation operator: arguments `first`, first + 2, first + 4
// of "dtype? dtype, layout? layout, device? device, bool? pin_memory, bool? requires_grad".
TensorBase created(const Call& c, const Dims& size, int first, DType usual, Device device);
// Numbers drawn for `c`'s first argument, laid out as it is or by the memory format that argument
// `format_at` asks for: they were drawn in the order of memory.
TensorBase laid_out_like(const Call& c, const TensorBase& drawn, int format_at);

}  // namespace tessera::random
