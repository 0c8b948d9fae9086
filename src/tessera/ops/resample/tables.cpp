#include "tessera/ops/resample/tables.h"

#include <algorithm>
#include <cmath>

namespace tessera::resample {

namespace {

// Keys' cubic of parameter a.
double cubic(double x, double a) {
  x = std::fabs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

double step_of(int64_t in, int64_t out, bool align_corners, double scale) {
  if (align_corners)
    return out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
  return scale > 0 ? 1 / scale : static_cast<double>(in) / static_cast<double>(out);
}

Table nearest(int64_t in, int64_t out, double scale, bool exact) {
  Table t;
  // In single precision, as PyTorch finds its places.
  float step =
      scale > 0 ? static_cast<float>(1 / scale) : static_cast<float>(in) / static_cast<float>(out);
  for (int64_t i = 0; i < out; ++i) {
    float at = exact ? (static_cast<float>(i) + 0.5f) * step : static_cast<float>(i) * step;
    t.starts.push_back(std::min(static_cast<int64_t>(std::floor(at)), in - 1));
    t.weights.push_back(1);
  }
  return t;
}

// Wider where the input is finer than the output: every element of the input has its say.
Table antialiased(Mode mode, int64_t in, int64_t out, double step) {
  bool linear = mode == Mode::kLinear;
  double width = linear ? 2 : 4;
  double support = width * 0.5 * std::max(step, 1.0), inverse = step >= 1 ? 1 / step : 1;
  Table t;
  t.taps = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
  for (int64_t i = 0; i < out; ++i) {
    double center = step * (static_cast<double>(i) + 0.5);
    int64_t first = std::max<int64_t>(static_cast<int64_t>(center - support + 0.5), 0);
    int64_t last = std::min(static_cast<int64_t>(center + support + 0.5), in);
    std::vector<double> w(static_cast<size_t>(t.taps), 0.0);
    double total = 0;
    for (int64_t k = first; k < last && k - first < t.taps; ++k) {
      double x = (static_cast<double>(k) - center + 0.5) * inverse;
      double v = linear ? std::max(0.0, 1 - std::fabs(x)) : cubic(x, -0.5);
      w[static_cast<size_t>(k - first)] = v;
      total += v;
    }
    for (double v : w) t.weights.push_back(total != 0 ? v / total : v);
    t.starts.push_back(first);
  }
  return t;
}

}  // namespace

Table make_table(Mode mode, int64_t in, int64_t out, bool align_corners, double scale,
                 bool antialias) {
  if (mode == Mode::kNearest || mode == Mode::kNearestExact)
    return nearest(in, out, scale, mode == Mode::kNearestExact);
  double step = step_of(in, out, align_corners, scale);
  if (antialias) return antialiased(mode, in, out, step);
  Table t;
  t.taps = mode == Mode::kLinear ? 2 : 4;
  for (int64_t i = 0; i < out; ++i) {
    double at =
        align_corners ? step * static_cast<double>(i) : step * (static_cast<double>(i) + 0.5) - 0.5;
    if (mode == Mode::kLinear) {
      at = std::max(at, 0.0);
      int64_t first = std::min(static_cast<int64_t>(at), in - 1);
      double part = std::min(at - static_cast<double>(first), 1.0);
      t.starts.push_back(first);
      t.weights.insert(t.weights.end(), {1 - part, part});
      continue;
    }
    double whole = std::floor(at), part = at - whole;
    t.starts.push_back(static_cast<int64_t>(whole) - 1);
    for (double x : {part + 1, part, 1 - part, 2 - part}) t.weights.push_back(cubic(x, -0.75));
  }
  return t;
}

double quantize(Table& t, int64_t in) {
  const int64_t out = static_cast<int64_t>(t.starts.size());
  double largest = 0;
  for (int64_t i = 0; i < out; ++i) {
    double* w = t.weights.data() + i * t.taps;
    // Taps beyond an end read the element there: their weights are joined before they are rounded.
    int64_t& start = t.starts[static_cast<size_t>(i)];
    const int64_t first = std::clamp<int64_t>(start, 0, in - 1);
    std::vector<double> joined(static_cast<size_t>(t.taps), 0.0);
    for (int64_t k = 0; k < t.taps; ++k)
      joined[static_cast<size_t>(std::clamp<int64_t>(start + k, 0, in - 1) - first)] += w[k];
    start = first;
    std::copy(joined.begin(), joined.end(), w);
    largest = std::max(largest, *std::max_element(joined.begin(), joined.end()));
  }
  int bits = 0;
  while (bits < 22 && static_cast<int>(0.5 + largest * (2 << bits)) < 1 << 15) ++bits;
  const double one = static_cast<double>(1 << bits);
  for (double& v : t.weights) v = std::trunc(v * one + (v < 0 ? -0.5 : 0.5));
  return one;
}

}  // namespace tessera::resample
