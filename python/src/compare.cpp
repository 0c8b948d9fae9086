// Two tensors compared element by element, as torch.testing.assert_close() words it.
#include <cmath>

#include "methods.h"
#include "numbers.h"

namespace tessera::python {

namespace {

double magnitude(const Scalar& s) {
  return s.is_complex() ? std::hypot(s.d, s.im) : std::fabs(s.to_double());
}

Scalar difference(const Scalar& a, const Scalar& b) {
  if (a.is_complex() || b.is_complex()) {
    c128 x = a.to_complex(), y = b.to_complex();
    return Scalar(std::hypot(x.re - y.re, x.im - y.im));
  }
  if (a.is_double()) return Scalar(std::fabs(a.d - b.d));
  // Integers differ exactly, wrapping as tensors of int64 do.
  uint64_t d = static_cast<uint64_t>(a.i) - static_cast<uint64_t>(b.i);
  auto v = static_cast<int64_t>(d);
  return Scalar(v < 0 ? static_cast<int64_t>(-static_cast<uint64_t>(v)) : v);
}

bool is_nan(const Scalar& s) { return s.is_double() && (std::isnan(s.d) || std::isnan(s.im)); }
bool same(const Scalar& a, const Scalar& b) {
  return a.is_double() ? a.d == b.d && a.im == b.im : a.i == b.i;
}

// |a - b| <= atol + rtol |b|, or equal.
bool close(const Scalar& a, const Scalar& b, double rtol, double atol, bool equal_nan) {
  if (same(a, b)) return true;
  if (is_nan(a) || is_nan(b)) return equal_nan && is_nan(a) && is_nan(b);
  double error = difference(a, b).to_double();
  return std::isfinite(error) && error <= atol + rtol * magnitude(b);
}

// The largest so far and where; nan is the largest.
struct Largest {
  double value = 0;
  int64_t at = 0;
  void see(double v, int64_t where) {
    if (std::isnan(value) || !(std::isnan(v) || v > value)) return;
    value = v;
    at = where;
  }
};

struct Comparison {
  int64_t mismatches = 0;
  Largest absolute, relative;
};

Comparison compare(const TensorBase& a, const TensorBase& b, double rtol, double atol,
                   bool equal_nan) {
  DType dtype = a.dtype(), part = real_dtype(dtype);
  size_t item = itemsize(dtype);
  // Differences are rounded as tensors of this dtype would round them.
  auto rounded = [&](double v) {
    char memory[16];
    if (!is_floating(part)) return v;
    store_element(memory, part, Scalar(v));
    return load_element(memory, part).d;
  };
  Comparison found;
  for (int64_t i = 0; i < a.numel(); ++i) {
    Scalar x = load_element(a.raw() + static_cast<size_t>(i) * item, dtype);
    Scalar y = load_element(b.raw() + static_cast<size_t>(i) * item, dtype);
    if (close(x, y, rtol, atol, equal_nan)) continue;
    ++found.mismatches;
    double error = rounded(difference(x, y).to_double());
    found.absolute.see(error, i);
    found.relative.see(rounded(error / magnitude(y)), i);
  }
  return found;
}

PyObject* mismatch(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *actual, *expected;
    double rtol, atol;
    int equal_nan;
    if (!PyArg_ParseTuple(args, "OOddp:_mismatch", &actual, &expected, &rtol, &atol, &equal_nan))
      throw PythonError{};
    auto host = [](PyObject* o) {
      TensorBase t = on_host(unwrap_checked(o, "_mismatch(): argument"));
      return on_host(call_op("contiguous", {Value(detached(t))}));
    };
    TensorBase a = host(actual), b = host(expected);
    TS_CHECK(a.sizes() == b.sizes() && a.dtype() == b.dtype(), "_mismatch() needs equal shapes");
    Comparison c = compare(a, b, rtol, atol, equal_nan);
    return Py_BuildValue("LdLdL", static_cast<long long>(c.mismatches), c.absolute.value,
                         static_cast<long long>(c.absolute.at), c.relative.value,
                         static_cast<long long>(c.relative.at));
  });
}

PyMethodDef functions[] = {
    {"_mismatch", mismatch, METH_VARARGS,
     "How many elements differ, the largest absolute difference and where, the largest relative."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_comparison(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError{};
}

}  // namespace tessera::python
