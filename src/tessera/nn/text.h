// Values as Python prints them: what stands between the parentheses of a printed module.
#pragma once
#include <optional>
#include <span>
#include <string>

namespace tessera::nn {

std::string py(double v);  // the shortest text that reads back as v: 0.1, 1e-05, 2.0
std::string py(bool v);
std::string py(int64_t v);
std::string py(std::optional<double> v);  // None where there is none
std::string py_quoted(const std::string& text);
std::string py_tuple(std::span<const int64_t> values);
std::string py_tuple(std::span<const double> values);
// One number as a number, several as a tuple; none as None.
std::string py_sizes(std::span<const int64_t> values);

}  // namespace tessera::nn
