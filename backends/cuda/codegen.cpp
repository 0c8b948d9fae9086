// The text of a group's kernel. Loads come first, then all instructions on each element, then
// stores, so that a thread has its loads in flight together and an output may be its own input.
#include "codegen.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <vector>

#include "prelude.h"

namespace tessera::cuda {
namespace {

std::string num(int64_t v) { return std::to_string(v); }

// Does the body name none of its sources and scalars? Its result is a constant then.
bool is_constant(const PointwiseBody& b) {
  const int sources = static_cast<int>(std::strlen(b.sources));
  for (const char* c = b.text; *c;) {
    if (!std::isalpha(static_cast<unsigned char>(*c)) && *c != '_') {
      ++c;
      continue;
    }
    const char* end = c;
    while (std::isalnum(static_cast<unsigned char>(*end)) || *end == '_') ++end;
    const std::string name(c, end);
    if (name.size() == 1 && name[0] >= 'a' && name[0] < 'a' + sources) return false;
    for (int s = 0; s < b.num_scalars; ++s)
      if (name[0] == 's' && name.substr(1) == num(s)) return false;
    c = end;
  }
  return true;
}

class GroupText {
 public:
  GroupText(const GroupProgram& g, const GroupPlan& plan, bool batch)
      : g_(g), plan_(plan), batch_(batch) {
    int word = 1 + plan.num_operands;
    for (int i = 0; i < g.num_immediates; ++i) {
      word_imm_.push_back(word);
      word += immediate_words(g.immediate_cls[i]);
    }
    word_dims_ = word;
    int dims = plan.mode == GroupMode::kTile ? 3 : 2 * (plan.ndim > 0 ? plan.ndim - 1 : 0);
    word_strides_.resize(plan.num_operands, -1);
    words_ = word_dims_ + dims;
    for (int i = 0; i < plan.num_operands; ++i) {
      if (!has_strides(i)) continue;
      word_strides_[i] = words_;
      words_ += plan.ndim;
    }
  }

  // A struct of functions over rows and columns, see Note [Company of a kernel]; `fast` tells which
  // operands are read and written in vectors. The operand without an address is passed.
  std::string make_joined(const char* name, const std::vector<bool>& fast) {
    joined_ = true;
    word_strides_.clear();
    words_ = word_dims_;
    for (int i = 0; i < plan_.num_operands; ++i) {
      word_strides_.push_back(words_);
      words_ += 2;
    }
    const bool makes = g_.num_outputs > 0 && !g_.outputs[0].to.data;
    const int passed = makes ? g_.num_inputs : 0;
    out_ = std::string("struct ") + name + " {\nstruct Params { unsigned long long w[" +
           num(words_) + "]; };\n";
    bodies();
    point();
    out_ += "template <int V> TS_FN void " + std::string(makes ? "make" : "take") +
            "(const Params& p, int64_t r, int64_t j, " + (makes ? "" : "const ") + type(passed) +
            " (&given)[V]) {\n";
    for (int i = 0; i < plan_.num_operands; ++i) {
      if (i == passed) continue;
      out_ += "  " + type(i) + " x" + num(i) + "[V];\n";
      if (is_input(i)) row_access(i, fast[static_cast<size_t>(i)], true);
    }
    out_ += "  #pragma unroll\n  for (int e = 0; e < V; ++e) point(p";
    for (int i = 0; i < plan_.num_operands; ++i)
      out_ += i == passed ? ", given[e]" : ", x" + num(i) + "[e]";
    out_ += ");\n";
    for (int i = g_.num_inputs; i < plan_.num_operands; ++i)
      if (i != passed) row_access(i, fast[static_cast<size_t>(i)], false);
    return out_ + "}\n};\n";
  }

  std::string make() {
    out_ = prelude_text(has_complex());
    if (uses_special(g_)) out_ += special_text();
    out_ += plan_.wide ? "typedef uint64_t I; typedef int64_t O;\n"
                       : "typedef uint32_t I; typedef int32_t O;\n";
    out_ += "struct Params { unsigned long long w[" + num(words_) + "]; };\n";
    bodies();
    point();
    if (plan_.mode == GroupMode::kTile) {
      tile_kernel();
    } else {
      if (plan_.mode != GroupMode::kLinear) offsets();
      run_kernel();
    }
    return out_ + "}\n";
  }

 private:
  // V elements of operand i between memory and x<i>.
  void row_access(int i, bool fast, bool load) {
    const std::string w = num(word_strides_[static_cast<size_t>(i)]);
    const std::string down = "(int64_t)p.w[" + w + "]", x = "x" + num(i);
    const std::string along =
        "(int64_t)p.w[" + num(word_strides_[static_cast<size_t>(i)] + 1) + "]";
    const std::string at = pointer(i, type(i)) + " + r * " + down;
    const std::string vec = "Vec<" + type(i) + ", V>";
    auto each = [](const std::string& what) {
      return "  {\n    #pragma unroll\n    for (int e = 0; e < V; ++e) " + what + ";\n  }\n";
    };
    const std::string place = "(" + at + ")[(j + e) * " + along + "]";
    const std::string slow = each(load ? x + "[e] = " + place : place + " = " + x + "[e]");
    if (!fast) {
      out_ += slow;
      return;
    }
    out_ += "  if constexpr (V > 1) {\n";
    if (load)
      out_ += "    const " + vec + " v = *(const " + vec + "*)(" + at + " + j);\n" +
              each(x + "[e] = v.v[e]");
    else
      out_ += "    " + vec + " v;\n" + each("v.v[e] = " + x + "[e]") + "    *(" + vec + "*)(" + at +
              " + j) = v;\n";
    out_ += "  } else " + slow;
  }
  // Also where it is only read: an input whose operator was dropped, say.
  bool has_complex() const {
    for (int i = 0; i < plan_.num_operands; ++i)
      if (tessera::is_complex(dtype(i))) return true;
    for (int i = 0; i < g_.num_instrs; ++i)
      if (is_complex(g_.instrs[i].cls) || is_complex(g_.instrs[i].result_cls)) return true;
    return false;
  }
  bool is_input(int i) const { return i < g_.num_inputs; }
  DType dtype(int i) const {
    return is_input(i) ? g_.inputs[i].dtype : g_.outputs[i - g_.num_inputs].to.dtype;
  }
  std::string type(int i) const { return storage_type(dtype(i)); }
  bool has_strides(int i) const {
    return plan_.layouts[i] != Layout::kDense && plan_.layouts[i] != Layout::kScalar;
  }
  // The operand's address as a pointer to `of`.
  std::string pointer(int i, const std::string& of) const {
    return std::string("((") + (is_input(i) ? "const " : "") + of + "*)p.w[" + num(1 + i) + "])";
  }

  // One function for each body and class in use: a template, so that what `if constexpr` leaves out
  // need not be right for the class.
  void bodies() {
    for (int i = 0; i < g_.num_instrs; ++i) {
      const Instr& in = g_.instrs[i];
      if (in.kind != Instr::Kind::kBody || body_number(i) != i) continue;
      const PointwiseBody& b = *in.body;
      out_ += std::string("template <class T, class R> TS_FN ") + register_type(in.result_cls) +
              " " + body_name(i) + "(";
      for (int s = 0; s < in.num_sources; ++s) {
        char letter = b.sources[s];
        out_ += std::string(s ? ", " : "") +
                (letter == 'b'   ? "bool "
                 : letter == 'r' ? "R "
                                 : "T ") +
                static_cast<char>('a' + s);
      }
      for (int s = 0; s < in.num_scalars; ++s)
        out_ += std::string(s || in.num_sources ? ", " : "") + "T s" + num(s);
      out_ += std::string(") {\n  ") + b.text + "\n}\n";
    }
  }
  // What T and R are.
  static std::string body_types(RegClass cls) {
    RegClass real = cls == RegClass::kC64    ? RegClass::kF32
                    : cls == RegClass::kC128 ? RegClass::kF64
                                             : cls;
    return std::string("<") + register_type(cls) + ", " + register_type(real) + ">";
  }
  // The first instruction with the same body and class.
  int body_number(int i) const {
    for (int j = 0; j < i; ++j)
      if (g_.instrs[j].kind == Instr::Kind::kBody && g_.instrs[j].body == g_.instrs[i].body &&
          g_.instrs[j].cls == g_.instrs[i].cls)
        return j;
    return i;
  }
  std::string body_name(int i) const {
    int first = body_number(i);
    return "op" + num(first) + "_" + g_.instrs[i].body->name + "_" + class_suffix(g_.instrs[i].cls);
  }

  std::string immediate(int i) const {
    int word = word_imm_[static_cast<size_t>(i)];
    std::string w = "p.w[" + num(word) + "]", next = "p.w[" + num(word + 1) + "]";
    switch (g_.immediate_cls[i]) {
      case RegClass::kF32:
        return "__uint_as_float((unsigned)" + w + ")";
      case RegClass::kF64:
        return "__longlong_as_double((long long)" + w + ")";
      case RegClass::kI64:
        return "(int64_t)" + w;
      case RegClass::kC64:
        return "Complex<float>(__uint_as_float((unsigned)" + w + "), __uint_as_float((unsigned)(" +
               w + " >> 32)))";
      case RegClass::kC128:
        return "Complex<double>(__longlong_as_double((long long)" + w +
               "), __longlong_as_double((long long)" + next + "))";
      default:
        return "((" + w + " & 0xff) != 0)";
    }
  }
  std::string source(const Source& s) const {
    switch (s.kind) {
      case SourceKind::kInput:
        return "r" + num(s.index);
      case SourceKind::kValue:
        return "v" + num(s.index);
      default:
        return immediate(s.index);
    }
  }

  // All instructions on one element: inputs and outputs in storage form. A result is rounded to its
  // dtype by way of its storage form m, which an output then stores as it is.
  void point() {
    out_ += "TS_FN void point(const Params& p";
    for (int i = 0; i < plan_.num_operands; ++i)
      out_ += ", " + type(i) + (is_input(i) ? " x" + num(i) : "& y" + num(i - g_.num_inputs));
    out_ += ") {\n";
    for (int i = 0; i < g_.num_inputs; ++i)
      out_ += std::string("  ") + register_type(reg_class(dtype(i))) + " r" + num(i) + " = " +
              (dtype(i) == DType::kFloat16 ? "in_f16(x" + num(i) + ")"
                                           : load_text(dtype(i), "x" + num(i))) +
              ";\n";
    for (int i = 0; i < g_.num_instrs; ++i) {
      const Instr& in = g_.instrs[i];
      std::string value;
      if (is_plain_copy(g_, in)) {
        // Unchanged bits, NaN's included.
        std::string n = num(in.sources[0].index);
        bool from_input = in.sources[0].kind == SourceKind::kInput;
        out_ += std::string("  ") + storage_type(in.round_to) + " m" + num(i) + " = " +
                (from_input ? "x" : "m") + n + "; " + register_type(in.result_cls) + " v" + num(i) +
                " = " + (from_input ? "r" : "v") + n + ";\n";
        continue;
      }
      if (in.kind == Instr::Kind::kConvert) {
        value = source(in.sources[0]);
        const bool counts = in.cls == RegClass::kB8 || in.cls == RegClass::kI64;
        if (counts && in.result_cls != RegClass::kB8 && in.result_cls != RegClass::kI64 &&
            in.sources[0].kind == SourceKind::kValue)
          value = "hidden(" + value + ")";
        value = convert_text(in.cls, in.round_to, value);
      } else {
        value = body_name(i) + body_types(in.cls) + "(";
        for (int s = 0; s < in.num_sources; ++s) value += (s ? ", " : "") + source(in.sources[s]);
        for (int s = 0; s < in.num_scalars; ++s)
          value += (s || in.num_sources ? ", " : "") + immediate(in.first_scalar + s);
        value = result_text(*in.body, value + ")");
        if (is_constant(*in.body)) value = "hidden(" + value + ")";
      }
      // A value that is stored and read again is known to nobody either.
      const bool goes_on = i + 1 < g_.num_instrs || joined_;
      const bool in_register =
          std::strcmp(storage_type(in.round_to), register_type(in.result_cls)) == 0;
      if (goes_on && !in_register) value = "opaque(" + value + ")";
      if (!keeps_nan(in)) value = store_text(in.round_to, value);
      if (goes_on && in_register) value = "opaque(" + value + ")";
      out_ += std::string("  ") + storage_type(in.round_to) + " m" + num(i) + " = " + value + "; " +
              register_type(in.result_cls) + " v" + num(i) + " = " +
              load_text(in.round_to, "m" + num(i)) + ";\n";
    }
    for (int o = 0; o < g_.num_outputs; ++o)
      out_ += "  y" + num(o) + " = m" + num(g_.outputs[o].value) + ";\n";
    out_ += "}\n";
  }

  // From a linear index (of elements, or in kInner of vectors) to the offsets of strided operands.
  void offsets() {
    out_ += "TS_FN void offsets(const Params& p, I i";
    for (int i = 0; i < plan_.num_operands; ++i)
      if (has_strides(i)) out_ += ", O& o" + num(i);
    out_ += ") {\n  O c;\n";
    for (int d = plan_.ndim - 1; d >= 0; --d) {
      if (d > 0) {
        int w = word_dims_ + 2 * (d - 1);
        std::string size = "(I)p.w[" + num(w) + "]";
        out_ += "  { I q = ";
        if (plan_.wide) {
          out_ += "i / " + size;
        } else {
          std::string m = "p.w[" + num(w + 1) + "]";
          out_ += "(__umulhi(i, (unsigned)" + m + ") + i) >> (unsigned)(" + m + " >> 32)";
        }
        out_ += "; c = (O)(i - q * " + size + "); i = q; }\n";
      } else {
        out_ += "  c = (O)i;\n";
      }
      for (int i = 0; i < plan_.num_operands; ++i) {
        if (!has_strides(i)) continue;
        bool first = d == plan_.ndim - 1;
        if (plan_.layouts[i] == Layout::kRunOfScalar && first) {
          out_ += "  o" + num(i) + " = 0;\n";
          continue;
        }
        out_ += "  o" + num(i) + (first ? " = " : " += ") + "c * (O)p.w[" +
                num(word_strides_[i] + d) + "];\n";
      }
    }
    out_ += "}\n";
  }

  std::string vec_type(int i) const { return "Vec<" + type(i) + ", " + num(plan_.vec) + ">"; }
  bool in_vectors(int i) const {
    return plan_.vec > 1 &&
           (plan_.layouts[i] == Layout::kDense || plan_.layouts[i] == Layout::kRun);
  }
  // The element or vector of operand i at index j with offsets o.
  std::string access(int i, const std::string& j) const {
    switch (plan_.layouts[i]) {
      case Layout::kScalar:
        return "c" + num(i);
      case Layout::kDense:
        return pointer(i, in_vectors(i) ? vec_type(i) : type(i)) + "[" + j + "]";
      case Layout::kRun:
        return "*(" + std::string(is_input(i) ? "const " : "") + vec_type(i) + "*)(" +
               pointer(i, type(i)) + " + o" + num(i) + ")";
      default:
        return pointer(i, type(i)) + "[o" + num(i) + "]";
    }
  }
  std::string call_offsets(const std::string& j) const {
    if (plan_.mode == GroupMode::kLinear) return "";
    std::string text = "O ", call = "offsets(p, " + j;
    bool any = false;
    for (int i = 0; i < plan_.num_operands; ++i) {
      if (!has_strides(i)) continue;
      text += (any ? ", o" : "o") + num(i);
      call += ", o" + num(i);
      any = true;
    }
    return text + "; " + call + "); ";
  }

  void head(bool tile) {
    if (batch_) out_ += "struct Batch { unsigned long long w[" + num(kMaxParamWords) + "]; };\n";
    out_ += "extern \"C\" __global__ void __launch_bounds__(" +
            num(tile ? kTileThreads : kGroupThreads) + ") " + kGroupEntry +
            "(const __grid_constant__ " + (batch_ ? "Batch b" : "Params p") + ") {\n";
    if (batch_) find_row();
    for (int i = 0; i < g_.num_inputs; ++i)
      if (plan_.layouts[i] == Layout::kScalar)
        out_ += "  const " + type(i) + " c" + num(i) + " = *" + pointer(i, type(i)) + ";\n";
    if (tile) return;
    out_ += "  const I n = (I)p.w[0], nv = n / " + num(plan_.vec) +
            (batch_ ? ", block = (I)(blockIdx.x - (unsigned)row[0])" : ", block = (I)blockIdx.x") +
            ", base = block * " + num(kGroupThreads * plan_.unroll) + " + threadIdx.x;\n";
  }
  // The group that this block is of; its parameters in registers, so that no store makes them be
  // read again.
  void find_row() {
    const std::string size = num(kBatchRow + words_), head = num(kBatchHead);
    out_ +=
        "  unsigned lo = 0, hi = (unsigned)b.w[0];\n"
        "  while (hi - lo > 1) { const unsigned m = (lo + hi) / 2; if (blockIdx.x >= "
        "(unsigned)b.w[" +
        head + " + m * " + size +
        "]) lo = m; else hi = m; }\n  const unsigned long long* const row = b.w + " + head +
        " + lo * " + size + ";\n  Params p;\n  #pragma unroll\n  for (int i = 0; i < " +
        num(words_) + "; ++i) p.w[i] = row[" + num(kBatchRow) + " + i];\n";
  }

  void run_kernel() {
    head(false);
    std::string unroll = num(plan_.unroll);
    std::string each = "    #pragma unroll\n    for (int u = 0; u < " + unroll +
                       "; ++u) { const I j = base + u * " + num(kGroupThreads) +
                       "; if (j < nv) { " + call_offsets("j");
    for (int i = 0; i < g_.num_inputs; ++i)
      if (plan_.layouts[i] != Layout::kScalar)
        out_ += "    " + (in_vectors(i) ? vec_type(i) : type(i)) + " x" + num(i) + "[" + unroll +
                "];\n";
    out_ += each;
    for (int i = 0; i < g_.num_inputs; ++i)
      if (plan_.layouts[i] != Layout::kScalar)
        out_ += "x" + num(i) + "[u] = " + access(i, "j") + "; ";
    out_ += "} }\n" + each + "\n";
    for (int i = g_.num_inputs; i < plan_.num_operands; ++i)
      out_ += "      " + (in_vectors(i) ? vec_type(i) : type(i)) + " y" + num(i) + ";\n";
    out_ += "      #pragma unroll\n      for (int e = 0; e < " + num(plan_.vec) + "; ++e) point(p";
    for (int i = 0; i < plan_.num_operands; ++i) {
      std::string lane = in_vectors(i) ? ".v[e]" : "";
      if (plan_.layouts[i] == Layout::kScalar)
        out_ += ", c" + num(i);
      else if (is_input(i))
        out_ += ", x" + num(i) + "[u]" + lane;
      else
        out_ += ", y" + num(i) + lane;
    }
    out_ += ");\n";
    for (int i = g_.num_inputs; i < plan_.num_operands; ++i)
      out_ += "      " + access(i, "j") + " = y" + num(i) + ";\n";
    out_ += "    } }\n";
    if (plan_.mode == GroupMode::kLinear && plan_.vec > 1) tail();
    out_ += "}\n";
  }

  // The last n % vec elements, by the first block.
  void tail() {
    out_ += "  const I i = nv * " + num(plan_.vec) + " + threadIdx.x;\n" +
            "  if (block == 0 && i < n) point(p";
    for (int i = 0; i < plan_.num_operands; ++i)
      out_ +=
          plan_.layouts[i] == Layout::kScalar ? ", c" + num(i) : ", " + pointer(i, type(i)) + "[i]";
    out_ += ");\n";
  }

  int pitch(int i) const {
    size_t size = itemsize(dtype(i));
    // A row is an odd number of banks, so that a column meets every bank once.
    return plan_.tile + (size < 4 ? static_cast<int>(4 / size) : 1);
  }
  std::string stride(int i, int d) const { return "(O)p.w[" + num(word_strides_[i] + d) + "]"; }
  // Offset of strided operand i at batch b, row r and a column.
  std::string tile_offset(int i, const std::string& c) const {
    std::string batch = plan_.ndim == 3 ? "(O)b * " + stride(i, 0) + " + " : "";
    return batch + "(O)r * " + stride(i, plan_.ndim - 2) + " + (O)" + c + " * " +
           stride(i, plan_.ndim - 1);
  }

  // A block takes one tile of rows x columns at a time, its threads a few vectors each. Swapped
  // inputs are read along their own fast dimension (rows), all before the first is waited for, and
  // go through shared memory; everything else is read along columns.
  void tile_kernel() {
    head(true);
    const std::string edge = num(plan_.tile), v = num(plan_.vec),
                      across = num(plan_.tile / plan_.vec),
                      vectors = num(plan_.tile * plan_.tile / plan_.vec / kTileThreads);
    auto each = [&](const char* slow, const char* fast) {
      return "    #pragma unroll\n    for (int k = 0; k < " + vectors +
             "; ++k) {\n      const int i = k * " + num(kTileThreads) + " + threadIdx.x, d" + slow +
             " = i / " + across + ", d" + fast + " = i % " + across + " * " + v +
             ";\n      const I r = row + dr, c = column + dc;\n";
    };
    auto lanes = [&](const std::string& what) {
      return "        #pragma unroll\n        for (int e = 0; e < " + v + "; ++e) " + what + ";\n";
    };
    std::string w = num(word_dims_), buffers, registers, reads, moves;
    for (int i = 0; i < g_.num_inputs; ++i) {
      if (plan_.layouts[i] != Layout::kSwapped) continue;
      const std::string x = "x" + num(i), t = "t" + num(i);
      buffers += "  __shared__ " + type(i) + " " + t + "[" + num(plan_.tile * pitch(i)) + "];\n";
      registers += "    " + vec_type(i) + " " + x + "[" + vectors + "];\n";
      reads += "        " + x + "[k] = *(const " + vec_type(i) + "*)(" + pointer(i, type(i)) +
               " + " + tile_offset(i, "c") + ");\n";
      moves += lanes(t + "[dc * " + num(pitch(i)) + " + dr + e] = " + x + "[k].v[e]");
    }
    out_ +=
        buffers + "  const I rows = (I)p.w[" + num(word_dims_ + 1) + "], cols = (I)p.w[" +
        num(word_dims_ + 2) + "];\n  const I tr = (rows + " + edge + " - 1) / " + edge +
        ", tc = (cols + " + edge + " - 1) / " + edge + ", total = (I)p.w[" + w +
        "] * tr * tc;\n  for (I tile = blockIdx.x; tile < total; tile += gridDim.x) {\n"
        "    const I b = tile / (tr * tc), in_b = tile % (tr * tc);\n"
        "    const I row = in_b / tc * " +
        edge + ", column = in_b % tc * " + edge + ";\n" + registers + each("c", "r") +
        "      if (r < rows && c < cols) {\n" + reads + "      }\n    }\n" + each("c", "r") +
        "      if (r < rows && c < cols) {\n" + moves + "      }\n    }\n    __syncthreads();\n" +
        each("r", "c") +
        "      if (r < rows && c < cols) {\n        const I at = ((b * rows + r) * cols + c) / " +
        v + ";\n";
    std::string call = "point(p", writes;
    for (int i = 0; i < plan_.num_operands; ++i) {
      const std::string n = num(i);
      switch (plan_.layouts[i]) {
        case Layout::kScalar:
          call += ", c" + n;
          break;
        case Layout::kDense:
          out_ += "        " + vec_type(i) + " y" + n;
          if (is_input(i))
            out_ += " = " + pointer(i, vec_type(i)) + "[at]";
          else
            writes += "        " + pointer(i, vec_type(i)) + "[at] = y" + n + ";\n";
          out_ += ";\n";
          call += ", y" + n + ".v[e]";
          break;
        case Layout::kSwapped:
          call += ", t" + n + "[(dc + e) * " + num(pitch(i)) + " + dr]";
          break;
        default:
          call += ", " + pointer(i, type(i)) + "[" + tile_offset(i, "(c + e)") + "]";
      }
    }
    out_ += lanes(call + ")") + writes + "      }\n    }\n    __syncthreads();\n  }\n}\n";
  }

  const GroupProgram& g_;
  const GroupPlan& plan_;
  const bool batch_;
  bool joined_ = false;
  std::string out_;
  int word_dims_, words_;
  std::vector<int> word_imm_;  // of each immediate
  std::vector<int> word_strides_;
};

}  // namespace

bool keeps_nan(const Instr& in) {
  static constexpr const char* kMoves[] = {"return a;",
                                           "return negate(a);",
                                           "return abs(a);",
                                           "return conj(a);",
                                           "return copysign(a, b);",
                                           "return select(a, b, c);",
                                           "return select(b, c, a);",
                                           "return select(b, a, T(0));"};
  if (in.round_to != DType::kFloat64 && in.round_to != DType::kComplex128) return false;
  if (in.kind == Instr::Kind::kConvert || in.result_cls != in.cls) return false;
  return std::any_of(std::begin(kMoves), std::end(kMoves),
                     [&](const char* text) { return std::strcmp(in.body->text, text) == 0; });
}

std::string joined_text(const GroupProgram& g, const GroupPlan& plan, const char* name,
                        const std::vector<bool>& fast) {
  return GroupText(g, plan, false).make_joined(name, fast);
}

std::string group_text(const GroupProgram& g, const GroupPlan& plan, bool batch) {
  return GroupText(g, plan, batch).make();
}

}  // namespace tessera::cuda
