#include "interpret.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "background.h"
#include "graphs.h"

namespace tessera::cuda {
namespace {

constexpr unsigned kCopy = 0xffff, kImmediate = 0x8000, kAsItIs = 0xff;
constexpr int kMaxSlots = 46;  // a KiB of shared memory each, of the 48 that need no asking

enum class Mode : uint8_t { kNever, kIfThere, kMeanwhile, kSingle, kAlways };
Mode mode() {
  static const Mode chosen = [] {
    const char* v = std::getenv("TESSERA_INTERPRET");
    if (!v || !*v) return Mode::kIfThere;
    if (std::strcmp(v, "always") == 0) return Mode::kAlways;
    if (std::strcmp(v, "single") == 0) return Mode::kSingle;
    return std::strcmp(v, "0") == 0 ? Mode::kNever : Mode::kMeanwhile;
  }();
  return chosen;
}

Hash128 key_of(const Device& d) {
  Hasher h(static_cast<uint64_t>(d.ordinal) << 8 | 11);
  h.add(std::string_view(kInterpretEntry));
  return h.finish();
}

// A program in the words of the kernel; see interpret_text.cpp.
class Encoder {
 public:
  Encoder(const GroupProgram& g, uint64_t* words) : g_(g), w_(words) {}

  // False where there is no room, or something that the kernel cannot do.
  bool encode() {
    if (g_.num_inputs > kMaxOperands || g_.num_instrs > kMaxParamWords) return false;
    find_last_uses();
    const int inputs = static_cast<int>(
        std::count_if(last_use_, last_use_ + g_.num_inputs, [](int use) { return use >= 0; }));
    const int instrs = static_cast<int>(std::count_if(last_use_ + g_.num_inputs,
                                                      last_use_ + g_.num_inputs + g_.num_instrs,
                                                      [](int use) { return use >= 0; }));
    program_ = kInterpretOffsets + g_.ndim + (inputs + g_.num_outputs) * (2 + g_.ndim);
    const int immediates = program_ + 2 * instrs;
    if (immediates + g_.num_immediates > kMaxParamWords || g_.num_immediates > 255) return false;
    if (g_.ndim > 255 || inputs > 255 || g_.num_outputs > 255) return false;
    w_[0] = static_cast<uint64_t>(g_.numel);
    w_[1] = static_cast<uint64_t>(g_.ndim) | static_cast<uint64_t>(inputs) << 8 |
            static_cast<uint64_t>(g_.num_outputs) << 16 | static_cast<uint64_t>(instrs) << 24;
    w_[2] = static_cast<uint64_t>(program_) | static_cast<uint64_t>(immediates) << 32;
    w_[3] = 0;
    std::copy_n(g_.sizes, g_.ndim, w_ + kInterpretOffsets);
    int at = kInterpretOffsets + g_.ndim;
    for (int i = 0; i < g_.num_inputs; ++i) {
      if (last_use_[i] < 0) continue;
      if (is_complex(g_.inputs[i].dtype) || !take_slot(&slots_[i])) return false;
      at = operand(g_.inputs[i], slots_[i], at);
    }
    const int outputs = at;
    for (int i = 0, to = program_; i < g_.num_instrs; ++i) {
      if (last_use_[g_.num_inputs + i] < 0) continue;
      if (!instruction(i, to)) return false;
      to += 2;
    }
    at = outputs;
    for (int i = 0; i < g_.num_outputs; ++i)
      at = operand(g_.outputs[i].to, slots_[g_.num_inputs + g_.outputs[i].value], at);
    for (int i = 0; i < g_.num_immediates; ++i) {
      if (g_.immediate_cls[i] > RegClass::kB8) return false;
      w_[immediates + i] = 0;
      std::memcpy(&w_[immediates + i], &g_.immediates[i], reg_size(g_.immediate_cls[i]));
    }
    return true;
  }
  int slots() const { return most_slots_; }

 private:
  // Inputs, then results of instructions.
  int number_of(const Source& s) const {
    return s.kind == SourceKind::kInput ? s.index : g_.num_inputs + s.index;
  }
  // -1 for what no output needs: of an operator that was dropped its inputs stay, and those may
  // never have been stored.
  void find_last_uses() {
    std::fill_n(last_use_, g_.num_inputs + g_.num_instrs, -1);
    for (int i = 0; i < g_.num_outputs; ++i)
      last_use_[g_.num_inputs + g_.outputs[i].value] = g_.num_instrs;
    for (int i = g_.num_instrs; i-- > 0;) {
      if (last_use_[g_.num_inputs + i] < 0) continue;
      for (int s = 0; s < g_.instrs[i].num_sources; ++s) {
        if (g_.instrs[i].sources[s].kind == SourceKind::kImmediate) continue;
        int& last = last_use_[number_of(g_.instrs[i].sources[s])];
        last = std::max(last, i);
      }
    }
  }
  bool take_slot(uint8_t* slot) {
    int i = 0;
    while (i < kMaxSlots && used_[i]) ++i;
    if (i == kMaxSlots) return false;
    used_[i] = true;
    most_slots_ = std::max(most_slots_, i + 1);
    *slot = static_cast<uint8_t>(i);
    return true;
  }
  void give_slot(uint8_t slot) { used_[slot] = false; }

  int operand(const Operand& o, uint8_t slot, int at) {
    w_[at++] = reinterpret_cast<uintptr_t>(o.data);
    w_[at++] = static_cast<uint64_t>(o.dtype) | static_cast<uint64_t>(slot) << 8;
    for (int d = 0; d < g_.ndim; ++d) w_[at++] = static_cast<uint64_t>(o.strides[d]);
    return at;
  }
  unsigned source(const Source& s) const {
    if (s.kind == SourceKind::kImmediate) return kImmediate | s.index;
    return slots_[number_of(s)] | static_cast<unsigned>(dtype_of(g_, s)) << 8;
  }
  bool instruction(int i, int to) {
    const Instr& in = g_.instrs[i];
    if (is_complex(in.round_to)) return false;
    int opcode = static_cast<int>(kCopy);
    if (!is_plain_copy(g_, in)) {
      if (in.cls > RegClass::kB8 || in.result_cls > RegClass::kB8) return false;
      opcode = in.kind == Instr::Kind::kConvert ? opcode_of_convert(in.cls, in.round_to)
                                                : opcode_of(in.body, in.cls);
      if (opcode < 0) return false;
    }
    uint64_t from = 0;
    for (int s = 0; s < kMaxSources; ++s) {
      // Those it has not are read all the same.
      const Source& given = in.sources[s < in.num_sources ? s : 0];
      from |= static_cast<uint64_t>(in.num_sources ? source(given) : 0) << (16 * s);
    }
    for (int s = 0; s < in.num_sources; ++s) {
      if (in.sources[s].kind == SourceKind::kImmediate) continue;
      const int n = number_of(in.sources[s]);
      if (last_use_[n] == i) give_slot(slots_[n]);
    }
    uint8_t slot = 0;
    if (!take_slot(&slot)) return false;
    slots_[g_.num_inputs + i] = slot;
    const uint64_t round_to = keeps_nan(in) ? kAsItIs : static_cast<uint64_t>(in.round_to);
    w_[to] = static_cast<uint64_t>(opcode) | static_cast<uint64_t>(slot) << 16 | round_to << 24 |
             static_cast<uint64_t>(in.num_scalars ? in.first_scalar : 0) << 32;
    w_[to + 1] = from;
    return true;
  }

  const GroupProgram& g_;
  uint64_t* const w_;
  int program_ = 0, most_slots_ = 1;
  bool used_[kMaxSlots] = {};
  uint8_t slots_[kMaxOperands + kMaxParamWords];
  int last_use_[kMaxOperands + kMaxParamWords];
};

}  // namespace

bool never_compiles(int bodies) {
  return mode() == Mode::kAlways || (mode() == Mode::kSingle && bodies <= 1);
}

bool compiles_meanwhile() {
  static const bool told = [] {
    const HostServices* host = services.load(std::memory_order_acquire);
    return host && host->at_end(end_compilations);
  }();
  return told;
}

bool is_much(const Device& d, int64_t elements) {
  constexpr int64_t kNever = int64_t{64} << 20;
  return elements > std::max(kNever, static_cast<int64_t>(d.memory / (64 * sizeof(float))));
}

bool interprets(Device& d, CUstream stream, int bodies) {
  if (mode() == Mode::kNever || (mode() == Mode::kSingle && bodies > 1)) return false;
  if (!never_compiles(bodies) && !compiles_meanwhile()) return false;
  if (mode() == Mode::kIfThere) {
    // Once for a process: to compile it takes far longer than anything that it could save.
    static const bool there = is_compiled(interpret_text(), d.arch, Effort::kFull);
    if (!there) return false;
  }
  return captures.load(std::memory_order_relaxed) == 0 || !is_capturing(stream);
}

bool can_interpret(const GroupProgram& g) {
  uint64_t words[kMaxParamWords];
  return Encoder(g, words).encode();
}

Status interpret_group(Device& d, CUstream stream, const GroupProgram& g) {
  uint64_t words[kMaxParamWords];
  Encoder e(g, words);
  if (!e.encode()) return fail(Code::kUnsupported, "it cannot be interpreted");
  const Kernel* k = nullptr;
  TS_TRY(get_kernel(d, key_of(d), kInterpretEntry, kInterpretEntry, &k,
                    [] { return interpret_text(); }));
  const int64_t blocks = (g.numel + kInterpretThreads - 1) / kInterpretThreads;
  const Grid grid{std::min<int64_t>(blocks, int64_t{d.multiprocessors} * 64), kInterpretThreads, 1,
                  1, e.slots() * kInterpretThreads * static_cast<int>(sizeof(uint64_t))};
  return launch(d, stream, *k, grid, words, "launching a pointwise kernel");
}

}  // namespace tessera::cuda
