#include "tessera/ops/random/draw.h"

#include "tessera/driver/current.h"
#include "tessera/driver/random_args.h"
#include "tessera/memory/capture.h"
#include "tessera/ops/creation/options.h"
#include "tessera/ops/philox.h"
#include "tessera/tensor/outcome.h"

namespace tessera::random {

namespace {

// Number of elements from which launch() releases Python's lock.
constexpr int64_t kLongWork = 1 << 15;

bool has_pending_work(const TensorBase& t) {
  const Storage& s = t.storage();
  return s.pending.load(std::memory_order_acquire) != nullptr ||
         s.arriving.load(std::memory_order_acquire) != 0;
}

// Whether launch() may open a BlockingScope.
bool may_block(const TensorBase& out, std::span<const TensorBase> inputs) {
  int64_t work = out.numel();
  bool pending = has_pending_work(out);
  for (const TensorBase& t : inputs) {
    work += t.numel();
    pending |= has_pending_work(t);
  }
  return pending || work >= kLongWork;
}

}  // namespace

void draw(const char* kernel, const TensorBase& out, std::initializer_list<double> doubles,
          Mt19937Generator* generator, std::initializer_list<int64_t> more,
          std::span<const TensorBase> inputs, uint64_t blocks) {
  if (out.numel() == 0 || out.device().is_meta()) return;
  // Here, on the caller's line: a device would say so later.
  const std::string_view name = kernel;
  TS_CHECK_IMPLEMENTED(is_floating(out.dtype()) || (name != "uniform" && name != "normal"), kernel,
                       "_(): not implemented for ", dtype_name(out.dtype()));
  TS_CHECK(!generator || generator->of_cuda == out.device().is_cuda(), "Expected a '",
           out.device().is_cuda() ? "cuda" : "cpu", "' device type for generator but found '",
           generator && generator->of_cuda ? "cuda" : "cpu", "'");
  Mt19937Generator& g = generator ? *generator : default_generator(out.device());
  const Device device = out.device();
  if (inputs.empty() && has_marks()) [[unlikely]]
    PassedMarks().write(out, true);
  if (blocks == 0) {
    // Two words for an integer of a range that has more than 2^32.
    bool wide = out.dtype() == DType::kFloat64;
    if (more.size() == 2) {
      const uint64_t low = static_cast<uint64_t>(more.begin()[0]);
      wide |= static_cast<uint64_t>(more.begin()[1]) - low >= uint64_t{1} << 32;
    }
    blocks = philox_blocks(static_cast<uint64_t>(out.numel()), wide);
  }
  if (device.is_cuda())
    if (auto capture = memory::capture_of(device.index, current_stream(device.index))) {
      // Seed and offset are put into memory before each replay.
      TensorBase state;
      const uint64_t at = capture->take(g, blocks, &state);
      Dims ints{0, static_cast<int64_t>(at), kStateInMemory};
      for (int64_t i : more) ints.push_back(i);
      std::vector<TensorBase> with_state(inputs.begin(), inputs.end());
      with_state.push_back(state);
      launch(kernel, {&out, 1}, with_state, ints.span(), {doubles.begin(), doubles.size()});
      return;
    }
  Dims ints{0, 0, 0};
  for (int64_t i : more) ints.push_back(i);
  const std::span<const double> numbers{doubles.begin(), doubles.size()};
  if (device.is_cuda()) {
    {
      GeneratorLock lock(g);
      ints[0] = static_cast<int64_t>(g.philox_seed());
      ints[1] = static_cast<int64_t>(g.take_philox(blocks));
    }
    launch(kernel, {&out, 1}, inputs, ints.span(), numbers);
    return;
  }
  // The kernel draws from the generator itself.
  GeneratorLock lock(g, may_block(out, inputs));
  ints[0] = static_cast<int64_t>(g.philox_seed());
  ints[2] = reinterpret_cast<int64_t>(&g);
  launch(kernel, {&out, 1}, inputs, ints.span(), numbers);
}

Outputs draw_into(const TensorBase& self, const char* kernel, std::initializer_list<double> doubles,
                  Mt19937Generator* generator, std::initializer_list<int64_t> ints) {
  if (self.is_contiguous()) {
    draw(kernel, self, doubles, generator, ints);
    count_write(self);
  } else {
    TensorBase dense = new_empty(self.sizes(), self.dtype(), self.device());
    draw(kernel, dense, doubles, generator, ints);
    copy_into(self, dense, false);
  }
  return self;
}

TensorBase uniform_doubles(const TensorBase& like, Mt19937Generator* generator) {
  TensorBase u = new_empty(like.sizes(), DType::kFloat64, like.device());
  draw("uniform", u, {0.0, 1.0}, generator);
  return u;
}

TensorBase created(const Call& c, const Dims& size, int first, DType usual, Device device) {
  DType dtype = c.dtype(first, usual);
  if (c.has(first + 2)) device = resolve_device(c.args[first + 2].device);
  TensorBase t;
  if (c.has(first + 3) && c.flag(first + 3)) {
    TS_CHECK(device.is_cpu(), "Only dense CPU tensors can be pinned");
    t = new_unallocated(size, dtype, device);
    allocate_pinned(t.storage());
  } else {
    t = new_empty(size, dtype, device);
  }
  t.impl()->requires_grad = c.has(first + 4) && c.flag(first + 4);
  TS_CHECK(!t.impl()->requires_grad || is_differentiable(dtype),
           "Only Tensors of floating point and complex dtype can require gradients");
  return t;
}

TensorBase laid_out_like(const Call& c, const TensorBase& drawn, int format_at) {
  Dims strides = strides_like(c, format_at);
  if (strides == drawn.strides()) return drawn;
  TensorBase out = alias(drawn, drawn.sizes(), std::move(strides), 0);
  out.impl()->requires_grad = drawn.impl()->requires_grad;
  return out;
}

}  // namespace tessera::random
