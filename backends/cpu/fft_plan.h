// The discrete Fourier transform of one length.
//
// Note [How a transform is computed]
// Real and imaginary parts lie in arrays of their own, so loops vectorise without shuffles, and
// exchanging the two arrays gives the backward transform. Several transforms may lie side by side
// as lanes: element i of lane l is at i * lanes + l. Lengths with small prime factors go through
// passes of radix 2 to 13 and other small primes, each of which reads one buffer and writes the
// other and leaves its results in order (Stockham). Other lengths become a convolution with a chirp
// of a length that has small factors (Bluestein).
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

namespace tessera::cpu {

template <class T>
struct SplitArray {
  T* re;
  T* im;
};

template <class T>
class FftPlan {
 public:
  // From a cache of a few recent lengths. Throws std::bad_alloc.
  static std::shared_ptr<const FftPlan> of(int64_t n);
  explicit FftPlan(int64_t n);

  int64_t length() const { return n_; }
  int64_t bytes() const;
  // Elements of T that `work` has for each lane.
  int64_t work_size() const { return work_size_; }
  // Forward and unscaled. The result lies in `x` or in `work`: what is returned says where.
  SplitArray<T> run(SplitArray<T> x, T* work, int64_t lanes) const;

 private:
  struct Pass {
    int radix;
    int64_t rest;   // length / product of the radices up to this one
    size_t first;   // of its twiddles: [radix - 1][rest] pairs, all real parts first
    size_t circle;  // of the roots of unity of its radix, where that is no small one
  };

  SplitArray<T> run_passes(SplitArray<T> x, SplitArray<T> y, int64_t lanes) const;
  SplitArray<T> run_chirp(SplitArray<T> x, T* work, int64_t lanes) const;
  void make_passes();
  void make_chirp(int64_t padded);

  int64_t n_;
  int64_t work_size_;
  std::vector<Pass> passes_;
  std::vector<T> table_;  // twiddles and roots of unity
  // Of a convolution: the chirp (length n), and the transform of its conjugate (length of inner_).
  std::shared_ptr<const FftPlan> inner_;
  std::vector<T> chirp_re_, chirp_im_, kernel_re_, kernel_im_;
};

// The roots exp(-2 pi i k / n), 0 <= k <= n / 2: what a real transform of even length n needs
// beside a complex one of half the length.
template <class T>
class HalfCircle {
 public:
  static std::shared_ptr<const HalfCircle> of(int64_t n);
  explicit HalfCircle(int64_t n);
  int64_t length() const { return n_; }
  int64_t bytes() const { return static_cast<int64_t>((re.size() + im.size()) * sizeof(T)); }
  std::vector<T> re, im;

 private:
  int64_t n_;
};

// A long transform as rows * columns short ones: Note [Long transforms] in kernel_fft.cpp.
template <class T>
class FftGrid {
 public:
  static constexpr int kLanes = 64 / sizeof(T);
  // The two lengths of a split of n; {0, 0} where there is none that helps.
  static void split(int64_t n, int64_t* rows, int64_t* columns);
  static std::shared_ptr<const FftGrid> of(int64_t n);
  explicit FftGrid(int64_t n);
  int64_t length() const { return rows * columns; }
  int64_t bytes() const {
    return static_cast<int64_t>(4 * coarse_re_.size() * sizeof(double) +
                                2 * lane_re.size() * sizeof(T));
  }
  // exp(-2 pi i k / n), from two tables.
  void root(int64_t k, T* re, T* im) const;

  int64_t rows = 0, columns = 0;
  std::shared_ptr<const FftPlan<T>> down, along;
  std::vector<T> lane_re, lane_im;  // [row][lane]: exp(-2 pi i row * lane / n)

 private:
  std::vector<double> coarse_re_, coarse_im_, fine_re_, fine_im_;
};

// exp(-2 pi i k / n) for 0 <= k < n, to the last place or so: the angle is reduced to an eighth of
// the circle in integers.
void unit_root(int64_t k, int64_t n, double* re, double* im);

}  // namespace tessera::cpu
