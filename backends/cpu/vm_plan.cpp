// Turns a group's program into steps over registers and memory.
#include <algorithm>
#include <cstdlib>

#include "stream_store.h"
#include "vm.h"

namespace tessera::cpu {

namespace {

// Rows shorter than this share tiles with their neighbours.
constexpr int64_t kShortRow = 256;
// What a tile touches stays below this, to fit a 32 KiB first-level cache with room to spare.
constexpr int64_t kScratchTarget = 24 * 1024;
// Operands together larger than this are prefetched.
constexpr int64_t kPrefetchBytes = 8 * 1024 * 1024;

size_t align_up(size_t n) { return (n + 15) & ~size_t{15}; }

bool is_contiguous(const GroupProgram& p, const Operand& o) {
  int64_t expect = 1;
  for (int d = p.ndim - 1; d >= 0; --d) {
    if (p.sizes[d] != 1 && o.strides[d] != expect) return false;
    expect *= p.sizes[d];
  }
  return true;
}

bool is_scalar(const GroupProgram& p, const Operand& o) {
  for (int d = 0; d < p.ndim; ++d)
    if (p.sizes[d] != 1 && o.strides[d] != 0) return false;
  return true;
}

// The dimension an operand is transposed against, or -1.
int transposed_dim(const GroupProgram& p, const Operand& o) {
  int inner = p.ndim - 1;
  int64_t s = std::abs(o.strides[inner]);
  if (s <= 1 || p.sizes[inner] < 8) return -1;
  for (int d = inner - 1; d >= 0; --d) {
    int64_t t = std::abs(o.strides[d]);
    if (t != 0 && t * 8 <= s && p.sizes[d] >= 8) return d;
  }
  return -1;
}

void choose_visit(const GroupProgram& p, Plan& plan) {
  plan.visit = Visit::kRows;
  plan.block_dim = -1;
  if (p.ndim <= 1) return;
  if (p.numel >= kMaxTile) {
    for (int i = 0; i < p.num_inputs && plan.block_dim < 0; ++i)
      plan.block_dim = transposed_dim(p, p.inputs[i]);
    for (int i = 0; i < p.num_outputs && plan.block_dim < 0; ++i)
      plan.block_dim = transposed_dim(p, p.outputs[i].to);
  }
  if (plan.block_dim >= 0)
    plan.visit = Visit::kBlocks;
  else if (p.sizes[p.ndim - 1] < kShortRow)
    plan.visit = Visit::kLinear;
}

void plan_operand(const GroupProgram& p, const Operand& o, Plan& plan, OperandPlan& out) {
  out.itemsize = static_cast<int32_t>(itemsize(o.dtype));
  bool dense;
  switch (plan.visit) {
    case Visit::kRows:
      dense = p.ndim == 0 || o.strides[p.ndim - 1] == 1 || p.sizes[p.ndim - 1] == 1;
      break;
    case Visit::kLinear:
      dense = is_contiguous(p, o);
      break;
    default:
      dense = false;
  }
  out.direct = dense;
}

// Hands out register slots; a freed one is taken first, as it is warm.
struct Slots {
  int used = 0;
  int free_count = 0;
  uint16_t* free_list;
  int take() { return free_count > 0 ? free_list[--free_count] : used++; }
  void give(int slot) { free_list[free_count++] = static_cast<uint16_t>(slot); }
};

struct Builder {
  const GroupProgram& p;
  Plan& plan;
  int32_t* last_use;  // of each value: number of the last instruction that reads it, or -1
  uint16_t* free_list;
  bool* read_later;  // of each instruction's result
  int32_t* same_as;  // of each instruction: the value it only passes on, or -1
  Slots slots;
  int first_imm, first_instr, first_held;

  int value_of(Source s) const {
    switch (s.kind) {
      case SourceKind::kInput:
        return s.index;
      case SourceKind::kImmediate:
        return first_imm + s.index;
      default:
        return result_of(s.index);
    }
  }
  int result_of(int i) const { return same_as[i] >= 0 ? same_as[i] : first_instr + i; }

  // The value an instruction passes on unchanged, or -1. What is only stored is rounded by the
  // store. Memory that is written as well may be overwritten before it is read again.
  int passes_on(int i) const {
    const Instr& in = p.instrs[i];
    if (!is_identity(in) || (read_later[i] && must_round(in))) return -1;
    const int from = value_of(in.sources[0]);
    return from < p.num_inputs && is_written(from) ? -1 : from;
  }

  bool must_round(const Instr& in) const {
    return converts().round[static_cast<int>(in.round_to)] && !is_plain_copy(p, in);
  }

  bool is_written(int input) const {
    for (int o = 0; o < p.num_outputs; ++o)
      if (p.outputs[o].to.data == p.inputs[input].data) return true;
    return false;
  }

  // The input whose bits an output is, or -1. Registers that hold what memory holds keep the bits
  // themselves.
  int passed_input(int o) const {
    if (is_register_form(p.outputs[o].to.dtype)) return -1;
    const Instr* in = &p.instrs[p.outputs[o].value];
    while (is_plain_copy(p, *in)) {
      if (in->sources[0].kind == SourceKind::kInput) return in->sources[0].index;
      in = &p.instrs[in->sources[0].index];
    }
    return -1;
  }

  void hold_inputs() {
    for (int o = 0; o < p.num_outputs; ++o) {
      plan.places[first_held + o] = {Place::Kind::kNone, false, 0, -1};
      const int from = passed_input(o);
      if (from < 0 || !is_written(from)) continue;
      plan.places[first_held + o] = {Place::Kind::kSlot, false, 0, slots.take()};
      Step& hold = plan.steps[plan.num_steps++];
      hold.kind = Step::Kind::kHold;
      hold.dst = static_cast<uint16_t>(first_held + o);
      hold.src[0] = static_cast<uint16_t>(from);
    }
  }

  void find_uses() {
    std::fill_n(read_later, p.num_instrs, false);
    for (int i = p.num_instrs - 1; i >= 0; --i) {
      const Instr& in = p.instrs[i];
      for (int k = 0; k < in.num_sources; ++k) {
        if (in.sources[k].kind != SourceKind::kValue) continue;
        const int from = in.sources[k].index;
        // Passed on to be stored, and rounded there.
        if (is_identity(in) && !read_later[i] && in.round_to == p.instrs[from].round_to) continue;
        read_later[from] = true;
      }
    }
    for (int i = 0; i < p.num_instrs; ++i) same_as[i] = passes_on(i);
    std::fill_n(last_use, plan.num_values, -1);
    for (int i = 0; i < p.num_instrs; ++i)
      if (same_as[i] < 0)
        for (int k = 0; k < p.instrs[i].num_sources; ++k)
          last_use[value_of(p.instrs[i].sources[k])] = i;
    // Stores come after the last instruction, and keep what they read.
    for (int o = 0; o < p.num_outputs; ++o)
      if (passed_input(o) < 0 && !writes_in_place(o))
        last_use[result_of(p.outputs[o].value)] = p.num_instrs;
  }

  // May the output's instruction write its result straight to memory? Not when the memory is an
  // input that a later instruction of the tile still reads.
  bool writes_in_place(int o) const {
    const GroupOutput& out = p.outputs[o];
    if (same_as[out.value] >= 0 || plan.stream || !plan.operands[p.num_inputs + o].direct ||
        !is_register_form(out.to.dtype))
      return false;
    for (int e = 0; e < o; ++e)
      if (p.outputs[e].value == out.value) return false;
    for (int i = 0; i < p.num_inputs; ++i)
      if (p.inputs[i].data == out.to.data && last_use[i] > out.value) return false;
    return true;
  }

  void place_constants() {
    for (int i = 0; i < p.num_inputs; ++i) {
      Place& place = plan.places[i];
      place = {Place::Kind::kNone, false, static_cast<uint16_t>(i), -1};
      if (last_use[i] < 0) continue;
      if (p.numel > 1 && p.ndim > 0 && p.inputs[i].strides[p.ndim - 1] == 0 &&
          is_scalar(p, p.inputs[i])) {
        place = {Place::Kind::kSlot, true, static_cast<uint16_t>(i), slots.take()};
      } else if (plan.operands[i].direct && is_register_form(p.inputs[i].dtype)) {
        place.kind = Place::Kind::kMemory;
      }
    }
    for (int i = 0; i < p.num_immediates; ++i) {
      Place& place = plan.places[first_imm + i];
      place = {Place::Kind::kNone, true, 0, -1};
      if (last_use[first_imm + i] >= 0) {
        place.kind = Place::Kind::kSlot;
        place.slot = slots.take();
      }
    }
    for (int i = 0; i < p.num_instrs; ++i)
      plan.places[first_instr + i] = {Place::Kind::kNone, false, 0, -1};
    for (int o = 0; o < p.num_outputs; ++o)
      if (writes_in_place(o))
        plan.places[first_instr + p.outputs[o].value] = {
            Place::Kind::kMemory, false, static_cast<uint16_t>(p.num_inputs + o), -1};
  }

  void release_dead(int i) {
    const Instr& in = p.instrs[i];
    for (int k = 0; k < in.num_sources; ++k) {
      int v = value_of(in.sources[k]);
      Place& place = plan.places[v];
      if (last_use[v] != i || place.kind != Place::Kind::kSlot || place.constant) continue;
      bool again = false;
      for (int e = 0; e < k; ++e) again |= value_of(in.sources[e]) == v;
      if (!again) slots.give(place.slot);
    }
  }

  // A slot that dies here may take the result if registers are of one size.
  bool may_reuse(const Instr& in) const {
    for (int k = 0; k < in.num_sources; ++k) {
      Source s = in.sources[k];
      RegClass c = s.kind == SourceKind::kInput       ? reg_class(p.inputs[s.index].dtype)
                   : s.kind == SourceKind::kImmediate ? p.immediate_cls[s.index]
                                                      : p.instrs[s.index].result_cls;
      if (reg_size(c) != reg_size(in.result_cls)) return false;
    }
    return true;
  }

  // An input that is not there yet.
  void load(int v) {
    if (plan.places[v].kind != Place::Kind::kNone) return;
    plan.places[v].kind = Place::Kind::kSlot;
    plan.places[v].slot = slots.take();
    Step& load = plan.steps[plan.num_steps++];
    load.kind = Step::Kind::kLoad;
    load.dst = static_cast<uint16_t>(v);
    load.src[0] = static_cast<uint16_t>(v);
    load.convert = converts().load[static_cast<int>(p.inputs[v].dtype)];
  }

  void add_instr(int i) {
    if (same_as[i] >= 0) return;
    const Instr& in = p.instrs[i];
    int value = first_instr + i;
    Place& place = plan.places[value];
    bool stored = last_use[value] >= 0 || place.kind == Place::Kind::kMemory;
    if (!stored) return release_dead(i);  // nobody wants it
    for (int k = 0; k < in.num_sources; ++k) load(value_of(in.sources[k]));
    Step& step = plan.steps[plan.num_steps++];
    step.num_sources = in.num_sources;
    step.dst = static_cast<uint16_t>(value);
    for (int k = 0; k < in.num_sources; ++k)
      step.src[k] = static_cast<uint16_t>(value_of(in.sources[k]));
    // A result that is only stored is rounded by the store.
    step.round =
        read_later[i] && must_round(in) ? converts().round[static_cast<int>(in.round_to)] : nullptr;
    step.scalars = p.immediates + in.first_scalar;
    if (in.kind == Instr::Kind::kBody) {
      step.kind = Step::Kind::kBody;
      step.tile = in.body->tiles[g_isa][static_cast<int>(in.cls)];
    } else {
      step.kind = Step::Kind::kConvert;
      step.convert = converts().conversion(in.cls, in.round_to);
    }
    bool reuse = may_reuse(in);
    if (reuse) release_dead(i);
    if (place.kind == Place::Kind::kNone) {
      place.kind = Place::Kind::kSlot;
      place.slot = slots.take();
    }
    if (!reuse) release_dead(i);
  }

  void add_stores() {
    for (int o = 0; o < p.num_outputs; ++o) {
      if (const int from = passed_input(o); from >= 0) {
        Step& pass = plan.steps[plan.num_steps++];
        pass.kind = Step::Kind::kPass;
        pass.dst = static_cast<uint16_t>(o);
        pass.src[0] = static_cast<uint16_t>(from);
        pass.src[1] = static_cast<uint16_t>(first_held + o);
        pass.num_sources = plan.places[first_held + o].kind == Place::Kind::kSlot ? 2 : 1;
        continue;
      }
      const int value = result_of(p.outputs[o].value);
      if (value < p.num_inputs) load(value);
      const Place& place = plan.places[value];
      if (place.kind == Place::Kind::kMemory && place.operand == p.num_inputs + o) continue;
      Step& store = plan.steps[plan.num_steps++];
      store.kind = Step::Kind::kStore;
      store.dst = static_cast<uint16_t>(o);
      store.src[0] = static_cast<uint16_t>(value);
      store.convert = converts().store[static_cast<int>(p.outputs[o].to.dtype)];
    }
  }
};

// Are results too large for any cache, and in memory that is not read as well?
bool should_stream(const GroupProgram& p, const Plan& plan) {
  int64_t per_point = 0;
  for (int i = 0; i < p.num_inputs + p.num_outputs; ++i)
    if (plan.operands[i].direct) per_point += plan.operands[i].itemsize;
  if (p.numel * per_point <= streaming_bytes()) return false;
  for (int o = 0; o < p.num_outputs; ++o)
    for (int i = 0; i < p.num_inputs; ++i)
      if (p.inputs[i].data == p.outputs[o].to.data) return false;
  return true;
}

// Bytes per point that a tile keeps in the cache: registers, and memory it reads and writes.
int64_t bytes_per_point(const GroupProgram& p, const Plan& plan) {
  int64_t bytes = int64_t{plan.slot_bytes} * plan.num_slots;
  for (int i = 0; i < p.num_inputs + p.num_outputs; ++i) bytes += plan.operands[i].itemsize;
  return bytes;
}

void cut_tiles(const GroupProgram& p, Plan& plan) {
  int64_t per_point = bytes_per_point(p, plan);
  // Few steps leave no time to hide anything in, and the hardware copes with few streams.
  plan.prefetch =
      p.numel * per_point > kPrefetchBytes && (plan.visit == Visit::kBlocks || plan.num_steps >= 4);
  int64_t tile = kMaxTile;
  while (tile > 128 && tile * per_point > kScratchTarget) tile /= 2;
  plan.tile = tile;
  if (plan.visit == Visit::kRows) {
    int64_t cols = p.ndim > 0 ? p.sizes[p.ndim - 1] : 1;
    plan.tiles_per_row = (cols + tile - 1) / tile;
    plan.num_tiles = plan.tiles_per_row == 0 ? 0 : p.numel / cols * plan.tiles_per_row;
  } else if (plan.visit == Visit::kLinear) {
    plan.num_tiles = (p.numel + tile - 1) / tile;
  } else {
    int64_t rows = p.sizes[plan.block_dim], cols = p.sizes[p.ndim - 1];
    // Cache lines of both orders whole: 32 of 4 bytes each way. All of a short dimension, and more
    // of the other one then.
    int64_t side = tile >= 1024 ? 32 : 16;
    plan.block_cols = std::min(cols, rows < side ? tile / rows : side);
    plan.block_rows = std::min(rows, tile / plan.block_cols);
    plan.tiles_per_row = (cols + plan.block_cols - 1) / plan.block_cols;
    int64_t down = (rows + plan.block_rows - 1) / plan.block_rows;
    plan.num_tiles = p.numel / (rows * cols) * down * plan.tiles_per_row;
  }
}

}  // namespace

size_t plan_bytes(const GroupProgram& p) {
  size_t values =
      static_cast<size_t>(p.num_inputs + p.num_immediates + p.num_instrs + p.num_outputs);
  size_t steps = static_cast<size_t>(p.num_inputs + p.num_instrs + 2 * p.num_outputs);
  size_t operands = static_cast<size_t>(p.num_inputs + p.num_outputs);
  return align_up(values * sizeof(Place)) + align_up(steps * sizeof(Step)) +
         align_up(operands * sizeof(OperandPlan)) + align_up(values * sizeof(int32_t)) +
         align_up(values * sizeof(uint16_t)) + align_up(static_cast<size_t>(p.num_instrs)) +
         align_up(static_cast<size_t>(p.num_instrs) * sizeof(int32_t));
}

void make_plan(const GroupProgram& p, void* memory, Plan& plan) {
  char* at = static_cast<char*>(memory);
  auto carve = [&]<class T>(T*& out, int n) {
    out = reinterpret_cast<T*>(at);
    at += align_up(static_cast<size_t>(n) * sizeof(T));
  };
  plan.program = &p;
  plan.num_values = p.num_inputs + p.num_immediates + p.num_instrs + p.num_outputs;
  plan.num_steps = 0;
  Builder b{p,
            plan,
            nullptr,
            nullptr,
            nullptr,
            nullptr,
            {},
            p.num_inputs,
            p.num_inputs + p.num_immediates,
            p.num_inputs + p.num_immediates + p.num_instrs};
  carve(plan.places, plan.num_values);
  carve(plan.steps, p.num_inputs + p.num_instrs + 2 * p.num_outputs);
  carve(plan.operands, p.num_inputs + p.num_outputs);
  carve(b.last_use, plan.num_values);
  carve(b.free_list, plan.num_values);
  carve(b.read_later, p.num_instrs);
  carve(b.same_as, p.num_instrs);
  b.slots.free_list = b.free_list;
  choose_visit(p, plan);
  size_t widest = 4;
  for (int i = 0; i < p.num_inputs; ++i) {
    plan_operand(p, p.inputs[i], plan, plan.operands[i]);
    widest = std::max(widest, reg_size(reg_class(p.inputs[i].dtype)));
  }
  for (int i = 0; i < p.num_outputs; ++i)
    plan_operand(p, p.outputs[i].to, plan, plan.operands[p.num_inputs + i]);
  for (int i = 0; i < p.num_instrs; ++i)
    widest = std::max(widest, reg_size(p.instrs[i].result_cls));
  for (int i = 0; i < p.num_immediates; ++i)
    widest = std::max(widest, reg_size(p.immediate_cls[i]));
  plan.stream = should_stream(p, plan);
  b.find_uses();
  b.place_constants();
  b.hold_inputs();
  for (int i = 0; i < p.num_instrs; ++i) b.add_instr(i);
  b.add_stores();
  plan.num_slots = b.slots.used;
  plan.slot_bytes = static_cast<int32_t>(widest);
  cut_tiles(p, plan);
}

}  // namespace tessera::cpu
