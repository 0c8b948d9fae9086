#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "reduce_text.h"

namespace tessera::cuda {
namespace {

struct Dims {
  int n = 0;
  int64_t sizes[kMaxDims], strides[kMaxDims];
};

// Without dimensions of one element, neighbours joined where they are one run.
Dims simplify(int ndim, const int64_t* sizes, const int64_t* strides, bool any_order) {
  Dims d;
  for (int i = 0; i < ndim; ++i) {
    if (sizes[i] == 1) continue;
    d.sizes[d.n] = sizes[i];
    d.strides[d.n++] = strides[i];
  }
  // What is reduced may be walked in the order it lies in memory.
  if (any_order)
    for (int i = 1; i < d.n; ++i)
      for (int j = i; j > 0 && std::abs(d.strides[j - 1]) < std::abs(d.strides[j]); --j) {
        std::swap(d.strides[j - 1], d.strides[j]);
        std::swap(d.sizes[j - 1], d.sizes[j]);
      }
  Dims out;
  for (int i = 0; i < d.n; ++i) {
    if (out.n > 0 && out.strides[out.n - 1] == d.strides[i] * d.sizes[i]) {
      out.sizes[out.n - 1] *= d.sizes[i];
      out.strides[out.n - 1] = d.strides[i];
    } else {
      out.sizes[out.n] = d.sizes[i];
      out.strides[out.n++] = d.strides[i];
    }
  }
  return out;
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

bool all_multiples(const Dims& d, int count, int vec) {
  for (int i = 0; i < count; ++i)
    if (d.strides[i] % vec != 0) return false;
  return true;
}

void split_rows(ReducePass* p) {
  int64_t need = ceil_div(p->reduced_numel, p->vec);
  p->group = 1;
  if (need > 256) {
    p->group = kReduceThreads;
  } else {
    while (p->group < 32 && p->group * 2 <= need) p->group *= 2;
  }
  p->chunk = std::max<int64_t>(p->reduced_numel, 1);
  p->splits = 1;
  int64_t line = int64_t{kReduceThreads} * p->vec;
  if (p->group == kReduceThreads && p->kept_numel < 512 && need > kReduceThreads * 4) {
    int64_t splits = std::min(ceil_div(need, kReduceThreads * 4), ceil_div(1024, p->kept_numel));
    p->chunk = ceil_div(ceil_div(p->reduced_numel, splits), line) * line;
    p->splits = ceil_div(p->reduced_numel, p->chunk);
  }
}

void split_columns(ReducePass* p) {
  int64_t across = ceil_div(p->kept_sizes[p->kept_ndim - 1], p->vec);
  p->group = 1;
  while (p->group < 32 && p->group < across) p->group *= 2;
  int64_t lines = kReduceThreads / p->group;
  p->chunk = std::max<int64_t>(p->reduced_numel, 1);
  p->splits = 1;
  int64_t blocks = p->blocks();
  if (blocks < 512 && p->reduced_numel > lines * 8) {
    int64_t splits = std::min(ceil_div(p->reduced_numel, lines * 8), ceil_div(1024, blocks));
    p->chunk = ceil_div(p->reduced_numel, splits);
    p->splits = ceil_div(p->reduced_numel, p->chunk);
  }
}

// Note [A reduction of any form]
uint64_t form_of(const ReducePass& p) {
  return static_cast<uint64_t>(p.vec) | static_cast<uint64_t>(p.group) << 8 |
         static_cast<uint64_t>(p.kept_ndim) << 24 | static_cast<uint64_t>(p.reduced_ndim) << 32 |
         uint64_t{p.columns} << 40 | uint64_t{p.from_partials} << 41 |
         uint64_t{p.to_partials} << 42;
}

Hasher key_of_body(const ReducePass& p, uint64_t head) {
  Hasher h(head);
  h.add(reinterpret_cast<uintptr_t>(p.body));
  h.add(reinterpret_cast<uintptr_t>(p.body->combine_text));
  h.add(reinterpret_cast<uintptr_t>(p.body->finish_text));
  return h;
}

}  // namespace

int64_t ReducePass::blocks() const {
  if (!columns) return ceil_div(kept_numel * splits, kReduceThreads / group);
  int64_t across = kept_sizes[kept_ndim - 1];
  return kept_numel / across * ceil_div(across, int64_t{group} * vec);
}

bool plan_reduce(const ReduceProgram& r, ReducePass* p) {
  Dims kept = simplify(r.kept_ndim, r.kept_sizes, r.in_kept_strides, false);
  Dims reduced = simplify(r.reduced_ndim, r.reduced_sizes, r.in_reduced_strides, true);
  if (kept.n > kReduceMaxDims || reduced.n > kReduceMaxDims) return false;
  *p = {};
  p->body = r.body;
  p->cls = r.cls;
  p->in_dtype = r.in_dtype;
  p->out_dtype = r.out_dtype;
  p->kept_ndim = kept.n;
  p->reduced_ndim = reduced.n;
  std::copy_n(kept.sizes, kept.n, p->kept_sizes);
  std::copy_n(kept.strides, kept.n, p->kept_strides);
  std::copy_n(reduced.sizes, reduced.n, p->reduced_sizes);
  std::copy_n(reduced.strides, reduced.n, p->reduced_strides);
  p->kept_numel = r.kept_numel;
  p->reduced_numel = p->count = r.reduced_numel;
  int64_t far = r.reduced_numel;
  for (int i = 0; i < reduced.n; ++i)
    far = std::max(far, reduced.sizes[i] * std::abs(reduced.strides[i]) * reduced.n);
  p->wide = far > (int64_t{1} << 30);
  int vec = static_cast<int>(std::min<size_t>(16 / itemsize(r.in_dtype), kReduceMostVec));
  bool aligned = reinterpret_cast<uintptr_t>(r.in) % (vec * itemsize(r.in_dtype)) == 0;
  bool run = reduced.n == 0 || reduced.strides[reduced.n - 1] == 1;
  p->columns = kept.n > 0 && kept.strides[kept.n - 1] == 1 && !run && r.reduced_numel > 0;
  p->vec = 1;
  if (p->columns) {
    if (kept.sizes[kept.n - 1] % vec == 0 && all_multiples(kept, kept.n - 1, vec) &&
        all_multiples(reduced, reduced.n, vec))
      p->vec = vec;
    p->vector_loads = p->vec > 1 && aligned;
    split_columns(p);
  } else {
    if (run && reduced.n == 1) {
      p->vec = vec;
      p->vector_loads = aligned && all_multiples(kept, kept.n, vec);
    }
    split_rows(p);
  }
  p->to_partials = p->splits > 1;
  return true;
}

ReducePass second_pass(const ReducePass& first) {
  ReducePass p{};
  p.body = first.body;
  p.cls = first.cls;
  p.in_dtype = first.in_dtype;
  p.out_dtype = first.out_dtype;
  p.from_partials = true;
  p.columns = first.columns;
  p.vec = 1;
  p.kept_ndim = p.reduced_ndim = 1;
  p.kept_numel = p.kept_sizes[0] = first.kept_numel;
  p.reduced_numel = p.reduced_sizes[0] = first.splits;
  p.count = first.count;
  p.kept_strides[0] = first.columns ? 1 : first.splits;
  p.reduced_strides[0] = first.columns ? first.kept_numel : 1;
  // One pass is enough for at most 1024 partial results.
  if (p.columns) {
    split_columns(&p);
  } else {
    split_rows(&p);
  }
  p.splits = 1;
  p.chunk = std::max<int64_t>(p.reduced_numel, 1);
  return p;
}

bool fits_in_batch(const ReducePass& p) {
  return !p.columns && p.kept_numel == 1 && p.reduced_numel > 0 &&
         (p.reduced_ndim == 0 || (p.reduced_ndim == 1 && p.reduced_strides[0] == 1));
}

Hasher reduce_key(const ReducePass& p, uint64_t device) {
  Hasher h = key_of_body(p, device << 8 | 2);
  h.add(static_cast<uint64_t>(p.cls) | static_cast<uint64_t>(p.in_dtype) << 4 |
        static_cast<uint64_t>(p.out_dtype) << 8 | uint64_t{p.columns} << 12 |
        uint64_t{p.from_partials} << 13 | uint64_t{p.to_partials} << 14 | uint64_t{p.wide} << 15 |
        uint64_t{p.vector_loads} << 16 | static_cast<uint64_t>(p.vec) << 20 |
        static_cast<uint64_t>(p.group) << 24 | static_cast<uint64_t>(p.kept_ndim) << 40 |
        static_cast<uint64_t>(p.reduced_ndim) << 48);
  return h;
}

Hash128 general_reduce_key(const ReducePass& p, uint64_t device) {
  Hasher h = key_of_body(p, device << 8 | 12);
  h.add(static_cast<uint64_t>(p.cls) | static_cast<uint64_t>(p.in_dtype) << 4 |
        static_cast<uint64_t>(p.out_dtype) << 8);
  return h.finish();
}

void reduce_params(const ReducePass& p, const void* in, void* out, uint64_t* words) {
  uint64_t head[] = {reinterpret_cast<uintptr_t>(in),     reinterpret_cast<uintptr_t>(out),
                     static_cast<uint64_t>(p.kept_numel), static_cast<uint64_t>(p.reduced_numel),
                     static_cast<uint64_t>(p.chunk),      static_cast<uint64_t>(p.splits),
                     static_cast<uint64_t>(p.count),      form_of(p)};
  static_assert(std::size(head) == kReduceHead);
  std::memcpy(words, head, sizeof head);
  auto put = [&](int at, const int64_t* values) {
    for (int i = 0; i < kReduceMaxDims; ++i) words[at + i] = static_cast<uint64_t>(values[i]);
  };
  put(8, p.kept_sizes);
  put(8 + kReduceMaxDims, p.kept_strides);
  put(8 + 2 * kReduceMaxDims, p.reduced_sizes);
  put(8 + 3 * kReduceMaxDims, p.reduced_strides);
}

}  // namespace tessera::cuda
