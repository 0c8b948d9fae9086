// The text of the kernel that interprets groups.
//
// Its words: 0 the number of elements; 1 the numbers of dimensions, inputs, outputs and
// instructions, a byte each, the latter in 16 bits; 2 where instructions and immediates begin, 32
// bits each; 3 nothing; 4.. sizes; then each input and output: its address, its dtype and slot (a
// byte each), a stride for each dimension; then two words an instruction:
//   opcode (16 bits), slot of the result (8), dtype of the result (8; 255: left as it is), its
//   first scalar (16)
//   four sources of 16 bits: slot or immediate (8), dtype (4), or 0x8000 for an immediate
// then a word for each immediate. A slot holds a value as memory would.
#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "interpret.h"
#include "prelude.h"

namespace tessera::cuda {
namespace {

constexpr RegClass kClasses[] = {RegClass::kF32, RegClass::kF64, RegClass::kI64, RegClass::kB8};

struct Opcodes {
  std::vector<const PointwiseBody*> bodies;  // sorted: addresses differ from process to process
  std::unordered_map<const PointwiseBody*, int> first;

  Opcodes() {
    const HostServices* host = services.load(std::memory_order_acquire);
    if (!host) return;
    int count = 0;
    const PointwiseBody* const* all = host->bodies(&count);
    for (int i = 0; i < count; ++i)
      if (can_interpret(*all[i])) bodies.push_back(all[i]);
    std::sort(bodies.begin(), bodies.end(), [](const PointwiseBody* a, const PointwiseBody* b) {
      const int by_name = std::strcmp(a->name, b->name);
      return by_name ? by_name < 0 : std::strcmp(a->text, b->text) < 0;
    });
    for (size_t i = 0; i < bodies.size(); ++i)
      first.emplace(bodies[i], kFirstBody + 4 * static_cast<int>(i));
  }
  static bool has(const PointwiseBody& b, RegClass cls) {
    return b.tiles[0][static_cast<int>(cls)] != nullptr;
  }
  static bool can_interpret(const PointwiseBody& b) {
    return b.result != 'c' && std::any_of(std::begin(kClasses), std::end(kClasses),
                                          [&](RegClass c) { return has(b, c); });
  }
};

const Opcodes& opcodes() {
  static const Opcodes* const all = new Opcodes;
  return *all;
}

constexpr const char* kHead = R"(
struct Params { unsigned long long w[508]; };
typedef unsigned long long W;
TS_FN float f32(W w) { return __uint_as_float((unsigned)w); }
TS_FN double f64(W w) { return __longlong_as_double((long long)w); }
TS_FN int64_t i64(W w) { return (int64_t)w; }
TS_FN bool b8(W w) { return (w & 0xff) != 0; }
TS_FN W word(float x) { return (W)__float_as_uint(x); }
TS_FN W word(double x) { return (W)__double_as_longlong(x); }
TS_FN W word(int64_t x) { return (W)x; }
TS_FN W word(bool x) { return x ? 1ull : 0ull; }
)";

constexpr const char* kTail = R"(
TS_FN W value(const Params& p, const W* slots, unsigned immediates, unsigned s) {
  const unsigned at = s & 0xffu;
  return s & 0x8000u ? p.w[immediates + at] : in_register(slots[at * THREADS], (s >> 8) & 15u);
}
extern "C" __global__ void __launch_bounds__(THREADS)
interpret(const __grid_constant__ Params p) {
  extern __shared__ W all_slots[];
  W* const slots = all_slots + threadIdx.x;
  const int64_t n = (int64_t)p.w[0];
  const unsigned ndim = (unsigned)p.w[1] & 0xffu, inputs = ((unsigned)p.w[1] >> 8) & 0xffu,
                 operands = inputs + (((unsigned)p.w[1] >> 16) & 0xffu),
                 instrs = (unsigned)(p.w[1] >> 24) & 0xffffu,
                 program = (unsigned)p.w[2], immediates = (unsigned)(p.w[2] >> 32);
  const int64_t step = (int64_t)gridDim.x * THREADS;
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += step) {
    for (unsigned k = 0, at = OFFSETS + ndim; k < inputs; ++k, at += 2 + ndim) {
      const unsigned about = (unsigned)p.w[at + 1];
      slots[(about >> 8) * THREADS] =
          from_memory((const void*)p.w[at], offset(p, i, ndim, at + 2), about & 0xffu);
    }
    for (unsigned k = 0; k < instrs; ++k) {
      const W what = p.w[program + 2 * k], from = p.w[program + 2 * k + 1];
      const unsigned op = (unsigned)what & 0xffffu;
      W* const to = slots + (((unsigned)what >> 16) & 0xffu) * THREADS;
      if (op == COPY) {
        *to = slots[((unsigned)from & 0xffu) * THREADS];
        continue;
      }
      const W* const s = &p.w[immediates + (unsigned)(what >> 32)];
      const W a = value(p, slots, immediates, (unsigned)from & 0xffffu);
      const W b = value(p, slots, immediates, (unsigned)(from >> 16) & 0xffffu);
      const W c = value(p, slots, immediates, (unsigned)(from >> 32) & 0xffffu);
      const W d = value(p, slots, immediates, (unsigned)(from >> 48) & 0xffffu);
      *to = rounded(computed(op, a, b, c, d, s), ((unsigned)what >> 24) & 0xffu);
    }
    for (unsigned k = inputs, at = OFFSETS + ndim + inputs * (2 + ndim); k < operands;
         ++k, at += 2 + ndim) {
      const unsigned about = (unsigned)p.w[at + 1];
      to_memory((void*)p.w[at], offset(p, i, ndim, at + 2), about & 0xffu,
                slots[(about >> 8) * THREADS]);
    }
  }
}
}
)";

constexpr const char* kOffset = R"(
TS_FN int64_t offset(const Params& p, int64_t i, unsigned ndim, unsigned strides) {
  int64_t at = 0;
  for (unsigned d = ndim; d-- > 1;) {
    const int64_t size = (int64_t)p.w[OFFSETS + d];
    const int64_t q = (uint64_t)(i | size) >> 32 ? i / size
                                                 : (int64_t)((uint32_t)i / (uint32_t)size);
    at += (i - q * size) * (int64_t)p.w[strides + d];
    i = q;
  }
  return ndim > 0 ? at + i * (int64_t)p.w[strides] : 0;
}
)";

std::string num(int64_t v) { return std::to_string(v); }

constexpr DType kDTypes[] = {DType::kBool,    DType::kUInt8,  DType::kInt8,    DType::kInt16,
                             DType::kInt32,   DType::kInt64,  DType::kFloat16, DType::kBFloat16,
                             DType::kFloat32, DType::kFloat64};

// The bits of a stored value in the low end of a word, and back.
std::string to_word(DType t, const std::string& x) {
  switch (t) {
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kInt64:
      return "word(" + x + ")";
    default:
      return "(W)" + x;
  }
}
std::string from_word(DType t, const std::string& w) {
  if (t == DType::kFloat32) return "f32(" + w + ")";
  if (t == DType::kFloat64) return "f64(" + w + ")";
  return std::string("((") + storage_type(t) + ")" + w + ")";
}

void memory_functions(std::string* out) {
  std::string load =
                  "TS_FN W from_memory(const void* p, int64_t at, unsigned dtype) {\n  switch "
                  "(dtype) {\n",
              store =
                  "TS_FN void to_memory(void* p, int64_t at, unsigned dtype, W w) {\n  switch "
                  "(dtype) {\n",
              reg = "TS_FN W in_register(W w, unsigned dtype) {\n  switch (dtype) {\n",
              round = "TS_FN W rounded(W r, unsigned dtype) {\n  switch (dtype) {\n";
  for (DType t : kDTypes) {
    const std::string head = "    case " + num(static_cast<int>(t)) + ": ";
    const std::string type = storage_type(t);
    const std::string cls = class_suffix(reg_class(t));
    load += head + "return " + to_word(t, "((const " + type + "*)p)[at]") + ";\n";
    store += head + "((" + type + "*)p)[at] = " + from_word(t, "w") + "; break;\n";
    reg += head + "return word(" +
           (t == DType::kFloat16 ? "in_f16(" + from_word(t, "w") + ")"
                                 : load_text(t, from_word(t, "w"))) +
           ");\n";
    round += head + "return " + to_word(t, store_text(t, cls + "(r)")) + ";\n";
  }
  *out += load + "  }\n  return 0;\n}\n" + store + "  }\n}\n" + reg + "  }\n  return 0;\n}\n" +
          round + "  }\n  return r;\n}\n";
}

std::string name_of(const Opcodes& all, size_t i) {
  return "op" + num(static_cast<int64_t>(i)) + "_" + all.bodies[i]->name;
}

// Not inlined: a body is a call, and the kernel has the registers of the largest at most.
std::string body_functions(const Opcodes& all) {
  std::string out;
  for (size_t i = 0; i < all.bodies.size(); ++i) {
    const PointwiseBody& b = *all.bodies[i];
    out += "template <class T, class R> static __device__ __noinline__ " +
           std::string(b.result == 'b' ? "bool" : "T") + " " + name_of(all, i) + "(";
    const int sources = static_cast<int>(std::strlen(b.sources));
    for (int s = 0; s < sources; ++s)
      out += std::string(s ? ", " : "") + (b.sources[s] == 'b' ? "bool " : "T ") +
             static_cast<char>('a' + s);
    for (int s = 0; s < b.num_scalars; ++s)
      out += std::string(s || sources ? ", " : "") + "T s" + num(s);
    out += std::string(") {\n  ") + b.text + "\n}\n";
  }
  return out;
}

std::string computed_function(const Opcodes& all) {
  std::string out =
      "TS_FN W computed(unsigned op, W a, W b, W c, W d, const W* s) {\n"
      "  switch (op) {\n";
  auto add = [&](int opcode, const std::string& value) {
    out += "    case " + num(opcode) + ": return word(" + value + ");\n";
  };
  for (RegClass from : kClasses)
    for (RegClass to : kClasses)
      add(opcode_of_convert(from, to),
          convert_text(from, to, std::string(class_suffix(from)) + "(a)"));
  for (RegClass from : {RegClass::kF32, RegClass::kF64})
    add(opcode_of_convert_to_int32(from),
        convert_text(from, DType::kInt32, std::string(class_suffix(from)) + "(a)"));
  for (size_t i = 0; i < all.bodies.size(); ++i) {
    const PointwiseBody& b = *all.bodies[i];
    for (RegClass cls : kClasses) {
      if (!Opcodes::has(b, cls)) continue;
      const std::string type = register_type(cls), suffix = class_suffix(cls);
      std::string call = name_of(all, i) + "<" + type + ", " + type + ">(";
      const int sources = static_cast<int>(std::strlen(b.sources));
      for (int k = 0; k < sources; ++k)
        call += std::string(k ? ", " : "") + (b.sources[k] == 'b' ? "b8" : suffix) + "(" +
                static_cast<char>('a' + k) + ")";
      for (int k = 0; k < b.num_scalars; ++k)
        call += std::string(k || sources ? ", " : "") + suffix + "(s[" + num(k) + "])";
      add(all.first.at(&b) + static_cast<int>(cls), result_text(b, call + ")"));
    }
  }
  return out + "  }\n  return 0;\n}\n";
}

}  // namespace

int opcode_of(const PointwiseBody* body, RegClass cls) {
  if (cls > RegClass::kB8 || !Opcodes::has(*body, cls)) return -1;
  const auto it = opcodes().first.find(body);
  return it == opcodes().first.end() ? -1 : it->second + static_cast<int>(cls);
}

const std::string& interpret_text() {
  static const std::string* const text = [] {
    auto* out = new std::string(prelude_text() + special_text());
    *out += "enum { THREADS = " + num(kInterpretThreads) + ", OFFSETS = " + num(kInterpretOffsets) +
            ", COPY = 0xffff };\n";
    *out += kHead;
    *out += kOffset;
    memory_functions(out);
    *out += body_functions(opcodes());
    *out += computed_function(opcodes());
    *out += kTail;
    return out;
  }();
  return *text;
}

}  // namespace tessera::cuda
