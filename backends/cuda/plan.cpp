// Which shape of kernel a group gets, and the parameters of one launch.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "codegen.h"

namespace tessera::cuda {
namespace {

const Operand& operand(const GroupProgram& g, int i) {
  return i < g.num_inputs ? g.inputs[i] : g.outputs[i - g.num_inputs].to;
}

bool is_dense(const GroupProgram& g, const Operand& o) {
  int64_t expected = 1;
  for (int d = g.ndim - 1; d >= 0; --d) {
    if (g.sizes[d] == 1) continue;
    if (o.strides[d] != expected) return false;
    expected *= g.sizes[d];
  }
  return true;
}

bool is_one_element(const GroupProgram& g, const Operand& o) {
  for (int d = 0; d < g.ndim; ++d)
    if (o.strides[d] != 0 && g.sizes[d] != 1) return false;
  return true;
}

bool is_aligned(const Operand& o, int vec) {
  size_t bytes = std::min<size_t>(vec * itemsize(o.dtype), 16);
  return reinterpret_cast<uintptr_t>(o.data) % bytes == 0;
}

// Largest distance from an operand's address, in elements.
int64_t reach(const GroupProgram& g, const Operand& o) {
  int64_t r = 0;
  for (int d = 0; d < g.ndim; ++d) r += (g.sizes[d] - 1) * std::abs(o.strides[d]);
  return r;
}

bool fits_inner(const GroupProgram& g, const GroupPlan& plan, int vec) {
  int last = g.ndim - 1;
  if (vec < 2 || last < 0 || g.sizes[last] % vec != 0) return false;
  for (int i = 0; i < plan.num_operands; ++i) {
    if (plan.layouts[i] == Layout::kScalar) continue;
    const Operand& o = operand(g, i);
    if (plan.layouts[i] == Layout::kDense) {
      if (!is_aligned(o, vec)) return false;
      continue;
    }
    if (o.strides[last] == 0 && i < g.num_inputs) continue;
    if (o.strides[last] != 1 || !is_aligned(o, vec)) return false;
    for (int d = 0; d < last; ++d)
      if (o.strides[d] % vec != 0) return false;
  }
  return true;
}

bool is_swapped(const GroupProgram& g, const Operand& o) {
  return o.strides[g.ndim - 2] == 1 && o.strides[g.ndim - 1] > 1;
}

// Worth tiles: the outputs are dense, and an input runs along the other of the last two dimensions.
bool fits_tile(const GroupProgram& g, const GroupPlan& plan) {
  if (g.ndim < 2 || g.ndim > 3) return false;
  if (g.sizes[g.ndim - 1] < 16 || g.sizes[g.ndim - 2] < 16) return false;
  for (int i = g.num_inputs; i < plan.num_operands; ++i)
    if (plan.layouts[i] != Layout::kDense) return false;
  size_t bytes = 0;
  int count = 0;
  for (int i = 0; i < g.num_inputs; ++i)
    if (plan.layouts[i] == Layout::kStrided && is_swapped(g, g.inputs[i])) {
      bytes += itemsize(g.inputs[i].dtype);
      ++count;
    }
  // Shared memory stays under the 48 KB a kernel may declare.
  return count > 0 && count <= 4 && bytes <= 16;
}

// Tiles of vectors: every row of a swapped input and every row of the rest begins at a multiple of
// one.
bool fits_tile_vectors(const GroupProgram& g, const GroupPlan& plan, int vec) {
  const int last = g.ndim - 1;
  if (g.sizes[last] % vec != 0 || g.sizes[last - 1] % vec != 0) return false;
  for (int i = 0; i < plan.num_operands; ++i) {
    const Operand& o = operand(g, i);
    if (plan.layouts[i] != Layout::kSwapped && plan.layouts[i] != Layout::kDense) continue;
    if (!is_aligned(o, vec)) return false;
    for (int d = 0; d <= last; ++d)
      if (plan.layouts[i] == Layout::kSwapped && d != last - 1 && o.strides[d] % vec != 0)
        return false;
  }
  return true;
}

// ((i * magic >> 32) + i) >> shift is i / d for i < 2^31; magic in the low half, shift in the high.
uint64_t divider(int64_t d) {
  uint32_t shift = 0;
  while ((int64_t{1} << shift) < d) ++shift;
  uint64_t magic = ((uint64_t{1} << 32) * ((uint64_t{1} << shift) - d)) / d + 1;
  return magic | uint64_t{shift} << 32;
}

}  // namespace

bool plan_group(const GroupProgram& g, GroupPlan* plan) {
  int n = g.num_inputs + g.num_outputs;
  if (n > kMaxOperands || g.ndim > 25) return false;
  plan->num_operands = static_cast<uint8_t>(n);
  size_t smallest = 8, input_bytes = 0;
  bool linear = true, aligned = true;
  int64_t far = g.numel;
  for (int i = 0; i < n; ++i) {
    const Operand& o = operand(g, i);
    if (i >= g.num_inputs || !is_one_element(g, o) || g.numel == 1) {
      plan->layouts[i] = is_dense(g, o) ? Layout::kDense : Layout::kStrided;
      smallest = std::min(smallest, itemsize(o.dtype));
      if (i < g.num_inputs) input_bytes += itemsize(o.dtype);
    } else {
      plan->layouts[i] = Layout::kScalar;
    }
    if (plan->layouts[i] == Layout::kStrided) {
      linear = false;
      far = std::max(far, reach(g, o));
    }
  }
  // Room above for the steps of a grid-stride loop past the end.
  plan->wide = far > (int64_t{1} << 31) - (int64_t{1} << 26);
  int vec = static_cast<int>(std::min<size_t>(16 / smallest, 8));
  plan->tile = 0;
  plan->ndim = 0;
  if (linear) {
    for (int i = 0; i < n; ++i)
      if (plan->layouts[i] == Layout::kDense) aligned &= is_aligned(operand(g, i), vec);
    plan->mode = GroupMode::kLinear;
    plan->vec = static_cast<uint8_t>(aligned ? vec : 1);
  } else if (fits_inner(g, *plan, vec)) {
    plan->mode = GroupMode::kInner;
    plan->vec = static_cast<uint8_t>(vec);
    plan->ndim = static_cast<uint8_t>(g.ndim);
    for (int i = 0; i < n; ++i)
      if (plan->layouts[i] == Layout::kStrided)
        plan->layouts[i] =
            operand(g, i).strides[g.ndim - 1] == 0 ? Layout::kRunOfScalar : Layout::kRun;
  } else if (fits_tile(g, *plan)) {
    plan->mode = GroupMode::kTile;
    plan->ndim = static_cast<uint8_t>(g.ndim);
    size_t widest = 1, bytes = 0;
    for (int i = 0; i < g.num_inputs; ++i)
      if (plan->layouts[i] == Layout::kStrided && is_swapped(g, g.inputs[i])) {
        plan->layouts[i] = Layout::kSwapped;
        widest = std::max(widest, itemsize(g.inputs[i].dtype));
        bytes += itemsize(g.inputs[i].dtype);
      }
    // Small tiles where caches hold the operands, large ones where they do not (decision 52): 33 KB
    // of shared memory at most, so that several blocks have room.
    const bool vectors = fits_tile_vectors(g, *plan, vec);
    const bool room = vectors && widest <= 4 && bytes <= 8;
    const bool large = room && (vec == 8 || g.numel >= kLargeTiles);
    plan->tile = widest <= 2 || large ? 64 : 32;
    const bool enough = plan->tile * plan->tile / vec >= kTileThreads;
    plan->vec = static_cast<uint8_t>(vectors && enough ? vec : 1);
  } else {
    plan->mode = GroupMode::kPoint;
    plan->vec = 1;
    plan->ndim = static_cast<uint8_t>(g.ndim);
  }
  // Two vectors of a single operand in flight a thread, or a few single elements.
  size_t bytes = std::max<size_t>(input_bytes * plan->vec, 1);
  plan->unroll = plan->mode == GroupMode::kTile ? 1
                 : plan->vec > 1 ? static_cast<uint8_t>(std::clamp<size_t>(32 / bytes, 1, 2))
                                 : static_cast<uint8_t>(std::clamp<size_t>(16 / bytes, 1, 4));
  return true;
}

Hash128 group_key(const GroupProgram& g, const GroupPlan& plan, uint64_t device, bool batch) {
  Hasher h(device << 8 | (batch ? 2 : 1));
  h.add(static_cast<uint64_t>(plan.mode) | uint64_t{plan.wide} << 8 | uint64_t{plan.vec} << 16 |
        uint64_t{plan.unroll} << 24 | uint64_t{plan.ndim} << 32 | uint64_t{plan.tile} << 40);
  h.add(static_cast<uint64_t>(g.num_inputs) | static_cast<uint64_t>(g.num_outputs) << 16 |
        static_cast<uint64_t>(g.num_instrs) << 32 | static_cast<uint64_t>(g.num_immediates) << 48);
  for (int i = 0; i < plan.num_operands; ++i) {
    uint64_t value = i < g.num_inputs ? 0 : g.outputs[i - g.num_inputs].value;
    h.add(static_cast<uint64_t>(operand(g, i).dtype) | static_cast<uint64_t>(plan.layouts[i]) << 8 |
          value << 16);
  }
  for (int i = 0; i < g.num_instrs; ++i) {
    const Instr& in = g.instrs[i];
    // A body lives as long as the process and is never changed, so its address stands for it; that
    // of its text guards against one that does not.
    h.add(reinterpret_cast<uintptr_t>(in.body));
    if (in.body) h.add(reinterpret_cast<uintptr_t>(in.body->text));
    h.add(static_cast<uint64_t>(in.kind) | static_cast<uint64_t>(in.cls) << 8 |
          static_cast<uint64_t>(in.result_cls) << 16 | static_cast<uint64_t>(in.round_to) << 24 |
          uint64_t{in.num_sources} << 32 | uint64_t{in.num_scalars} << 40 |
          uint64_t{in.first_scalar} << 48);
    for (int s = 0; s < in.num_sources; ++s)
      h.add(static_cast<uint64_t>(in.sources[s].kind) | uint64_t{in.sources[s].index} << 8);
  }
  for (int i = 0; i < g.num_immediates; ++i) h.add(static_cast<uint64_t>(g.immediate_cls[i]));
  return h.finish();
}

// Note [Order of the parameters]
// count; addresses of inputs, outputs; immediates; then
//   kInner, kPoint: a size and a divider for each dimension but the first
//   kTile: batches, rows, columns
// then the strides of each operand that has any, one per dimension.
int group_params(const GroupProgram& g, const GroupPlan& plan, uint64_t* words) {
  int n = 0;
  int strided = 0;
  for (int i = 0; i < plan.num_operands; ++i)
    strided += plan.layouts[i] != Layout::kDense && plan.layouts[i] != Layout::kScalar;
  int immediates = 0;
  for (int i = 0; i < g.num_immediates; ++i) immediates += immediate_words(g.immediate_cls[i]);
  if (1 + plan.num_operands + immediates + 3 + (2 + strided) * plan.ndim > kMaxParamWords) return 0;
  words[n++] = static_cast<uint64_t>(g.numel);
  for (int i = 0; i < plan.num_operands; ++i)
    words[n++] = reinterpret_cast<uintptr_t>(operand(g, i).data);
  for (int i = 0; i < g.num_immediates; ++i) {
    int count = immediate_words(g.immediate_cls[i]);
    std::memcpy(&words[n], &g.immediates[i], static_cast<size_t>(count) * sizeof(uint64_t));
    n += count;
  }
  int last = plan.ndim - 1;
  if (plan.mode == GroupMode::kTile) {
    words[n++] = static_cast<uint64_t>(plan.ndim == 3 ? g.sizes[0] : 1);
    words[n++] = static_cast<uint64_t>(g.sizes[last - 1]);
    words[n++] = static_cast<uint64_t>(g.sizes[last]);
  } else {
    for (int d = 1; d <= last; ++d) {
      int64_t size = g.sizes[d];
      if (d == last && plan.mode == GroupMode::kInner) size /= plan.vec;
      words[n++] = static_cast<uint64_t>(size);
      words[n++] = plan.wide ? 0 : divider(size);
    }
  }
  for (int i = 0; i < plan.num_operands; ++i) {
    if (plan.layouts[i] == Layout::kDense || plan.layouts[i] == Layout::kScalar) continue;
    const Operand& o = operand(g, i);
    for (int d = 0; d <= last; ++d) {
      int64_t stride = o.strides[d];
      if (d == last && plan.mode == GroupMode::kInner) stride *= plan.vec;
      words[n++] = static_cast<uint64_t>(stride);
    }
  }
  return n;
}

int64_t group_blocks(const GroupProgram& g, const GroupPlan& plan) {
  if (plan.mode != GroupMode::kTile) {
    const int64_t each = int64_t{kGroupThreads} * plan.unroll;
    return std::max<int64_t>(1, (g.numel / plan.vec + each - 1) / each);
  }
  int64_t rows = g.sizes[plan.ndim - 2], columns = g.sizes[plan.ndim - 1];
  int64_t batches = plan.ndim == 3 ? g.sizes[0] : 1;
  return batches * ((rows + plan.tile - 1) / plan.tile) * ((columns + plan.tile - 1) / plan.tile);
}

}  // namespace tessera::cuda
