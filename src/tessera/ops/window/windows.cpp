// Windows for signals. They are short: worked out on the host, in double.
#include <cmath>
#include <numbers>

#include "tessera/ops/creation/options.h"

namespace tessera {

namespace {

constexpr double kPi = std::numbers::pi;

// A vector of length n with f(i) at place i.
template <class F>
TensorBase made(int64_t n, DType dtype, const CreationOptions& o, F f) {
  TensorBase host = new_empty({n}, DType::kFloat64, Device{});
  double* to = reinterpret_cast<double*>(host.raw());
  for (int64_t i = 0; i < n; ++i) to[i] = n == 1 ? 1.0 : f(static_cast<double>(i));
  if (dtype == DType::kFloat64) return o.finish(std::move(host));
  TensorBase rounded = new_empty({n}, dtype, Device{});
  copy_into(rounded, host, false);
  return o.finish(std::move(rounded));
}

// torch.signal.windows: arguments are M, then others, then sym and the options from `at` on.
struct Window {
  int64_t length;
  double span;  // over which the window is symmetric: one more place where it is periodic
  DType dtype;
  CreationOptions options;

  Window(const Call& c, const char* name, int at)
      : length(length_of(c, name, at + 4)), options(c, at + 1) {
    TS_CHECK_VALUE(length >= 0, name, " requires non-negative window length, got M=", length);
    dtype = options.dtype.value_or(default_dtype());
    TS_CHECK_VALUE(dtype == DType::kFloat32 || dtype == DType::kFloat64, name,
                   " expects float32 or float64 dtypes, got: ", dtype);
    span = static_cast<double>(c.flag(at) ? length - 1 : length);
  }
  template <class F>
  TensorBase make(F f) const {
    return made(length, dtype, options, f);
  }

 private:
  // The layout is looked at before anybody else does, whose error is of another kind.
  static int64_t length_of(const Call& c, const char* name, int layout) {
    TS_CHECK_VALUE(!c.has(layout) || c.integer(layout) == 0, name,
                   " is implemented for strided tensors only");
    return c.integer(0);
  }
};

TensorBase cosines(const Window& w, std::span<const double> a) {
  return w.make([&](double i) {
    double sum = 0, sign = 1;
    for (size_t k = 0; k < a.size(); ++k, sign = -sign)
      sum += sign * a[k] * std::cos(static_cast<double>(k) * 2 * kPi * i / w.span);
    return sum;
  });
}

double kaiser_at(double x, double beta) {  // x in [-1, 1]
  double inside = beta * std::sqrt(std::max(0.0, 1 - x * x));
  return std::cyl_bessel_i(0.0, inside) / std::cyl_bessel_i(0.0, beta);
}

// torch.hann_window and the like: length, periodic, parameters, the options from `at` on.
struct OldWindow {
  int64_t length;
  double span;
  DType dtype;
  CreationOptions options;

  OldWindow(const Call& c, int at) : length(c.integer(0)), options(c, at) {
    dtype = options.dtype.value_or(default_dtype());
    TS_CHECK(is_floating(dtype), c.op.name, " expects floating point dtypes, got: ", dtype);
    TS_CHECK(length >= 0, c.op.name,
             " requires non-negative window_length, got window_length=", length);
    span = static_cast<double>(c.flag(1) ? length : length - 1);
  }
  template <class F>
  TensorBase make(F f) const {
    return made(length, dtype, options, f);
  }
};

}  // namespace

TS_OP({
    .schema = "signal.windows.general_cosine(int M, *, float[] a, bool sym=True, dtype? "
              "dtype=None, device? device=None, bool requires_grad=False, layout? layout=None, "
              "bool? pin_memory=False) -> Tensor",
    .doc = "A sum of cosines, with coefficients a.",
    .example = "torch.signal.windows.general_cosine(5, a=[0.5, 0.5])",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      Window w(c, "general_cosine", 2);
      TS_CHECK_VALUE(!c.floats(1).empty(), "Coefficients cannot be empty");
      return cosines(w, c.floats(1));
    },
    .samples = {{"5, a=[0.5, 0.5]"}},
});

TS_OP({
    .schema = "signal.windows.general_hamming(int M, *, float alpha=0.54, bool sym=True, dtype? "
              "dtype=None, device? device=None, bool requires_grad=False, layout? layout=None, "
              "bool? pin_memory=False) -> Tensor",
    .doc = "alpha - (1 - alpha) * cos: the general Hamming window.",
    .example = "torch.signal.windows.general_hamming(5, alpha=0.6)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      double a[] = {c.number(1), 1 - c.number(1)};
      return cosines(Window(c, "general_cosine", 2), a);
    },
    .samples = {{"5"}, {"4, alpha=0.7, sym=False"}},
});

TS_OP({
    .schema = "signal.windows.hamming(int M, *, bool sym=True, dtype? dtype=None, device? "
              "device=None, bool requires_grad=False, layout? layout=None, bool? "
              "pin_memory=False) -> Tensor",
    .doc = "The Hamming window.",
    .example = "torch.signal.windows.hamming(5)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      constexpr double a[] = {0.54, 0.46};
      return cosines(Window(c, "general_cosine", 1), a);
    },
    .samples = {{"5"}, {"4, sym=False"}},
});

TS_OP({
    .schema = "signal.windows.hann(int M, *, bool sym=True, dtype? dtype=None, device? "
              "device=None, bool requires_grad=False, layout? layout=None, bool? "
              "pin_memory=False) -> Tensor",
    .doc = "The Hann window.",
    .example = "torch.signal.windows.hann(5)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      constexpr double a[] = {0.5, 0.5};
      return cosines(Window(c, "general_cosine", 1), a);
    },
    .samples = {{"5"}, {"4, sym=False"}, {"1"}, {"0"}},
});

TS_OP({
    .schema = "signal.windows.blackman(int M, *, bool sym=True, dtype? dtype=None, device? "
              "device=None, bool requires_grad=False, layout? layout=None, bool? "
              "pin_memory=False) -> Tensor",
    .doc = "The Blackman window.",
    .example = "torch.signal.windows.blackman(5)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      constexpr double a[] = {0.42, 0.5, 0.08};
      return cosines(Window(c, "blackman", 1), a);
    },
    .samples = {{"5"}, {"4, sym=False"}},
});

TS_OP({
    .schema = "signal.windows.nuttall(int M, *, bool sym=True, dtype? dtype=None, device? "
              "device=None, bool requires_grad=False, layout? layout=None, bool? "
              "pin_memory=False) -> Tensor",
    .doc = "Nuttall's window of four terms.",
    .example = "torch.signal.windows.nuttall(5)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      constexpr double a[] = {0.3635819, 0.4891775, 0.1365995, 0.0106411};
      return cosines(Window(c, "general_cosine", 1), a);
    },
    .samples = {{"5"}, {"4, sym=False"}},
});

TS_OP({
    .schema = "signal.windows.bartlett(int M, *, bool sym=True, dtype? dtype=None, device? "
              "device=None, bool requires_grad=False, layout? layout=None, bool? "
              "pin_memory=False) -> Tensor",
    .doc = "The triangle of Bartlett.",
    .example = "torch.signal.windows.bartlett(5)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      Window w(c, "bartlett", 1);
      return w.make([&](double i) { return 1 - std::abs(2 * i / w.span - 1); });
    },
    .samples = {{"5"}, {"4, sym=False"}},
});

TS_OP({
    .schema = "signal.windows.cosine(int M, *, bool sym=True, dtype? dtype=None, device? "
              "device=None, bool requires_grad=False, layout? layout=None, bool? "
              "pin_memory=False) -> Tensor",
    .doc = "Half a wave of the sine.",
    .example = "torch.signal.windows.cosine(5)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      Window w(c, "cosine", 1);
      return w.make([&](double i) { return std::sin((i + 0.5) * kPi / (w.span + 1)); });
    },
    .samples = {{"5"}, {"4, sym=False"}},
});

TS_OP({
    .schema = "signal.windows.gaussian(int M, *, float std=1.0, bool sym=True, dtype? dtype=None, "
              "device? device=None, bool requires_grad=False, layout? layout=None, bool? "
              "pin_memory=False) -> Tensor",
    .doc = "A Gaussian bell of a standard deviation.",
    .example = "torch.signal.windows.gaussian(5, std=0.9)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      Window w(c, "gaussian", 2);
      double std = c.number(1);
      TS_CHECK_VALUE(std > 0, "Standard deviation must be positive, got: ", std, " instead.");
      return w.make([&](double i) {
        double x = (i - w.span / 2) / std;
        return std::exp(-x * x / 2);
      });
    },
    .samples = {{"5"}, {"4, std=0.7, sym=False"}},
});

TS_OP({
    .schema = "signal.windows.exponential(int M, *, float? center=None, float tau=1.0, bool "
              "sym=True, dtype? dtype=None, device? device=None, bool requires_grad=False, layout? "
              "layout=None, bool? pin_memory=False) -> Tensor",
    .doc = "A function that falls exponentially from its center.",
    .example = "torch.signal.windows.exponential(5, tau=2.0)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      Window w(c, "exponential", 3);
      double tau = c.number(2);
      TS_CHECK_VALUE(tau > 0, "Tau must be positive, got: ", tau, " instead.");
      TS_CHECK_VALUE(!c.flag(3) || !c.has(1), "Center must be None for symmetric windows");
      double center = c.has(1) ? c.number(1) : w.span / 2;
      auto value = [&](double i) { return std::exp(-std::abs(i - center) / tau); };
      if (w.length == 1 && c.has(1)) {
        TensorBase one = w.make(value);
        fill(one, Scalar(value(0)));
        return one;
      }
      return w.make(value);
    },
    .samples = {{"5"}, {"4, tau=2.0, sym=False"}},
});

TS_OP({
    .schema = "signal.windows.kaiser(int M, *, float beta=12.0, bool sym=True, dtype? dtype=None, "
              "device? device=None, bool requires_grad=False, layout? layout=None, bool? "
              "pin_memory=False) -> Tensor",
    .doc = "Kaiser's window.",
    .example = "torch.signal.windows.kaiser(5)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      Window w(c, "kaiser", 2);
      double beta = c.number(1);
      TS_CHECK_VALUE(beta >= 0, "beta must be non-negative, got: ", beta, " instead.");
      return w.make([&](double i) { return kaiser_at(2 * i / w.span - 1, beta); });
    },
    .samples = {{"5"}, {"4, beta=3.0, sym=False"}},
});

TS_OP({
    .schema = "hann_window(int window_length, bool periodic=True, *, dtype? dtype=None, device? "
              "device=None, bool requires_grad=False, layout? layout=None, bool? "
              "pin_memory=False) -> Tensor",
    .doc = "The Hann window; periodic: without the last place of one that is longer by one.",
    .example = "torch.hann_window(4)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      OldWindow w(c, 2);
      return w.make([&](double i) { return 0.5 - 0.5 * std::cos(2 * kPi * i / w.span); });
    },
    .samples = {{"5"}, {"4, False"}, {"1"}, {"0"}},
});

TS_OP({
    .schema = "hamming_window(int window_length, bool periodic=True, float alpha=0.54, float "
              "beta=0.46, *, dtype? dtype=None, device? device=None, bool requires_grad=False, "
              "layout? layout=None, bool? pin_memory=False) -> Tensor",
    .doc = "alpha - beta * cos: the Hamming window.",
    .example = "torch.hamming_window(4)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      OldWindow w(c, 4);
      double alpha = c.number(2), beta = c.number(3);
      return w.make([&](double i) { return alpha - beta * std::cos(2 * kPi * i / w.span); });
    },
    .samples = {{"5"}, {"4, False"}, {"4, True, 0.6, 0.4"}},
});

TS_OP({
    .schema = "blackman_window(int window_length, bool periodic=True, *, dtype? dtype=None, "
              "device? device=None, bool requires_grad=False, layout? layout=None, bool? "
              "pin_memory=False) -> Tensor",
    .doc = "The Blackman window.",
    .example = "torch.blackman_window(4)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      OldWindow w(c, 2);
      return w.make([&](double i) {
        double x = 2 * kPi * i / w.span;
        return 0.42 - 0.5 * std::cos(x) + 0.08 * std::cos(2 * x);
      });
    },
    .samples = {{"5"}, {"4, False"}},
});

TS_OP({
    .schema = "bartlett_window(int window_length, bool periodic=True, *, dtype? dtype=None, "
              "device? device=None, bool requires_grad=False, layout? layout=None, bool? "
              "pin_memory=False) -> Tensor",
    .doc = "The triangle of Bartlett.",
    .example = "torch.bartlett_window(4)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      OldWindow w(c, 2);
      return w.make([&](double i) { return 1 - std::abs(2 * i / w.span - 1); });
    },
    .samples = {{"5"}, {"4, False"}},
});

TS_OP({
    .schema = "kaiser_window(int window_length, bool periodic=True, float beta=12.0, *, dtype? "
              "dtype=None, device? device=None, bool requires_grad=False, layout? layout=None, "
              "bool? pin_memory=False) -> Tensor",
    .doc = "Kaiser's window.",
    .example = "torch.kaiser_window(4)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      OldWindow w(c, 3);
      double beta = c.number(2);
      return w.make([&](double i) { return kaiser_at(2 * i / w.span - 1, beta); });
    },
    .samples = {{"5"}, {"4, False"}, {"4, True, 3.0"}},
});

}  // namespace tessera
