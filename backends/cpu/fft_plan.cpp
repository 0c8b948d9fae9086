#include "fft_plan.h"

#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <mutex>

#include "fft_passes.h"
#include "isa.h"

namespace tessera::cpu {

namespace {

// Factors in the order of the passes: the largest power of two first, because only the first pass
// has no run of values to vectorise over.
std::vector<int> radices_of(int64_t n) {
  std::vector<int> out;
  int twos = 0;
  for (; n % 2 == 0; n /= 2) ++twos;
  if (twos % 2 == 1 && twos >= 3) {
    out.push_back(8);
    twos -= 3;
  } else if (twos >= 6) {
    out.insert(out.end(), {8, 8});
    twos -= 6;
  }
  for (; twos >= 2; twos -= 2) out.push_back(4);
  if (twos == 1) out.push_back(2);
  for (int p = 3; n > 1; p += 2)
    for (; n % p == 0; n /= p) {
      if (p > fft::kLargestRadix) return {};
      out.push_back(p);
    }
  return out;
}

// Operations for each element, roughly: what decides between passes and a convolution.
double cost_of(int64_t n) {
  double cost = 0;
  for (int64_t p = 2; p * p <= n || n > 1; ++p) {
    if (p * p > n) p = n;
    for (; n % p == 0; n /= p)
      cost += p <= 8 ? static_cast<double>(p) + 4 : 2.0 * static_cast<double>(p);
  }
  return cost;
}

// The cheapest length of at least n with factors 2, 3 and 5.
int64_t smooth_length(int64_t n) {
  int64_t best = 1;
  while (best < n) best *= 2;
  for (int64_t f5 = 1; f5 < best; f5 *= 5)
    for (int64_t f = f5; f < best; f *= 3) {
      int64_t x = f;
      while (x < n) x *= 2;
      best = std::min(best, x);
    }
  return best;
}

template <class T>
struct Job {
  SplitArray<T> x, y;
  int64_t run;
};

template <class T>
TS_INLINE void one_pass(int radix, const Job<T>& j, int64_t rest, const T* twiddles,
                        const T* circle) {
  fft::any_pass<T>(radix, j.x.re, j.x.im, j.y.re, j.y.im, rest, j.run, twiddles, circle);
}
template <class T>
void pass_baseline(int radix, const Job<T>& j, int64_t rest, const T* w, const T* circle) {
  one_pass<T>(radix, j, rest, w, circle);
}
template <class T>
TS_TARGET_AVX2 void pass_avx2(int radix, const Job<T>& j, int64_t rest, const T* w,
                              const T* circle) {
  one_pass<T>(radix, j, rest, w, circle);
}
template <class T>
TS_TARGET_AVX512 void pass_avx512(int radix, const Job<T>& j, int64_t rest, const T* w,
                                  const T* circle) {
  one_pass<T>(radix, j, rest, w, circle);
}

template <class T>
void times_baseline(SplitArray<T> x, const T* wr, const T* wi, int64_t rows, int64_t lanes) {
  fft::multiply_rows<T>(x.re, x.im, wr, wi, rows, lanes);
}
template <class T>
TS_TARGET_AVX2 void times_avx2(SplitArray<T> x, const T* wr, const T* wi, int64_t rows,
                               int64_t lanes) {
  fft::multiply_rows<T>(x.re, x.im, wr, wi, rows, lanes);
}
template <class T>
TS_TARGET_AVX512 void times_avx512(SplitArray<T> x, const T* wr, const T* wi, int64_t rows,
                                   int64_t lanes) {
  fft::multiply_rows<T>(x.re, x.im, wr, wi, rows, lanes);
}
template <class T>
void times(SplitArray<T> x, const T* wr, const T* wi, int64_t rows, int64_t lanes) {
  constexpr decltype(&times_baseline<T>) kLoops[] = {times_baseline<T>, times_avx2<T>,
                                                     times_avx512<T>};
  kLoops[g_isa](x, wr, wi, rows, lanes);
}

}  // namespace

void unit_root(int64_t k, int64_t n, double* re, double* im) {
  // 8 k / n: which eighth of the circle, and how far into it.
  const int64_t eighth = 8 * k / n;
  int64_t in = 8 * k - eighth * n;   // in eighths of n, 0 <= in < n
  if (eighth % 2 == 1) in = n - in;  // from the eighth's other end
  const double angle = 0.78539816339744830962 * (static_cast<double>(in) / static_cast<double>(n));
  double c = std::cos(angle), s = std::sin(angle);
  const int64_t quarter = (eighth + 1) / 2;  // the axis it is measured from
  if (eighth % 2 == 1) s = -s;
  // e^{i (quarter pi/2 + angle)}, of which the conjugate is asked for.
  switch (quarter % 4) {
    case 0:
      *re = c, *im = -s;
      break;
    case 1:
      *re = -s, *im = -c;
      break;
    case 2:
      *re = -c, *im = s;
      break;
    default:
      *re = s, *im = c;
      break;
  }
}

template <class T>
FftPlan<T>::FftPlan(int64_t n) : n_(n) {
  const bool smooth = !radices_of(n).empty();
  if (n == 1 || n == 2 || (smooth && cost_of(n) <= 20)) {
    make_passes();
    return;
  }
  const int64_t padded = smooth_length(2 * n - 1);
  const double chirp = 2 * cost_of(padded) * static_cast<double>(padded) / static_cast<double>(n);
  if (smooth && cost_of(n) <= chirp)
    make_passes();
  else
    make_chirp(padded);
}

template <class T>
void FftPlan<T>::make_passes() {
  int64_t done = 1;
  for (int radix : radices_of(n_)) {
    const int64_t length = n_ / done, rest = length / radix;
    Pass pass{radix, rest, table_.size(), 0};
    table_.resize(table_.size() + static_cast<size_t>(2 * (radix - 1) * rest));
    T* re = table_.data() + pass.first;
    T* im = re + (radix - 1) * rest;
    for (int j = 1; j < radix; ++j)
      for (int64_t p = 0; p < rest; ++p) {
        double c, s;
        unit_root(p * j, length, &c, &s);
        re[(j - 1) * rest + p] = static_cast<T>(c);
        im[(j - 1) * rest + p] = static_cast<T>(s);
      }
    if (radix > 8) {
      pass.circle = table_.size();
      table_.resize(table_.size() + static_cast<size_t>(2 * radix));
      for (int k = 0; k < radix; ++k) {
        double c, s;
        unit_root(k, radix, &c, &s);
        table_[pass.circle + static_cast<size_t>(k)] = static_cast<T>(c);
        table_[pass.circle + static_cast<size_t>(radix + k)] = static_cast<T>(-s);
      }
    }
    passes_.push_back(pass);
    done *= radix;
  }
  work_size_ = 2 * n_;
}

template <class T>
void FftPlan<T>::make_chirp(int64_t padded) {
  inner_ = of(padded);
  const size_t n = static_cast<size_t>(n_), m = static_cast<size_t>(padded);
  for (auto* v : {&chirp_re_, &chirp_im_}) v->resize(n);
  for (auto* v : {&kernel_re_, &kernel_im_}) v->assign(m, T(0));
  int64_t square = 0;  // k * k modulo 2 n
  for (size_t k = 0; k < n; ++k) {
    double c, s;
    unit_root(square, 2 * n_, &c, &s);
    chirp_re_[k] = static_cast<T>(c);
    chirp_im_[k] = static_cast<T>(s);
    // The conjugate, around zero, scaled for the way back.
    for (size_t at : {k, k == 0 ? 0 : m - k}) {
      kernel_re_[at] = static_cast<T>(c / static_cast<double>(padded));
      kernel_im_[at] = static_cast<T>(-s / static_cast<double>(padded));
    }
    square = (square + 2 * static_cast<int64_t>(k) + 1) % (2 * n_);
  }
  std::vector<T> work(static_cast<size_t>(inner_->work_size()));
  SplitArray<T> r = inner_->run({kernel_re_.data(), kernel_im_.data()}, work.data(), 1);
  if (r.re != kernel_re_.data()) {
    std::copy_n(r.re, m, kernel_re_.data());
    std::copy_n(r.im, m, kernel_im_.data());
  }
  work_size_ = 2 * padded + inner_->work_size();
}

template <class T>
int64_t FftPlan<T>::bytes() const {
  size_t values = table_.size() + 2 * (chirp_re_.size() + kernel_re_.size());
  return static_cast<int64_t>(values * sizeof(T));
}

template <class T>
SplitArray<T> FftPlan<T>::run(SplitArray<T> x, T* work, int64_t lanes) const {
  if (inner_) return run_chirp(x, work, lanes);
  return run_passes(x, {work, work + n_ * lanes}, lanes);
}

template <class T>
SplitArray<T> FftPlan<T>::run_passes(SplitArray<T> x, SplitArray<T> y, int64_t lanes) const {
  constexpr decltype(&pass_baseline<T>) kLoops[] = {pass_baseline<T>, pass_avx2<T>, pass_avx512<T>};
  auto loop = kLoops[g_isa];
  Job<T> job{x, y, lanes};
  for (const Pass& p : passes_) {
    loop(p.radix, job, p.rest, table_.data() + p.first, table_.data() + p.circle);
    std::swap(job.x, job.y);
    job.run *= p.radix;
  }
  return job.x;
}

template <class T>
SplitArray<T> FftPlan<T>::run_chirp(SplitArray<T> x, T* work, int64_t lanes) const {
  const int64_t m = inner_->length();
  SplitArray<T> a{work, work + m * lanes};
  times(x, chirp_re_.data(), chirp_im_.data(), n_, lanes);
  std::copy_n(x.re, n_ * lanes, a.re);
  std::copy_n(x.im, n_ * lanes, a.im);
  std::fill(a.re + n_ * lanes, a.re + m * lanes, T(0));
  std::fill(a.im + n_ * lanes, a.im + m * lanes, T(0));
  T* more = work + 2 * m * lanes;
  SplitArray<T> f = inner_->run(a, more, lanes);
  times(f, kernel_re_.data(), kernel_im_.data(), m, lanes);
  // Backward: real and imaginary parts exchanged. The other buffer is free to be written.
  SplitArray<T> b = inner_->run({f.im, f.re}, f.re == a.re ? more : work, lanes);
  std::copy_n(b.im, n_ * lanes, x.re);
  std::copy_n(b.re, n_ * lanes, x.im);
  times(x, chirp_re_.data(), chirp_im_.data(), n_, lanes);
  return x;
}

template <class T>
HalfCircle<T>::HalfCircle(int64_t n) : n_(n) {
  for (int64_t k = 0; k <= n / 2; ++k) {
    double c, s;
    unit_root(k, n, &c, &s);
    re.push_back(static_cast<T>(c));
    im.push_back(static_cast<T>(s));
  }
}

namespace {
constexpr int64_t kFine = 1024;  // roots of the fine table
}  // namespace

template <class T>
void FftGrid<T>::split(int64_t n, int64_t* rows, int64_t* columns) {
  *rows = *columns = 0;
  if (radices_of(n).empty()) return;
  for (int64_t r = static_cast<int64_t>(std::sqrt(static_cast<double>(n))); r >= 128; --r)
    if (n % r == 0) {
      *rows = r;
      *columns = n / r;
      return;
    }
}

template <class T>
FftGrid<T>::FftGrid(int64_t n) {
  split(n, &rows, &columns);
  down = FftPlan<T>::of(rows);
  along = FftPlan<T>::of(columns);
  double c, s;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t l = 0; l < kLanes; ++l) {
      unit_root(r * l % n, n, &c, &s);
      lane_re.push_back(static_cast<T>(c));
      lane_im.push_back(static_cast<T>(s));
    }
  for (int64_t k = 0; k <= n / kFine; ++k) {
    unit_root(k * kFine % n, n, &c, &s);
    coarse_re_.push_back(c);
    coarse_im_.push_back(s);
  }
  for (int64_t k = 0; k < kFine; ++k) {
    unit_root(k, n, &c, &s);
    fine_re_.push_back(c);
    fine_im_.push_back(s);
  }
}

template <class T>
void FftGrid<T>::root(int64_t k, T* re, T* im) const {
  const size_t a = static_cast<size_t>(k / kFine), b = static_cast<size_t>(k % kFine);
  *re = static_cast<T>(coarse_re_[a] * fine_re_[b] - coarse_im_[a] * fine_im_[b]);
  *im = static_cast<T>(coarse_re_[a] * fine_im_[b] + coarse_im_[a] * fine_re_[b]);
}

namespace {

// Guards the lists of all kinds of tables; held while the process forks.
constinit std::mutex g_lists;
[[maybe_unused]] const int g_at_fork =
    pthread_atfork([] { g_lists.lock(); }, [] { g_lists.unlock(); }, [] { g_lists.unlock(); });

// The few lengths used last, of one kind of table. The list is never destroyed: workers may use it
// while the process exits.
template <class P>
std::shared_ptr<const P> recent(int64_t n) {
  constexpr size_t kCount = 32;
  constexpr int64_t kBytes = int64_t{64} << 20;
  static auto& kept = *new std::list<std::shared_ptr<const P>>;
  {
    std::lock_guard lock(g_lists);
    for (auto it = kept.begin(); it != kept.end(); ++it)
      if ((*it)->length() == n) {
        kept.splice(kept.begin(), kept, it);
        return kept.front();
      }
  }
  auto made = std::make_shared<const P>(n);  // without the lock: it may ask for other lengths
  std::lock_guard lock(g_lists);
  kept.push_front(made);
  int64_t bytes = 0;
  size_t count = 0;
  for (auto it = kept.begin(); it != kept.end();) {
    bytes += (*it)->bytes();
    ++count;
    it = count > 1 && (count > kCount || bytes > kBytes) ? kept.erase(it) : std::next(it);
  }
  return made;
}

}  // namespace

template <class T>
std::shared_ptr<const FftPlan<T>> FftPlan<T>::of(int64_t n) {
  return recent<FftPlan>(n);
}
template <class T>
std::shared_ptr<const HalfCircle<T>> HalfCircle<T>::of(int64_t n) {
  return recent<HalfCircle>(n);
}
template <class T>
std::shared_ptr<const FftGrid<T>> FftGrid<T>::of(int64_t n) {
  return recent<FftGrid>(n);
}

template class FftPlan<float>;
template class FftPlan<double>;
template class HalfCircle<float>;
template class HalfCircle<double>;
template class FftGrid<float>;
template class FftGrid<double>;

}  // namespace tessera::cpu
