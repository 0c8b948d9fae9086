#include "tessera/ops/linalg/subscripts.h"

namespace tessera::linalg {

namespace {

constexpr int kDots = -1;  // an ellipsis that is not spread out yet

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
int label_of(char c) { return c >= 'a' ? c - 'a' + 26 : c - 'A'; }

// The labels of one term, with kDots for an ellipsis; `place` is where it begins in the equation.
std::vector<int> parse_term(std::string_view term, size_t place, const std::string& whose) {
  std::vector<int> out;
  bool dots = false;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term[i] == ' ') continue;
    if (term[i] == '.') {
      TS_CHECK(!dots, "einsum(): found '.' for ", whose,
               whose == "output" ? " but an ellipsis (...) was already found"
                                 : " for which an ellipsis was already found");
      TS_CHECK(term.substr(i, 3) == "...", "einsum(): found '.' for ", whose,
               " that is not part of any ellipsis");
      dots = true;
      out.push_back(kDots);
      i += 2;
      continue;
    }
    TS_CHECK(is_letter(term[i]), "einsum(): invalid subscript given at index ", place + i,
             " in the equation string, subscripts must be in [a-zA-Z]");
    out.push_back(label_of(term[i]));
  }
  return out;
}

// Of `dims` dimensions, of all operands' ellipses the longest has `most`.
void spread_dots(std::vector<int>& labels, int dims, int most, int operand) {
  const int named = static_cast<int>(
      std::count_if(labels.begin(), labels.end(), [](int l) { return l != kDots; }));
  auto dots = std::find(labels.begin(), labels.end(), kDots);
  if (dots == labels.end()) {
    TS_CHECK(named == dims, "einsum(): the number of subscripts in the equation (", named, ")",
             named > dims ? " is more than the number of dimensions ("
                          : " does not match the number of dimensions (",
             dims, ") for operand ", operand, named > dims ? "" : " and no ellipsis was given");
    return;
  }
  TS_CHECK(named <= dims, "einsum(): the number of subscripts in the equation (", named,
           ") is more than the number of dimensions (", dims, ") for operand ", operand);
  dots = labels.erase(dots);
  for (int i = most - (dims - named); i < most; ++i) dots = labels.insert(dots, kEllipsis + i) + 1;
}

}  // namespace

std::string label_name(int label) {
  if (label >= kEllipsis) return "...";
  return {static_cast<char>(label < 26 ? 'A' + label : 'a' + label - 26)};
}

Subscripts parse_equation(std::string_view equation, std::span<const TensorBase> operands) {
  TS_CHECK(!operands.empty(), "einsum(): must provide at least one operand");
  const size_t arrow = equation.find("->");
  const std::string_view left = equation.substr(0, arrow);
  Subscripts out;
  for (size_t at = 0;;) {
    const size_t comma = left.find(',', at);
    const std::string_view term = left.substr(at, comma == left.npos ? left.npos : comma - at);
    out.operands.push_back(parse_term(term, at, cat("operand ", out.operands.size())));
    if (comma == left.npos) break;
    at = comma + 1;
    TS_CHECK(out.operands.size() < operands.size(),
             "einsum(): fewer operands were provided than specified in the equation");
  }
  TS_CHECK(out.operands.size() == operands.size(),
           "einsum(): ", out.operands.size() < operands.size() ? "more" : "fewer",
           " operands were provided than specified in the equation");
  int most = 0;  // dimensions of an ellipsis
  for (size_t i = 0; i < operands.size(); ++i) {
    const auto& labels = out.operands[i];
    if (std::find(labels.begin(), labels.end(), kDots) != labels.end())
      most = std::max(most, operands[i].dim() - static_cast<int>(labels.size()) + 1);
  }
  for (size_t i = 0; i < operands.size(); ++i)
    spread_dots(out.operands[i], operands[i].dim(), most, static_cast<int>(i));

  int count[kEllipsis] = {};
  for (const auto& labels : out.operands)
    for (int l : labels)
      if (l < kEllipsis) ++count[l];
  auto add_dots = [&] {
    for (int i = 0; i < most; ++i) out.output.push_back(kEllipsis + i);
  };
  if (arrow == equation.npos) {  // the ellipsis, then what occurs once, by the alphabet
    add_dots();
    for (int l = 0; l < kEllipsis; ++l)
      if (count[l] == 1) out.output.push_back(l);
    return out;
  }
  for (int l : parse_term(equation.substr(arrow + 2), arrow + 2, "output")) {
    if (l == kDots) {
      add_dots();
      continue;
    }
    const bool twice = std::find(out.output.begin(), out.output.end(), l) != out.output.end();
    TS_CHECK(count[l] > 0 && !twice, "einsum(): output subscript ", label_name(l),
             twice ? " appears more than once in the output"
                   : " does not appear in the equation for any input operand");
    out.output.push_back(l);
  }
  return out;
}

}  // namespace tessera::linalg
