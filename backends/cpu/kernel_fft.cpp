// Fourier transforms of complex and real tensors along dimensions.
#include <algorithm>
#include <cstring>

#include "fft_lines.h"
#include "fft_plan.h"
#include "isa.h"
#include "scratch.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

// A place in strided memory: element i of lane l is at i * step + l * lane.
template <class E>
struct Strided {
  E* data;
  int64_t step, lane;
  E& at(int64_t i, int64_t l) const { return data[i * step + l * lane]; }
};

// f(i, l) for all n elements of all lanes, along the shorter way through memory.
template <class E, class F>
void walk(const Strided<E>& s, int64_t n, int64_t lanes, F&& f) {
  if (std::abs(s.lane) < std::abs(s.step) && lanes > 1) {
    for (int64_t i = 0; i < n; ++i)
      for (int64_t l = 0; l < lanes; ++l) f(i, l);
  } else {
    for (int64_t l = 0; l < lanes; ++l)
      for (int64_t i = 0; i < n; ++i) f(i, l);
  }
}

template <class T>
void load(const Strided<const Complex<T>>& from, int64_t n, int64_t lanes, SplitArray<T> x) {
  if (lanes == 1 && from.step == 1) {
    for (int64_t i = 0; i < n; ++i) {
      x.re[i] = from.data[i].re;
      x.im[i] = from.data[i].im;
    }
    return;
  }
  walk(from, n, lanes, [&](int64_t i, int64_t l) {
    Complex<T> v = from.at(i, l);
    x.re[i * lanes + l] = v.re;
    x.im[i * lanes + l] = v.im;
  });
}
template <class T>
void load(const Strided<const T>& from, int64_t n, int64_t lanes, SplitArray<T> x) {
  walk(from, n, lanes, [&](int64_t i, int64_t l) { x.re[i * lanes + l] = from.at(i, l); });
  std::fill_n(x.im, n * lanes, T(0));
}
template <class T>
void store(const Strided<Complex<T>>& to, int64_t n, int64_t lanes, SplitArray<T> x, T scale) {
  if (lanes == 1 && to.step == 1) {
    for (int64_t i = 0; i < n; ++i) to.data[i] = {x.re[i] * scale, x.im[i] * scale};
    return;
  }
  walk(to, n, lanes, [&](int64_t i, int64_t l) {
    to.at(i, l) = {x.re[i * lanes + l] * scale, x.im[i * lanes + l] * scale};
  });
}

template <class T>
SplitArray<T> exchanged(SplitArray<T> x, bool really) {
  return really ? SplitArray<T>{x.im, x.re} : x;
}

// How many neighbours are transformed together: one where a line is dense and long enough to fill
// vectors by itself; else whole cache lines, as long as all stays in the cache.
template <class T>
int64_t lanes_for(int64_t n, const FftLines& lines, bool dense) {
  if (dense && n >= 128) return 1;
  constexpr int64_t kLanes = 64 / sizeof(T);
  constexpr int64_t kCache = 512 * 1024;
  int64_t fit = kCache / (n * 4 * static_cast<int64_t>(sizeof(T)));
  return std::min(lines.lane_size, std::clamp<int64_t>(fit, 4, kLanes));
}

// Calls f(in offset, out offset, lanes, buffer of so many T for each lane) for groups of lines.
template <class T, class F>
Status for_groups(const FftLines& lines, int64_t n, int64_t lanes, int64_t buffer, const F& f) {
  OutOfScratch failure;
  const int64_t chunks = (lines.lane_size + lanes - 1) / lanes;
  const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, n * lanes));
  parallel_for(0, lines.outer * chunks, grain, [&](int64_t b, int64_t e) {
    Scratch scratch(static_cast<size_t>(buffer * lanes) * sizeof(T), failure);
    T* x = static_cast<T*>(scratch.get());
    if (!x) return;
    for (int64_t g = b; g < e; ++g) {
      int64_t in, out;
      lines.offsets(g / chunks, &in, &out);
      const int64_t first = g % chunks * lanes;
      f(in + first * lines.in_lane, out + first * lines.out_lane,
        std::min(lanes, lines.lane_size - first), x);
    }
  });
  return failure.status("fft()");
}

// Note [Long transforms]
// Where a line does not fit the cache, n = rows * columns elements are taken as a matrix: its
// columns are transformed, multiplied by roots of unity, then its rows are, and element
// (row, column) of the result is number row + rows * column. Each step moves through memory once,
// and both are shared among the threads.
template <class T, class In>
Status long_line(const In* in, int64_t in_step, Complex<T>* out, int64_t out_step,
                 const FftGrid<T>& grid, bool forward, T scale) {
  constexpr int64_t kLanes = FftGrid<T>::kLanes;
  const int64_t rows = grid.rows, columns = grid.columns;
  OutOfScratch failure;
  Scratch between(static_cast<size_t>(2 * rows * columns) * sizeof(T), failure);
  T* middle_re = static_cast<T*>(between.get());
  if (!middle_re) return failure.status("fft()");
  T* middle_im = middle_re + rows * columns;
  auto blocks = [](int64_t n) { return (n + kLanes - 1) / kLanes; };
  parallel_for(0, blocks(columns), 1, [&](int64_t b, int64_t e) {
    const FftPlan<T>& plan = *grid.down;
    const size_t size = static_cast<size_t>((2 * rows + plan.work_size()) * kLanes);
    Scratch scratch(size * sizeof(T), failure);
    T* x = static_cast<T*>(scratch.get());
    if (!x) return;
    for (int64_t c = b * kLanes; c < std::min(columns, e * kLanes); c += kLanes) {
      const int64_t lanes = std::min(kLanes, columns - c);
      SplitArray<T> line{x, x + rows * lanes};
      load(Strided<const In>{in + c * in_step, columns * in_step, in_step}, rows, lanes, line);
      line = plan.run(exchanged(line, !forward), x + 2 * rows * lanes, lanes);
      for (int64_t r = 0; r < rows; ++r) {
        T base_re, base_im;
        grid.root(r * c, &base_re, &base_im);
        const T* lane_re = grid.lane_re.data() + r * kLanes;
        const T* lane_im = grid.lane_im.data() + r * kLanes;
        const T *xr = line.re + r * lanes, *xi = line.im + r * lanes;
        T *yr = middle_re + r * columns + c, *yi = middle_im + r * columns + c;
        for (int64_t l = 0; l < lanes; ++l) {
          T wr = base_re * lane_re[l] - base_im * lane_im[l];
          T wi = base_re * lane_im[l] + base_im * lane_re[l];
          yr[l] = xr[l] * wr - xi[l] * wi;
          yi[l] = xr[l] * wi + xi[l] * wr;
        }
      }
    }
  });
  parallel_for(0, blocks(rows), 1, [&](int64_t b, int64_t e) {
    const FftPlan<T>& plan = *grid.along;
    const size_t size = static_cast<size_t>((2 * columns + plan.work_size()) * kLanes);
    Scratch scratch(size * sizeof(T), failure);
    T* x = static_cast<T*>(scratch.get());
    if (!x) return;
    for (int64_t r = b * kLanes; r < std::min(rows, e * kLanes); r += kLanes) {
      const int64_t lanes = std::min(kLanes, rows - r);
      SplitArray<T> line{x, x + columns * lanes};
      for (int64_t l = 0; l < lanes; ++l)
        for (int64_t c = 0; c < columns; ++c) {
          line.re[c * lanes + l] = middle_re[(r + l) * columns + c];
          line.im[c * lanes + l] = middle_im[(r + l) * columns + c];
        }
      line = plan.run(line, x + 2 * columns * lanes, lanes);
      store(Strided<Complex<T>>{out + r * out_step, rows * out_step, out_step}, columns, lanes,
            exchanged(line, !forward), scale);
    }
  });
  return failure.status("fft()");
}

constexpr int64_t kLong = int64_t{1} << 16;

template <class T, class In>
Status complex_lines(const KernelTensor& in, const KernelTensor& out, int dim, bool forward,
                     T scale) {
  const int64_t n = out.sizes[dim];
  FftLines lines(in, out, dim);
  const In* from = static_cast<const In*>(in.data);
  Complex<T>* to = static_cast<Complex<T>*>(out.data);
  int64_t rows = 0, columns = 0;
  if (n >= kLong) FftGrid<T>::split(n, &rows, &columns);
  if (rows > 0) {
    auto grid = FftGrid<T>::of(n);
    for (int64_t i = 0; i < lines.count(); ++i) {
      int64_t a, b;
      lines.offsets(i / lines.lane_size, &a, &b);
      const int64_t l = i % lines.lane_size;
      Status s =
          long_line<T, In>(from + a + l * lines.in_lane, lines.in_step, to + b + l * lines.out_lane,
                           lines.out_step, *grid, forward, scale);
      if (!s.ok()) return s;
    }
    return {};
  }
  auto plan = FftPlan<T>::of(n);
  const bool dense = lines.in_step == 1 && lines.out_step == 1;
  const int64_t lanes = lanes_for<T>(n, lines, dense);
  return for_groups<T>(
      lines, n, lanes, 2 * n + plan->work_size(), [&](int64_t a, int64_t b, int64_t count, T* x) {
        SplitArray<T> line{x, x + n * count};
        load(Strided<const In>{from + a, lines.in_step, lines.in_lane}, n, count, line);
        line = plan->run(exchanged(line, !forward), x + 2 * n * count, count);
        store(Strided<Complex<T>>{to + b, lines.out_step, lines.out_lane}, n, count,
              exchanged(line, !forward), scale);
      });
}

template <class T>
Status run_c2c(const KernelArgs& args) {
  const KernelTensor& out = args.outputs[0];
  const bool forward = args.ints[0] != 0;
  for (int i = 1; i < args.num_ints; ++i) {
    // The first dimension comes from the input, the others in place; the last one is scaled.
    const KernelTensor& in = i == 1 ? args.inputs[0] : out;
    const T scale = i == args.num_ints - 1 ? static_cast<T>(args.doubles[0]) : T(1);
    const int dim = static_cast<int>(args.ints[i]);
    Status s = is_complex(in.dtype) ? complex_lines<T, Complex<T>>(in, out, dim, forward, scale)
                                    : complex_lines<T, T>(in, out, dim, forward, scale);
    if (!s.ok()) return s;
  }
  return {};
}

// Of a real line of even length n the transform follows from that of n / 2 complex numbers made of
// neighbours.
template <class T>
void unpack_real(const FftPlan<T>& half, const HalfCircle<T>& roots, SplitArray<T> z, int64_t lanes,
                 const Strided<Complex<T>>& to, T scale) {
  const int64_t h = half.length();
  const T s = scale * T(0.5);
  walk(to, h + 1, lanes, [&](int64_t k, int64_t l) {
    const int64_t a = (k == h ? 0 : k) * lanes + l, b = (k == 0 ? 0 : h - k) * lanes + l;
    const T er = z.re[a] + z.re[b], ei = z.im[a] - z.im[b];
    const T dr = z.re[a] - z.re[b], di = z.im[a] + z.im[b];
    const T wr = roots.re[static_cast<size_t>(k)], wi = roots.im[static_cast<size_t>(k)];
    // (even part) - i * root * (odd part)
    to.at(k, l) = {(er + (wr * di + wi * dr)) * s, (ei - (wr * dr - wi * di)) * s};
  });
}

template <class T>
Status run_r2c(const KernelArgs& args) {
  const KernelTensor &in = args.inputs[0], &out = args.outputs[0];
  const int dim = static_cast<int>(args.ints[0]);
  const int64_t n = in.sizes[dim];
  const T scale = static_cast<T>(args.doubles[0]);
  FftLines lines(in, out, dim);
  const T* from = static_cast<const T*>(in.data);
  Complex<T>* to = static_cast<Complex<T>*>(out.data);
  const bool dense = lines.in_step == 1 && lines.out_step == 1;
  if (n % 2 == 1) {
    auto plan = FftPlan<T>::of(n);
    return for_groups<T>(
        lines, n, lanes_for<T>(n, lines, dense), 2 * n + plan->work_size(),
        [&](int64_t a, int64_t b, int64_t count, T* x) {
          SplitArray<T> line{x, x + n * count};
          load(Strided<const T>{from + a, lines.in_step, lines.in_lane}, n, count, line);
          line = plan->run(line, x + 2 * n * count, count);
          store(Strided<Complex<T>>{to + b, lines.out_step, lines.out_lane}, n / 2 + 1, count, line,
                scale);
        });
  }
  const int64_t h = n / 2;
  auto half = FftPlan<T>::of(h);
  auto roots = HalfCircle<T>::of(n);
  return for_groups<T>(lines, n, lanes_for<T>(h, lines, dense), n + half->work_size(),
                       [&](int64_t a, int64_t b, int64_t count, T* x) {
                         SplitArray<T> z{x, x + h * count};
                         Strided<const T> pairs{from + a, 2 * lines.in_step, lines.in_lane};
                         walk(pairs, h, count, [&](int64_t i, int64_t l) {
                           z.re[i * count + l] = pairs.at(i, l);
                           z.im[i * count + l] = (&pairs.at(i, l))[lines.in_step];
                         });
                         z = half->run(z, x + 2 * h * count, count);
                         unpack_real(*half, *roots, z, count,
                                     Strided<Complex<T>>{to + b, lines.out_step, lines.out_lane},
                                     scale);
                       });
}

template <class T>
Status run_c2r(const KernelArgs& args) {
  const KernelTensor &in = args.inputs[0], &out = args.outputs[0];
  const int dim = static_cast<int>(args.ints[0]);
  const int64_t n = out.sizes[dim], h = n / 2;
  const T scale = static_cast<T>(args.doubles[0]);
  FftLines lines(in, out, dim);
  const Complex<T>* from = static_cast<const Complex<T>*>(in.data);
  T* to = static_cast<T*>(out.data);
  const bool dense = lines.in_step == 1 && lines.out_step == 1;
  if (n % 2 == 1) {
    auto plan = FftPlan<T>::of(n);
    return for_groups<T>(lines, n, lanes_for<T>(n, lines, dense), 2 * n + plan->work_size(),
                         [&](int64_t a, int64_t b, int64_t count, T* x) {
                           SplitArray<T> line{x, x + n * count};
                           Strided<const Complex<T>> half{from + a, lines.in_step, lines.in_lane};
                           // The other half is the conjugate; the first element counts as real.
                           walk(half, h + 1, count, [&](int64_t k, int64_t l) {
                             const Complex<T> v = half.at(k, l);
                             line.re[k * count + l] = v.re;
                             line.im[k * count + l] = k == 0 ? T(0) : v.im;
                             if (k == 0) return;
                             line.re[(n - k) * count + l] = v.re;
                             line.im[(n - k) * count + l] = -v.im;
                           });
                           line = plan->run(exchanged(line, true), x + 2 * n * count, count);
                           Strided<T> real{to + b, lines.out_step, lines.out_lane};
                           walk(real, n, count, [&](int64_t i, int64_t l) {
                             real.at(i, l) = line.im[i * count + l] * scale;
                           });
                         });
  }
  auto plan = FftPlan<T>::of(h);
  auto roots = HalfCircle<T>::of(n);
  return for_groups<T>(
      lines, n, lanes_for<T>(h, lines, dense), n + plan->work_size(),
      [&](int64_t a, int64_t b, int64_t count, T* x) {
        SplitArray<T> z{x, x + h * count};
        Strided<const Complex<T>> half{from + a, lines.in_step, lines.in_lane};
        walk(half, h, count, [&](int64_t k, int64_t l) {
          Complex<T> p = half.at(k, l), q = half.at(h - k, l);
          if (k == 0) p.im = q.im = T(0);
          const T wr = roots->re[static_cast<size_t>(k)], wi = -roots->im[static_cast<size_t>(k)];
          const T er = p.re + q.re, ei = p.im - q.im, dr = p.re - q.re, di = p.im + q.im;
          // (sum) + i * root * (difference)
          z.re[k * count + l] = er - (wr * di + wi * dr);
          z.im[k * count + l] = ei + (wr * dr - wi * di);
        });
        z = exchanged(plan->run(exchanged(z, true), x + 2 * h * count, count), true);
        Strided<T> pairs{to + b, 2 * lines.out_step, lines.out_lane};
        walk(pairs, h, count, [&](int64_t i, int64_t l) {
          pairs.at(i, l) = z.re[i * count + l] * scale;
          (&pairs.at(i, l))[lines.out_step] = z.im[i * count + l] * scale;
        });
      });
}

template <Status (*F32)(const KernelArgs&), Status (*F64)(const KernelArgs&)>
Status by_dtype(const KernelArgs& args) {
  if (args.outputs[0].numel == 0) return {};
  try {
    switch (real_dtype(args.outputs[0].dtype)) {
      case DType::kFloat32:
        return F32(args);
      case DType::kFloat64:
        return F64(args);
      default:
        return fail(Code::kUnsupported, "not implemented for %s",
                    dtype_name(args.outputs[0].dtype));
    }
  } catch (...) {
    return fail(Code::kOutOfMemory, "fft(): no memory for its tables");
  }
}

}  // namespace

TS_KERNEL("fft_c2c", (by_dtype<run_c2c<float>, run_c2c<double>>))
TS_KERNEL("fft_r2c", (by_dtype<run_r2c<float>, run_r2c<double>>))
TS_KERNEL("fft_c2r", (by_dtype<run_c2r<float>, run_c2r<double>>))

}  // namespace tessera::cpu
