#include "tessera/ops/schema.h"

#include <charconv>
#include <deque>
#include <limits>

namespace tessera {

namespace {

// Default strings and lists must outlive the parse: the specs point into them. They are
// never destroyed.
std::deque<std::string>& kept_strings() {
  static auto& strings = *new std::deque<std::string>;
  return strings;
}

std::deque<Dims>& kept_ints() {
  static auto& ints = *new std::deque<Dims>;
  return ints;
}

std::string_view trim(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

struct TypeName {
  std::string_view text;
  ArgSpec::Type type;
};
constexpr TypeName kTypes[] = {
    {"Tensor|Scalar", ArgSpec::Type::kTensorOrScalar},
    {"Tensor?[]", ArgSpec::Type::kOptionalTensors},
    {"Tensor[]", ArgSpec::Type::kTensors},
    {"Tensor...", ArgSpec::Type::kTensors},
    {"Tensor", ArgSpec::Type::kTensor},
    {"Scalar", ArgSpec::Type::kScalar},
    {"Number", ArgSpec::Type::kNumber},
    {"int[]", ArgSpec::Type::kInts},
    {"int...", ArgSpec::Type::kInts},
    {"int", ArgSpec::Type::kInt},
    {"float", ArgSpec::Type::kFloat},
    {"bool", ArgSpec::Type::kBool},
    {"dtype", ArgSpec::Type::kDType},
    {"device", ArgSpec::Type::kDevice},
    {"str", ArgSpec::Type::kString},
    {"float[]", ArgSpec::Type::kFloats},
    {"memory_format", ArgSpec::Type::kMemoryFormat},
    {"layout", ArgSpec::Type::kLayout},
    {"Generator", ArgSpec::Type::kGenerator},
};

Value parse_default(std::string_view text, ArgSpec::Type type) {
  if (text == "None") return Value();
  if (text == "True") return Value(true);
  if (text == "False") return Value(false);
  if (text.front() == '"') {
    kept_strings().emplace_back(text.substr(1, text.size() - 2));
    return Value(std::string_view(kept_strings().back()));
  }
  if (text == "()" || text == "[]") return Value(std::span<const int64_t>());
  if (text == "inf") return Value(std::numeric_limits<double>::infinity());
  if (text == "-inf") return Value(-std::numeric_limits<double>::infinity());
  if (type == ArgSpec::Type::kFloat || text.find_first_of(".e") != std::string_view::npos) {
    double v = 0;
    auto [p, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
    TS_ASSERT(ec == std::errc() && p == text.data() + text.size(), "default ", text);
    return Value(v);
  }
  int64_t v = 0;
  auto [p, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
  TS_ASSERT(ec == std::errc() && p == text.data() + text.size(), "default ", text);
  return Value(v);
}

ArgSpec parse_arg(std::string_view text) {
  ArgSpec spec;
  size_t space = text.find(' ');
  TS_ASSERT(space != std::string_view::npos, "schema argument ", text);
  std::string_view type = text.substr(0, space);
  std::string_view name = trim(text.substr(space + 1));
  if (type.back() == '?') {
    spec.optional = true;
    type.remove_suffix(1);
  }
  spec.one_int = type.starts_with("int[") && type != "int[]";
  if (spec.one_int) type = "int[]";
  bool known = false;
  for (const TypeName& t : kTypes) {
    if (t.text != type) continue;
    spec.type = t.type;
    known = true;
    break;
  }
  TS_ASSERT(known, "schema type ", type);
  spec.varargs = type.ends_with("...");
  spec.one_int |= type == "int...";
  if (size_t eq = name.find('='); eq != std::string_view::npos) {
    spec.has_default = true;
    spec.default_text = std::string(name.substr(eq + 1));
    spec.default_value = parse_default(spec.default_text, spec.type);
    if (spec.type == ArgSpec::Type::kInts && spec.default_value.is_scalar())
      spec.default_value =
          Value(kept_ints().emplace_back(Dims{spec.default_value.scalar.to_int()}));
    name = name.substr(0, eq);
  }
  spec.name = std::string(name);
  return spec;
}

std::string cpp_name(std::string_view path) {
  constexpr std::string_view kFunctional = "nn.functional.";
  if (path.starts_with(kFunctional)) path.remove_prefix(kFunctional.size());
  std::string out(path);
  for (char& c : out)
    if (c == '.') c = '_';
  return out;
}

void parse_results(std::string_view results, Op& op) {
  constexpr std::pair<std::string_view, ResultType> kPlain[] = {
      {"Tensor", ResultType::kTensor}, {"Tensor[]", ResultType::kTensors},
      {"bool", ResultType::kBool},     {"int", ResultType::kInt},
      {"float", ResultType::kFloat},   {"Scalar", ResultType::kScalar}};
  op.num_outputs = 1;
  for (auto [text, type] : kPlain) {
    if (text != results) continue;
    op.result_type = type;
    return;
  }
  TS_ASSERT(results.front() == '(' && results.back() == ')', "schema results ", results);
  results = results.substr(1, results.size() - 2);
  op.num_outputs = 0;
  while (!results.empty()) {
    size_t comma = results.find(',');
    std::string_view one = trim(results.substr(0, comma));
    results = comma == std::string_view::npos ? std::string_view() : results.substr(comma + 1);
    TS_ASSERT(one.starts_with("Tensor"), "schema result ", one);
    if (one.size() > 6) op.result_names.emplace_back(trim(one.substr(6)));
    ++op.num_outputs;
  }
}

}  // namespace

void parse_schema(std::string_view text, Op& op) {
  size_t open = text.find('(');
  size_t arrow = text.rfind("->");
  TS_ASSERT(open != std::string_view::npos && arrow != std::string_view::npos, "schema ", text);
  size_t close = text.rfind(')', arrow);
  std::string_view name = text.substr(0, open);
  op.paths.emplace_back(name);
  op.name = cpp_name(name);
  std::string_view args = text.substr(open + 1, close - open - 1);
  bool keyword_only = false;
  while (!args.empty()) {
    size_t comma = args.find(',');
    std::string_view one = trim(args.substr(0, comma));
    args = comma == std::string_view::npos ? std::string_view() : args.substr(comma + 1);
    if (one.empty()) continue;
    if (one == "*") {
      keyword_only = true;
      continue;
    }
    ArgSpec spec = parse_arg(one);
    spec.keyword_only = keyword_only;
    op.args.push_back(std::move(spec));
  }
  parse_results(trim(text.substr(arrow + 2)), op);
  for (size_t i = 0; i < op.args.size(); ++i)
    if (op.args[i].type == ArgSpec::Type::kTensor && op.self_index < 0)
      op.self_index = static_cast<int>(i);
}

}  // namespace tessera
