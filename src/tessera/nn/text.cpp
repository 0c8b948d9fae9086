#include "tessera/nn/text.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace tessera::nn {

std::string py(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char buf[40];
  char* end = std::to_chars(buf, buf + sizeof buf, v, std::chars_format::scientific).ptr;
  std::string text(buf, end);
  size_t e = text.find('e');
  int exponent = std::atoi(text.c_str() + e + 1);
  if (exponent < -4 || exponent >= 16) return text;
  end = std::to_chars(buf, buf + sizeof buf, v, std::chars_format::fixed).ptr;
  text.assign(buf, end);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

std::string py(bool v) { return v ? "True" : "False"; }
std::string py(int64_t v) { return std::to_string(v); }
std::string py(std::optional<double> v) { return v ? py(*v) : "None"; }
std::string py_quoted(const std::string& text) { return "'" + text + "'"; }

namespace {
template <class T>
std::string tuple_of(std::span<const T> values) {
  std::string out = "(";
  for (size_t i = 0; i < values.size(); ++i) out += (i ? ", " : "") + py(values[i]);
  return out + (values.size() == 1 ? ",)" : ")");
}
}  // namespace

std::string py_tuple(std::span<const int64_t> values) { return tuple_of(values); }
std::string py_tuple(std::span<const double> values) { return tuple_of(values); }
std::string py_sizes(std::span<const int64_t> values) {
  if (values.empty()) return "None";
  return values.size() == 1 ? py(values[0]) : py_tuple(values);
}

}  // namespace tessera::nn
