// Programs as Python, and where two outcomes part.
#include <cmath>
#include <cstdio>
#include <cstring>

#include "program.h"

namespace random_programs {

using namespace tessera;

namespace {

std::string name(int var) { return tessera::cat("t", var); }

std::string text(double v) {
  if (std::isnan(v)) return "float('nan')";
  if (std::isinf(v)) return v > 0 ? "float('inf')" : "-float('inf')";
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.17g", v);
  return buffer;
}

std::string text(const Scalar& s) {
  switch (s.kind) {
    case Scalar::Kind::kBool:
      return s.i ? "True" : "False";
    case Scalar::Kind::kInt:
      return tessera::cat(s.i);
    case Scalar::Kind::kDouble: {
      std::string t = text(s.d);
      return t.find_first_not_of("-0123456789") == t.npos ? t + ".0" : t;
    }
    default:
      return tessera::cat("complex(", text(s.d), ", ", text(s.im), ")");
  }
}

std::string text(const Dims& d) {
  std::string out = "(";
  for (int64_t v : d) out += tessera::cat(v, ", ");
  return out + ")";
}

// The bits are what counts: numbers as text would lose those of a NaN.
std::string data_text(const Statement& s, bool whole) {
  std::vector<char> bytes = data_bytes(s);
  std::string values;
  if (!whole && bytes.size() > 1024) {
    values = tessera::cat("bytes of seed ", s.seed);
  } else {
    values = "bytes.fromhex('";
    for (char c : bytes) {
      char hex[3];
      std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned char>(c));
      values += hex;
    }
    values += "')";
  }
  std::string out =
      tessera::cat("data(", values, ", torch.", dtype_name(s.dtype), ", ", text(s.shape), ")");
  if (s.what == Do::kForeign) out = tessera::cat("foreign_", out);
  if (s.device.is_cuda()) out += tessera::cat(".to('", s.device, "')");
  if (s.requires_grad) out += ".requires_grad_()";
  return out;
}

std::string format_text(int64_t format) {
  return static_cast<MemoryFormat>(format) == MemoryFormat::kChannelsLast
             ? "torch.channels_last"
             : "torch.contiguous_format";
}

std::string argument_text(const Arg& a) {
  switch (a.kind) {
    case Arg::Kind::kVar:
      return name(a.var);
    case Arg::Kind::kVars: {
      std::string out = "[";
      for (int64_t v : a.ints) out += name(static_cast<int>(v)) + ", ";
      return out + "]";
    }
    case Arg::Kind::kScalar:
      return text(a.scalar);
    case Arg::Kind::kInts:
      return text(a.ints);
    case Arg::Kind::kDType:
      return tessera::cat("torch.", dtype_name(a.dtype));
    case Arg::Kind::kDevice:
      return tessera::cat("'", a.device, "'");
    case Arg::Kind::kText:
      return tessera::cat("'", a.text, "'");
    default:
      return "None";
  }
}

std::string call_text(const Statement& s) {
  if (std::string_view(s.op->name) == "_to_device")  // what a program would say
    return tessera::cat(name(s.results[0]), " = ", argument_text(s.args[0]), ".to(",
                        argument_text(s.args[1]), ")");
  std::string out, path = s.op->paths.empty() ? s.op->name : s.op->paths[0];
  for (int var : s.results)
    if (var >= 0) out += tessera::cat(out.empty() ? "" : ", ", name(var));
  if (!out.empty()) out += " = ";
  const bool several = s.op->result_type == ResultType::kTensors;  // how many is not known here
  if (several) out += "four(";
  bool method = s.form == Form::kInplace || !(s.op->record->forms & kFunction);
  size_t self = method && s.op->self_index >= 0 ? static_cast<size_t>(s.op->self_index) : 99;
  if (self < s.args.size())
    out += tessera::cat(argument_text(s.args[self]), ".", s.op->name,
                        s.form == Form::kInplace ? "_" : "", "(");
  else
    out += tessera::cat(path[0] == '_' ? "torch._C." : "torch.", path, "(");
  bool first = true;
  for (size_t i = 0; i < s.args.size(); ++i) {
    if (i == self || s.args[i].kind == Arg::Kind::kDefault || s.args[i].kind == Arg::Kind::kNone)
      continue;
    const ArgSpec& spec = s.op->args[i];
    out += first ? "" : ", ";
    if (spec.keyword_only || i > 1) out += spec.name + "=";
    out += spec.type == ArgSpec::Type::kMemoryFormat ? format_text(s.args[i].scalar.i)
                                                     : argument_text(s.args[i]);
    first = false;
  }
  if (s.form == Form::kOut) out += tessera::cat(", out=", name(s.var));
  return out + (several ? "))" : ")");
}

std::string statement_text(const Statement& s, bool whole = false) {
  switch (s.what) {
    case Do::kCall:
      return call_text(s);
    case Do::kData:
    case Do::kForeign:
      return tessera::cat(name(s.results[0]), " = ", data_text(s, whole));
    case Do::kPoke:
      return tessera::cat("poke(", name(s.var), ")  # byte ", s.count);
    case Do::kDelete:
      return tessera::cat("del ", name(s.var));
    case Do::kRead:
      return name(s.var) + ".tolist()";
    case Do::kAddress:
      return name(s.var) + ".data_ptr()";
    case Do::kThread:
      return tessera::cat("# on another thread, the next ", s.count, ":");
    case Do::kToggle:
      return tessera::cat("# with fuse.disabled(), the next ", s.count, ":");
    case Do::kStream:
      return tessera::cat("switch_stream('", s.device, "', ", s.count, ")");
    case Do::kSync:
      return tessera::cat("synchronize('", s.device, "')  # way ", s.count);
    case Do::kBackward:
      return name(s.var) + ".sum().backward()";
  }
  return "";
}

}  // namespace

std::string to_text(const Statement& s, bool whole) {
  return tessera::cat(s.no_grad ? "with torch.no_grad(): " : "", statement_text(s, whole), "\n");
}

std::string to_text(const Program& p, bool whole) {
  std::string out = tessera::cat("torch.manual_seed(", p.seed, ")\n");
  for (const Statement& s : p.statements) out += to_text(s, whole);
  return out;
}

std::string describe_difference(const Program& p, const Outcome& off, const Outcome& on) {
  size_t n = std::min(off.entries.size(), on.entries.size()), at = 0;
  auto content = [](const Outcome& o, size_t i) {
    size_t end = i + 1 < o.entries.size() ? o.entries[i + 1].at : o.log.size();
    return std::string_view(o.log).substr(o.entries[i].at, end - o.entries[i].at);
  };
  while (at < n && content(off, at) == content(on, at)) ++at;
  if (at == n)
    return tessera::cat("unfused has ", off.entries.size(), " entries, fused ", on.entries.size(),
                        "\n");
  const Outcome::Entry& e = on.entries[at];
  std::string out = e.var >= 0 ? tessera::cat(name(e.var), " is read with another content\n")
                               : tessera::cat("statement ", e.statement, " fails otherwise\n");
  if (e.statement >= 0 && static_cast<size_t>(e.statement) < p.statements.size())
    out += tessera::cat("  ", statement_text(p.statements[static_cast<size_t>(e.statement)]), "\n");
  std::string_view a = content(off, at), b = content(on, at);
  size_t byte = 0;
  while (byte < a.size() && byte < b.size() && a[byte] == b[byte]) ++byte;
  out += tessera::cat("  first different byte ", byte, " of ", a.size(), "\n");
  auto show = [&](const char* what, std::string_view s, bool text) {
    out += tessera::cat("  ", what);
    size_t from = text ? 0 : byte - std::min<size_t>(byte, 8);
    for (size_t i = from; i < s.size() && i < from + (text ? 400 : 48); ++i) {
      char hex[4];
      std::snprintf(hex, sizeof hex, text ? "%c" : "%02x", static_cast<unsigned char>(s[i]));
      out += hex;
    }
    out += "\n";
  };
  show("unfused ", a, off.entries[at].var < 0);
  show("fused   ", b, e.var < 0);
  return out;
}

}  // namespace random_programs
