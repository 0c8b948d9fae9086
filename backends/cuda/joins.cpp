#include "joins.h"

#include <cstring>
#include <vector>

#include "codegen.h"
#include "prelude.h"

namespace tessera::cuda {

namespace {

const Operand& operand(const GroupProgram& g, int i) {
  return i < g.num_inputs ? g.inputs[i] : g.outputs[i - g.num_inputs].to;
}
int operands(const GroupProgram& g) { return g.num_inputs + g.num_outputs; }

// In vectors of `vec` elements.
bool is_fast(const Operand& o, int vec) {
  const size_t bytes = static_cast<size_t>(vec) * itemsize(o.dtype);
  return o.strides[1] == 1 && o.strides[0] % vec == 0 && bytes <= 16 &&
         reinterpret_cast<uintptr_t>(o.data) % bytes == 0;
}

// The words of its Params: a count that nobody reads, addresses, immediates, two strides each.
int words_of(const GroupProgram& g) {
  int n = 1 + operands(g) * 3;
  for (int i = 0; i < g.num_immediates; ++i) n += immediate_words(g.immediate_cls[i]);
  return n;
}

GroupPlan plain_plan(const GroupProgram& g) {
  GroupPlan plan{};
  plan.mode = GroupMode::kPoint;
  plan.num_operands = static_cast<uint8_t>(operands(g));
  for (int i = 0; i < operands(g); ++i) plan.layouts[i] = Layout::kDense;
  return plan;
}

bool is_special(const GroupProgram* g) { return g && uses_special(*g); }

int put_words(const GroupProgram& g, uint64_t* words) {
  int n = 0;
  words[n++] = 0;
  for (int i = 0; i < operands(g); ++i)
    words[n++] = reinterpret_cast<uintptr_t>(operand(g, i).data);
  for (int i = 0; i < g.num_immediates; ++i) {
    const int count = immediate_words(g.immediate_cls[i]);
    std::memcpy(&words[n], &g.immediates[i], static_cast<size_t>(count) * sizeof(uint64_t));
    n += count;
  }
  for (int i = 0; i < operands(g); ++i)
    for (int d = 0; d < 2; ++d) words[n++] = static_cast<uint64_t>(operand(g, i).strides[d]);
  return n;
}

}  // namespace

bool Joins::fit(const GroupProgram* before, const GroupProgram* after) {
  constexpr int kForTheKernel = 120;
  int words = kForTheKernel;
  for (const GroupProgram* g : {before, after}) {
    if (!g) continue;
    words += words_of(*g);
    if (operands(*g) > kMaxOperands) return false;
    for (int i = 0; i < operands(*g); ++i)
      if (tessera::is_complex(operand(*g, i).dtype)) return false;
    for (int i = 0; i < g->num_instrs; ++i)
      if (is_complex(g->instrs[i].cls) || is_complex(g->instrs[i].result_cls)) return false;
  }
  return words <= kMaxParamWords;
}

void Joins::add_to(Hasher& h, int vec) const {
  h.add(uint64_t{before_ != nullptr} | uint64_t{after_ != nullptr} << 1 |
        static_cast<uint64_t>(vec) << 2);
  for (const GroupProgram* g : {before_, after_}) {
    if (!g) continue;
    const Hash128 key = group_key(*g, plain_plan(*g), 0);
    h.add(key.lo);
    h.add(key.hi);
    for (int i = 0; i < operands(*g); ++i) h.add(is_fast(operand(*g, i), vec));
  }
}

std::string Joins::text(int vec) const {
  std::string out = is_special(before_) || is_special(after_) ? special_text() : "";
  auto add = [&](const GroupProgram* g, const char* name) {
    if (!g) return;
    std::vector<bool> fast;
    for (int i = 0; i < operands(*g); ++i) fast.push_back(is_fast(operand(*g, i), vec));
    out += joined_text(*g, plain_plan(*g), name, fast);
  };
  add(before_, "Before");
  add(after_, "After");
  if (before_) out += "#define BEFORE 1\n";
  if (after_) out += "#define AFTER 1\n";
  return out + "#define JOIN_FIELDS " + (before_ ? "Before::Params before; " : "") +
         (after_ ? "After::Params after;" : "") + "\n";
}

int Joins::words() const {
  return (before_ ? words_of(*before_) : 0) + (after_ ? words_of(*after_) : 0);
}

bool Joins::put(uint64_t* words, int used) const {
  for (const GroupProgram* g : {before_, after_}) {
    if (!g) continue;
    if (used + words_of(*g) > kMaxParamWords) return false;
    used += put_words(*g, words + used);
  }
  return true;
}

}  // namespace tessera::cuda
