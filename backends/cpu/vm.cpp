#include "vm.h"

#include <alloca.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "copy.h"
#include "scratch.h"
#include "stream_store.h"
#include "strided.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

// Scratch and plans up to this size are on the stack.
constexpr size_t kStackScratch = 96 * 1024;
// Below this many element operations one thread is faster: waking the others costs microseconds.
constexpr int64_t kSerialWork = 64 * 1024;

void fill_tile(void* tile, RegClass cls, Imm v, int64_t n) {
  switch (cls) {
    case RegClass::kF32:
      std::fill_n(static_cast<float*>(tile), n, v.f32);
      break;
    case RegClass::kF64:
      std::fill_n(static_cast<double*>(tile), n, v.f64);
      break;
    case RegClass::kI64:
      std::fill_n(static_cast<int64_t*>(tile), n, v.i64);
      break;
    case RegClass::kB8:
      std::memset(tile, v.b8 != 0, static_cast<size_t>(n));
      break;
    case RegClass::kC64:
      std::fill_n(static_cast<c64*>(tile), n, v.c32);
      break;
    case RegClass::kC128:
      std::fill_n(static_cast<c128*>(tile), n, v.c);
      break;
  }
}

// What one thread needs while it runs tiles.
struct Runner {
  const Plan& plan;
  const GroupProgram& p;
  char* slots;
  char* raw;     // a tile of elements as they lie in memory
  void** where;  // of each value
  int64_t slot_size;
  // The tile.
  int64_t n = 0, rows = 0, cols = 0;
  // What of the next tile is still to be prefetched.
  int next_operand = 0;
  const char* next_line = nullptr;
  const char* next_end = nullptr;
  int64_t quota = 0;
  int64_t coords[kMaxDims];

  const Operand& operand(int i) const {
    return i < p.num_inputs ? p.inputs[i] : p.outputs[i - p.num_inputs].to;
  }

  int64_t offset_of(const Operand& o) const {
    int64_t at = 0;
    for (int d = 0; d < p.ndim; ++d) at += coords[d] * o.strides[d];
    return at;
  }

  char* address(int i) const {
    const Operand& o = operand(i);
    return static_cast<char*>(o.data) + offset_of(o) * plan.operands[i].itemsize;
  }

  void fill_constants(int64_t count) {
    for (int v = 0; v < p.num_inputs + p.num_immediates; ++v) {
      const Place& place = plan.places[v];
      if (!place.constant || place.kind != Place::Kind::kSlot) continue;
      char* slot = slots + place.slot * slot_size;
      where[v] = slot;
      Imm imm;
      RegClass cls;
      if (v < p.num_inputs) {
        cls = reg_class(p.inputs[v].dtype);
        converts().load[static_cast<int>(p.inputs[v].dtype)](&imm, p.inputs[v].data, 1);
      } else {
        cls = p.immediate_cls[v - p.num_inputs];
        imm = p.immediates[v - p.num_inputs];
      }
      fill_tile(slot, cls, imm, count);
    }
  }

  void fix_slots() {
    for (int v = 0; v < plan.num_values; ++v)
      if (plan.places[v].kind == Place::Kind::kSlot)
        where[v] = slots + plan.places[v].slot * slot_size;
  }

  void set_tile(int64_t t) {
    switch (plan.visit) {
      case Visit::kRows: {
        if (p.ndim == 0) {
          n = 1;
          return;
        }
        int inner = p.ndim - 1;
        int64_t row = 0, piece = t;
        if (inner > 0) {
          row = t / plan.tiles_per_row;
          piece = t - row * plan.tiles_per_row;
          unravel(row, inner, p.sizes, coords);
        }
        coords[inner] = piece * plan.tile;
        n = std::min(plan.tile, p.sizes[inner] - coords[inner]);
        return;
      }
      case Visit::kLinear: {
        int64_t first = t * plan.tile;
        unravel(first, p.ndim, p.sizes, coords);
        n = std::min(plan.tile, p.numel - first);
        return;
      }
      case Visit::kBlocks: {
        int inner = p.ndim - 1, d = plan.block_dim;
        int64_t down = (p.sizes[d] + plan.block_rows - 1) / plan.block_rows;
        int64_t j = t % plan.tiles_per_row, rest = t / plan.tiles_per_row;
        int64_t i = rest % down;
        rest /= down;
        for (int e = inner - 1; e >= 0; --e) {
          if (e == d) continue;
          coords[e] = rest % p.sizes[e];
          rest /= p.sizes[e];
        }
        coords[d] = i * plan.block_rows;
        coords[inner] = j * plan.block_cols;
        rows = std::min(plan.block_rows, p.sizes[d] - coords[d]);
        cols = std::min(plan.block_cols, p.sizes[inner] - coords[inner]);
        n = rows * cols;
        return;
      }
    }
  }

  // The tile of an operand, dense, as it lies in memory.
  void gather(int i, void* dst) {
    const Operand& o = operand(i);
    size_t size = static_cast<size_t>(plan.operands[i].itemsize);
    if (plan.visit == Visit::kBlocks)
      gather_block(dst, address(i), rows, cols, o.strides[plan.block_dim], o.strides[p.ndim - 1],
                   size);
    else
      gather_run(dst, o.data, p.ndim, p.sizes, o.strides, coords, n, size);
  }
  void scatter(int i, const void* src) {
    const Operand& o = operand(i);
    size_t size = static_cast<size_t>(plan.operands[i].itemsize);
    if (plan.visit == Visit::kBlocks)
      scatter_block(address(i), src, rows, cols, o.strides[plan.block_dim], o.strides[p.ndim - 1],
                    size);
    else
      scatter_run(o.data, src, p.ndim, p.sizes, o.strides, coords, n, size);
  }

  void load(const Step& s) {
    int i = s.src[0];
    bool ready = is_register_form(p.inputs[i].dtype);
    if (plan.operands[i].direct) return s.convert(where[s.dst], address(i), n);
    gather(i, ready ? where[s.dst] : raw);
    if (!ready) s.convert(where[s.dst], raw, n);
  }
  // A tile as it lies in memory, to an operand.
  void put(int i, const void* from) {
    const size_t bytes = static_cast<size_t>(n * plan.operands[i].itemsize);
    if (!plan.operands[i].direct)
      scatter(i, from);
    else if (plan.stream)
      stream_copy(address(i), from, bytes);
    else
      std::memcpy(address(i), from, bytes);
  }
  void store(const Step& s) {
    int i = p.num_inputs + s.dst;
    const void* from = where[s.src[0]];
    if (plan.operands[i].direct && !plan.stream) return s.convert(address(i), from, n);
    if (!is_register_form(operand(i).dtype)) {
      s.convert(raw, from, n);
      from = raw;
    }
    put(i, from);
  }

  // An input as it lies in memory is kept, as its memory is written in this tile.
  void hold(const Step& s) {
    const int i = s.src[0];
    if (plan.operands[i].direct)
      std::memcpy(where[s.dst], address(i), static_cast<size_t>(n * plan.operands[i].itemsize));
    else
      gather(i, where[s.dst]);
  }
  void pass(const Step& s) {
    const int i = s.src[0];
    const void* from = raw;
    if (s.num_sources > 1)
      from = where[s.src[1]];
    else if (plan.operands[i].direct)
      from = address(i);
    else
      gather(i, raw);
    put(p.num_inputs + s.dst, from);
  }

  // Results that are written past the caches are not wanted there.
  int num_fetched() const { return p.num_inputs + (plan.stream ? 0 : p.num_outputs); }
  // Memory of the next tile is asked for a few lines at a time between the steps of this one: the
  // hardware's own prefetching loses its thread among so many short runs.
  void begin_prefetch() {
    next_operand = 0;
    next_line = next_end = nullptr;
    int64_t lines = 0;
    for (int i = 0; i < num_fetched(); ++i)
      if (plan.operands[i].direct) lines += n * plan.operands[i].itemsize / 64 + 1;
    quota = lines / plan.num_steps + 1;
  }
  void prefetch() {
    for (int64_t left = quota; left > 0; --left) {
      while (next_line >= next_end) {
        if (next_operand == num_fetched()) return;
        int i = next_operand++;
        if (!plan.operands[i].direct) continue;
        int64_t bytes = n * plan.operands[i].itemsize;
        next_line = address(i) + bytes;
        next_end = next_line + bytes;
      }
      __builtin_prefetch(next_line);
      next_line += 64;
    }
  }

  // The same for the block to the right, all at once.
  void prefetch_block() {
    quota = 0;
    for (int i = 0; i < p.num_inputs + p.num_outputs; ++i) {
      const int64_t item = plan.operands[i].itemsize;
      int64_t down = operand(i).strides[plan.block_dim] * item;
      int64_t right = operand(i).strides[p.ndim - 1] * item;
      const char* at = address(i) + plan.block_cols * right;
      int64_t lines = cols, step = right, bytes = rows * item;
      if (std::abs(down) >= std::abs(right)) {
        lines = rows;
        step = down;
        bytes = cols * item;
      }
      if (step == 0) continue;
      for (int64_t l = 0; l < lines; ++l)
        for (int64_t b = 0; b < bytes; b += 64) __builtin_prefetch(at + l * step + b);
    }
  }

  template <bool kPrefetch>
  void run_tile(int64_t t) {
    set_tile(t);
    if constexpr (kPrefetch) plan.visit == Visit::kBlocks ? prefetch_block() : begin_prefetch();
    for (int v = 0; v < plan.num_values; ++v)
      if (plan.places[v].kind == Place::Kind::kMemory) where[v] = address(plan.places[v].operand);
    for (int i = 0; i < plan.num_steps; ++i) {
      const Step& s = plan.steps[i];
      if constexpr (kPrefetch) prefetch();
      switch (s.kind) {
        case Step::Kind::kLoad:
          load(s);
          break;
        case Step::Kind::kHold:
          hold(s);
          break;
        case Step::Kind::kBody: {
          const void* in[kMaxSources];
          for (int k = 0; k < s.num_sources; ++k) in[k] = where[s.src[k]];
          void* out = where[s.dst];
          s.tile(out, in, s.scalars, n);
          if (s.round) s.round(out, out, n);
          break;
        }
        case Step::Kind::kConvert:
          s.convert(where[s.dst], where[s.src[0]], n);
          if (s.round) s.round(where[s.dst], where[s.dst], n);
          break;
        case Step::Kind::kPass:
          pass(s);
          break;
        case Step::Kind::kStore:
          store(s);
          break;
      }
    }
  }
};

// noinline: its scratch is the only large thing on the stack, and it is touched only as far as
// used.
__attribute__((noinline)) void run_tiles(const Plan& plan, int64_t begin, int64_t end,
                                         OutOfScratch& failure) noexcept {
  const GroupProgram& p = *plan.program;
  int64_t tile =
      plan.num_tiles == 1 ? std::min(plan.tile, (p.numel + 63) & ~int64_t{63}) : plan.tile;
  int64_t slot_size = tile * plan.slot_bytes;
  size_t values = static_cast<size_t>(plan.num_values) * sizeof(void*);
  size_t need = static_cast<size_t>(slot_size * (plan.num_slots + 1)) + values + 128;
  bool on_stack = need <= kStackScratch;
  Scratch heap(on_stack ? 0 : need, failure);
  char* memory = static_cast<char*>(on_stack ? alloca(need) : heap.get());
  if (!memory) return;
  char* aligned = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(memory) + 63) & ~63ull);
  Runner r{plan,
           p,
           aligned,
           aligned + slot_size * plan.num_slots,
           reinterpret_cast<void**>(aligned + slot_size * (plan.num_slots + 1)),
           slot_size};
  r.fix_slots();
  r.fill_constants(tile);
  if (plan.prefetch)
    for (int64_t t = begin; t < end; ++t) r.run_tile<true>(t);
  else
    for (int64_t t = begin; t < end; ++t) r.run_tile<false>(t);
  if (plan.stream) stream_fence();
}

// One operator on few, dense points: what an eager program runs most. No plan is made.
bool run_small(const GroupProgram& p) noexcept {
  if (p.num_instrs != 1 || p.num_outputs != 1 || p.ndim > 1 || p.numel > kMaxTile) return false;
  const Instr& in = p.instrs[0];
  const int64_t n = p.numel;
  const Operand& out = p.outputs[0].to;
  auto dense = [&](const Operand& o) { return n == 1 || o.strides[0] == 1; };
  if (!dense(out) || (n > kMaxTile / 2 && in.cls == RegClass::kC128)) return false;
  alignas(64) char tiles[kMaxSources + 1][kMaxTile * 8];
  const void* sources[kMaxSources];
  const ConvertTable& c = converts();
  for (int k = 0; k < in.num_sources; ++k) {
    const Source s = in.sources[k];
    if (s.kind == SourceKind::kImmediate) {
      fill_tile(tiles[k], p.immediate_cls[s.index], p.immediates[s.index], n);
      sources[k] = tiles[k];
      continue;
    }
    const Operand& o = p.inputs[s.index];
    if (dense(o)) {
      sources[k] = o.data;
      if (is_register_form(o.dtype)) continue;
      c.load[static_cast<int>(o.dtype)](tiles[k], o.data, n);
    } else if (o.strides[0] == 0) {
      Imm imm;
      c.load[static_cast<int>(o.dtype)](&imm, o.data, 1);
      fill_tile(tiles[k], reg_class(o.dtype), imm, n);
    } else {
      return false;
    }
    sources[k] = tiles[k];
  }
  const bool ready = is_register_form(out.dtype);
  void* result = ready ? out.data : tiles[kMaxSources];
  if (in.kind == Instr::Kind::kBody)
    in.body->tiles[g_isa][static_cast<int>(in.cls)](result, sources, p.immediates + in.first_scalar,
                                                    n);
  else
    c.conversion(in.cls, in.round_to)(result, sources[0], n);
  if (!ready) c.store[static_cast<int>(out.dtype)](out.data, result, n);
  return true;
}

// One result that is an input in another layout. Its bits are passed on as they are.
bool run_copy(const GroupProgram& p) noexcept {
  if (p.num_instrs != 1 || p.num_outputs != 1 || !is_plain_copy(p, p.instrs[0])) return false;
  const Operand &from = p.inputs[p.instrs[0].sources[0].index], &to = p.outputs[0].to;
  if (from.data == to.data) return true;  // at the same strides
  copy_strided(to.data, to.strides, from.data, from.strides, p.ndim, p.sizes, itemsize(to.dtype));
  return true;
}

}  // namespace

Status run_group(Exec, const GroupProgram* program) noexcept {
  const GroupProgram& p = *program;
  if (p.numel == 0 || p.num_outputs == 0) return {};
  for (int i = 0; i < p.num_instrs; ++i) {
    const Instr& in = p.instrs[i];
    if (in.kind == Instr::Kind::kBody && !in.body->tiles[g_isa][static_cast<int>(in.cls)])
        [[unlikely]]
      return fail(Code::kUnsupported, "%s(): not implemented for %s", in.body->name,
                  dtype_name(in.round_to));
  }
  if (run_copy(p) || run_small(p)) return {};
  size_t bytes = plan_bytes(p);
  bool on_stack = bytes <= kStackScratch / 4;
  OutOfScratch failure;
  Scratch heap(on_stack ? 0 : bytes, failure);
  void* memory = on_stack ? alloca(bytes) : heap.get();
  if (!memory) return failure.status("group");
  Plan plan;
  make_plan(p, memory, plan);
  int64_t work = p.numel * plan.num_steps;
  if (work <= kSerialWork || plan.num_tiles == 1) {
    run_tiles(plan, 0, plan.num_tiles, failure);
  } else {
    int64_t grain = std::max<int64_t>(1, kSerialWork / 2 / (plan.tile * plan.num_steps));
    parallel_for(0, plan.num_tiles, grain,
                 [&](int64_t b, int64_t e) { run_tiles(plan, b, e, failure); });
  }
  return failure.status("group");
}

}  // namespace tessera::cpu
