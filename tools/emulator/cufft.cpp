// Stands in for libcufft: transforms in double, one line after another.
#include <cufftXt.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <map>
#include <vector>

#include "library.h"

namespace emulator {
namespace {

using C = std::complex<double>;

struct Side {
  cudaDataType type;
  long long embed[3], stride, distance;
  bool complex() const { return type == CUDA_C_32F || type == CUDA_C_64F; }
  size_t bytes() const {
    return (type == CUDA_R_64F || type == CUDA_C_64F ? 8u : 4u) * (complex() ? 2u : 1u);
  }
  // Of the element at `place` (rank numbers).
  long long offset(int rank, const long long* place, long long batch) const {
    long long o = 0;
    for (int i = 0; i < rank; ++i) o = o * embed[i] + place[i];
    return batch * distance + o * stride;
  }
};

struct Plan {
  int rank = 0;
  long long n[3], batch = 0;
  Side in, out;
  void* work = nullptr;
  void* stream = nullptr;
};
constexpr size_t kWork = 4096;

std::map<cufftHandle, Plan>& plans() {
  static auto* all = new std::map<cufftHandle, Plan>;
  return *all;
}

constexpr double kPi = 3.14159265358979323846;

void dft(const C* x, long long step, long long n, double sign, C* y);

// Of a large prime number of elements: j k is (j^2 + k^2 - (k - j)^2) / 2, so the transform is a
// convolution, which powers of two compute.
void chirp(const C* x, long long step, long long n, double sign, C* y) {
  long long m = 1;
  while (m < 2 * n) m *= 2;
  const auto size = static_cast<size_t>(m);
  std::vector<C> w(static_cast<size_t>(n)), a(size), b(size), fa(size), fb(size);
  for (long long k = 0; k < n; ++k) {
    const auto i = static_cast<size_t>(k);
    w[i] =
        std::polar(1.0, sign * kPi * static_cast<double>(k * k % (2 * n)) / static_cast<double>(n));
    a[i] = x[k * step] * w[i];
    b[i] = std::conj(w[i]);
    if (k > 0) b[size - i] = b[i];
  }
  dft(a.data(), 1, m, -1, fa.data());
  dft(b.data(), 1, m, -1, fb.data());
  for (size_t i = 0; i < size; ++i) fa[i] *= fb[i];
  dft(fa.data(), 1, m, 1, a.data());
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) y[i] = a[i] * w[i] / static_cast<double>(m);
}

// Of x[0], x[step], ...; by the smallest factor of n.
void dft(const C* x, long long step, long long n, double sign, C* y) {
  if (n == 1) {
    y[0] = x[0];
    return;
  }
  long long p = 2;
  while (p * p <= n && n % p != 0) ++p;
  if (n % p != 0) p = n;
  if (p == n && n > 200) return chirp(x, step, n, sign, y);
  const long long m = n / p;
  std::vector<C> parts(static_cast<size_t>(n));
  for (long long i = 0; i < p; ++i) dft(x + i * step, step * p, m, sign, parts.data() + i * m);
  for (long long k = 0; k < n; ++k) {
    C sum = 0;
    for (long long i = 0; i < p; ++i)
      sum +=
          parts[static_cast<size_t>(i * m + k % m)] *
          std::polar(1.0, sign * 2 * kPi * static_cast<double>(i * k % n) / static_cast<double>(n));
    y[k] = sum;
  }
}

C read(const Side& s, const void* data, long long at) {
  const char* p = static_cast<const char*>(data) + at * static_cast<long long>(s.bytes());
  auto number = [&](int i) {
    return s.type == CUDA_R_64F || s.type == CUDA_C_64F
               ? reinterpret_cast<const double*>(p)[i]
               : static_cast<double>(reinterpret_cast<const float*>(p)[i]);
  };
  return s.complex() ? C(number(0), number(1)) : C(number(0));
}
void write(const Side& s, void* data, long long at, C v) {
  char* p = static_cast<char*>(data) + at * static_cast<long long>(s.bytes());
  auto put = [&](int i, double x) {
    if (s.type == CUDA_R_64F || s.type == CUDA_C_64F)
      reinterpret_cast<double*>(p)[i] = x;
    else
      reinterpret_cast<float*>(p)[i] = static_cast<float>(x);
  };
  put(0, v.real());
  if (s.complex()) put(1, v.imag());
}

// f(place) for all places of a side, whose last dimension has `last` elements.
template <class F>
void each_place(const Plan& p, long long last, const F& f) {
  long long place[3] = {}, sizes[3];
  for (int i = 0; i < p.rank; ++i) sizes[i] = i + 1 == p.rank ? last : p.n[i];
  while (true) {
    f(place);
    int i = p.rank - 1;
    while (i >= 0 && ++place[i] == sizes[i]) place[i--] = 0;
    if (i < 0) return;
  }
}

void run(const Plan& p, void* in, void* out, double sign) {
  const long long last = p.n[p.rank - 1], half = last / 2 + 1;
  const bool from_half = p.in.complex() && !p.out.complex();
  const bool to_half = !p.in.complex();
  std::vector<std::vector<C>> results;
  for (long long b = 0; b < p.batch; ++b) {
    long long numel = 1;
    for (int i = 0; i < p.rank; ++i) numel *= p.n[i];
    std::vector<C> x(static_cast<size_t>(numel));
    auto at = [&](const long long* place) {
      long long o = 0;
      for (int i = 0; i < p.rank; ++i) o = o * p.n[i] + place[i];
      return static_cast<size_t>(o);
    };
    each_place(p, from_half ? half : last, [&](const long long* place) {
      const long long o = p.in.offset(p.rank, place, b);
      x[at(place)] = read(p.in, in, o);
    });
    if (from_half) {
      // The library is free to use such a part or not: whoever leaves one in gets it back.
      const bool middle = last % 2 == 0 && last > 1 && x[static_cast<size_t>(half - 1)].imag() != 0;
      if (x[0].imag() != 0 || middle) x[0] = std::nan("");
      for (long long k = half; k < last; ++k)
        x[static_cast<size_t>(k)] = std::conj(x[static_cast<size_t>(last - k)]);
    }
    for (int i = 0; i < p.rank; ++i) {
      long long step = 1;
      for (int k = i + 1; k < p.rank; ++k) step *= p.n[k];
      std::vector<C> line(static_cast<size_t>(p.n[i]));
      for (long long first = 0; first < numel; ++first) {
        if (first / step % p.n[i] != 0) continue;
        dft(x.data() + first, step, p.n[i], sign, line.data());
        for (long long k = 0; k < p.n[i]; ++k)
          x[static_cast<size_t>(first + k * step)] = line[static_cast<size_t>(k)];
      }
    }
    results.push_back(std::move(x));
  }
  // Of complex numbers to real ones the input is lost, as it may be.
  if (from_half)
    for (long long b = 0; b < p.batch; ++b)
      each_place(p, half, [&](const long long* place) {
        write(p.in, in, p.in.offset(p.rank, place, b), C(std::nan(""), std::nan("")));
      });
  for (long long b = 0; b < p.batch; ++b)
    each_place(p, to_half ? half : last, [&](const long long* place) {
      long long o = 0;
      for (int i = 0; i < p.rank; ++i) o = o * p.n[i] + place[i];
      write(p.out, out, p.out.offset(p.rank, place, b),
            results[static_cast<size_t>(b)][static_cast<size_t>(o)]);
    });
}

bool all_on_device(const Plan& p, const Side& s, long long last, const void* data) {
  long long place[3];
  for (int i = 0; i < p.rank; ++i) place[i] = (i + 1 == p.rank ? last : p.n[i]) - 1;
  const long long end = s.offset(p.rank, place, p.batch - 1) + 1;
  const size_t aligned = 2 * (s.complex() ? s.bytes() / 2 : s.bytes());
  return on_device(data, static_cast<size_t>(end) * s.bytes()) &&
         reinterpret_cast<uintptr_t>(data) % aligned == 0;
}

Plan* find(cufftHandle h) {
  auto it = plans().find(h);
  return it == plans().end() ? nullptr : &it->second;
}

}  // namespace
}  // namespace emulator

using namespace emulator;

cufftResult cufftCreate(cufftHandle* out) {
  static cufftHandle next = 0;
  *out = ++next;
  plans()[*out] = {};
  return CUFFT_SUCCESS;
}
cufftResult cufftDestroy(cufftHandle h) {
  return plans().erase(h) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}
cufftResult cufftSetAutoAllocation(cufftHandle h, int on) {
  return find(h) && !on ? CUFFT_SUCCESS : CUFFT_INVALID_VALUE;
}
cufftResult cufftSetStream(cufftHandle h, cudaStream_t stream) {
  if (!find(h)) return CUFFT_INVALID_PLAN;
  find(h)->stream = stream;
  return CUFFT_SUCCESS;
}
cufftResult cufftSetWorkArea(cufftHandle h, void* work) {
  if (!find(h)) return CUFFT_INVALID_PLAN;
  find(h)->work = work;
  return CUFFT_SUCCESS;
}

cufftResult cufftXtMakePlanMany(cufftHandle h, int rank, long long* n, long long* inembed,
                                long long istride, long long idist, cudaDataType input,
                                long long* onembed, long long ostride, long long odist,
                                cudaDataType output, long long batch, size_t* work,
                                cudaDataType computed) {
  Plan* p = find(h);
  if (!p || rank < 1 || rank > 3 || batch < 1 || istride < 1 || ostride < 1 || idist < 1 ||
      odist < 1 || (computed != CUDA_C_32F && computed != CUDA_C_64F))
    return CUFFT_INVALID_VALUE;
  p->rank = rank;
  p->batch = batch;
  p->in = {input, {}, istride, idist};
  p->out = {output, {}, ostride, odist};
  if ((p->in.complex() ? input : output) != computed) return CUFFT_INVALID_VALUE;
  for (int i = 0; i < rank; ++i) {
    p->n[i] = n[i];
    p->in.embed[i] = inembed[i];
    p->out.embed[i] = onembed[i];
    const long long half = i + 1 == rank ? n[i] / 2 + 1 : n[i];
    if (n[i] < 1 || (i > 0 && inembed[i] < (p->out.complex() ? n[i] : half)) ||
        (i > 0 && onembed[i] < (p->in.complex() ? n[i] : half)))
      return CUFFT_INVALID_SIZE;
  }
  *work = kWork;
  return CUFFT_SUCCESS;
}

cufftResult cufftXtExec(cufftHandle h, void* in, void* out, int direction) {
  Plan* p = find(h);
  if (!p || p->rank == 0 || (direction != CUFFT_FORWARD && direction != CUFFT_INVERSE))
    return CUFFT_INVALID_PLAN;
  if (!p->in.complex() && direction != CUFFT_FORWARD) return CUFFT_INVALID_VALUE;
  if (!p->out.complex() && direction != CUFFT_INVERSE) return CUFFT_INVALID_VALUE;
  const long long last = p->n[p->rank - 1], half = last / 2 + 1;
  if (!on_device(p->work, kWork) || !all_on_device(*p, p->in, p->out.complex() ? last : half, in) ||
      !all_on_device(*p, p->out, p->in.complex() ? last : half, out))
    return CUFFT_INVALID_VALUE;
  if (in == out &&
      std::memcmp(p->in.embed, p->out.embed, sizeof(long long) * static_cast<size_t>(p->rank)))
    return CUFFT_INVALID_VALUE;
  Plan now = *p;
  bool queued = enqueue(now.stream, [now, in, out, direction] {
    std::memset(now.work, 0xff, kWork);
    run(now, in, out, direction);
  });
  return queued ? CUFFT_SUCCESS : CUFFT_EXEC_FAILED;
}
