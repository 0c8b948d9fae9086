// Note [The CPU's reduction]
// The kept elements are cut into units: single elements where the reduced dimensions run along
// memory ("rows" below are leaves of kReduceBlock elements, reduced by lanes), or tiles of kTile
// neighbours where the kept ones do, or where few elements are reduced (a leaf is then kColumnLeaf
// elements of each neighbour, taken one after the other). Which of the two is decided by sizes and
// strides alone. A unit's leaves are combined pairwise by a binary counter over their numbers;
// threads take aligned powers of two of leaves, which are whole subtrees, so splitting the work
// changes no result.
#include "reduce.h"

#include <alloca.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "convert.h"
#include "scratch.h"
#include "strided.h"
#include "tessera/ops/reduce_loops.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kTile = 512;
constexpr int64_t kColumnLeaf = 64;
// So few elements are always taken neighbour by neighbour.
constexpr int64_t kFewReduced = 32;
constexpr int64_t kSerialElements = 64 * 1024;
constexpr int64_t kChunkElements = 64 * 1024;
constexpr size_t kStackScratch = 64 * 1024;

bool is_dense(int ndim, const int64_t* sizes, const int64_t* strides) {
  int64_t expect = 1;
  for (int d = ndim - 1; d >= 0; --d) {
    if (sizes[d] != 1 && strides[d] != expect) return false;
    expect *= sizes[d];
  }
  return true;
}

// The shortest stride of a dimension that is really walked.
int64_t inner_stride(int ndim, const int64_t* sizes, const int64_t* strides) {
  int64_t best = INT64_MAX;
  for (int d = 0; d < ndim; ++d)
    if (sizes[d] > 1 && strides[d] != 0) best = std::min(best, std::abs(strides[d]));
  return best;
}

struct Reducer {
  const ReduceProgram& p;
  const ReduceBody::Loops& loops;
  ConvertFn load;     // memory to registers of the input's class; null when already there
  ConvertFn convert;  // then to the accumulator's class; null when it is
  bool columns;
  bool dense;     // what a leaf reads is dense: no gathering
  int64_t width;  // of a unit
  int64_t leaf_elements;
  int64_t leaves;
  int64_t units;
  size_t item, acc_size;
  OutOfScratch& failure;

  int64_t unit_width(int64_t unit) const { return std::min(width, p.kept_numel - unit * width); }
  size_t leaf_tile() const { return static_cast<size_t>(columns ? width : leaf_elements); }
  // Two tiles of the widest registers (gathered and converted), and one as in memory.
  size_t tile_bytes() const { return leaf_tile() * 8; }
  size_t scratch_bytes(int64_t count) const {
    size_t levels = static_cast<size_t>(std::bit_width(static_cast<uint64_t>(count)) + 2);
    return 3 * tile_bytes() + levels * static_cast<size_t>(width) * 8 + 128;
  }

  // n dense accumulators, from memory that is `dense` or walked by sizes and strides from coords.
  const void* fetch(const char* base, int ndim, const int64_t* sizes, const int64_t* strides,
                    const int64_t* coords, int64_t n, char* tiles) const {
    const void* at = base;
    if (dense) {
      int64_t offset = 0;
      for (int d = 0; d < ndim; ++d) offset += coords[d] * strides[d];
      at = base + offset * static_cast<int64_t>(item);
    } else {
      gather_run(tiles, base, ndim, sizes, strides, coords, n, item);
      at = tiles;
    }
    if (load) {
      load(tiles + tile_bytes(), at, n);
      at = tiles + tile_bytes();
    }
    if (convert) {
      convert(tiles + 2 * tile_bytes(), at, n);
      at = tiles + 2 * tile_bytes();
    }
    return at;
  }

  void set_init(void* acc, int64_t n) const {
    if (acc_size == 1) {
      std::memset(acc, loops.init.b8, static_cast<size_t>(n));
    } else if (acc_size == 4) {
      std::fill_n(static_cast<float*>(acc), n, loops.init.f32);
    } else {
      std::fill_n(static_cast<int64_t*>(acc), n, loops.init.i64);
    }
  }

  void leaf(int64_t unit, int64_t number, void* acc, char* tiles) const {
    int64_t kept[kMaxDims], reduced[kMaxDims];
    int64_t n = unit_width(unit);
    unravel(unit * width, p.kept_ndim, p.kept_sizes, kept);
    int64_t first = number * leaf_elements;
    int64_t count = std::min(leaf_elements, p.reduced_numel - first);
    unravel(first, p.reduced_ndim, p.reduced_sizes, reduced);
    const char* base = static_cast<const char*>(p.in);
    if (!columns) {
      int64_t offset = 0;
      for (int d = 0; d < p.kept_ndim; ++d) offset += kept[d] * p.in_kept_strides[d];
      base += offset * static_cast<int64_t>(item);
      const void* in =
          fetch(base, p.reduced_ndim, p.reduced_sizes, p.in_reduced_strides, reduced, count, tiles);
      return loops.run(acc, in, count);
    }
    set_init(acc, n);
    for (int64_t r = 0; r < count; ++r) {
      int64_t offset = 0;
      for (int d = 0; d < p.reduced_ndim; ++d) offset += reduced[d] * p.in_reduced_strides[d];
      const void* in = fetch(base + offset * static_cast<int64_t>(item), p.kept_ndim, p.kept_sizes,
                             p.in_kept_strides, kept, n, tiles);
      loops.rows(acc, in, n);
      for (int d = p.reduced_ndim - 1; d >= 0; --d) {
        if (++reduced[d] < p.reduced_sizes[d]) break;
        reduced[d] = 0;
      }
    }
  }

  // Combines count results, made in order by make(i, acc), pairwise; the last one stays in acc.
  template <class Make>
  void tree(int64_t count, int64_t n, char* stack, void* acc, Make make) const {
    const int64_t row = width * 8;
    int depth = 0;
    for (int64_t i = 0; i < count; ++i) {
      make(i, stack + depth * row);
      ++depth;
      // Number i + 1 ends as many complete pairs as it has trailing zero bits.
      for (uint64_t done = static_cast<uint64_t>(i) + 1; (done & 1) == 0; done >>= 1) {
        loops.merge(stack + (depth - 2) * row, stack + (depth - 1) * row, n);
        --depth;
      }
    }
    for (; depth > 1; --depth) loops.merge(stack + (depth - 2) * row, stack + (depth - 1) * row, n);
    std::memcpy(acc, stack, static_cast<size_t>(n) * acc_size);
  }

  void finish(int64_t unit, void* acc, char* tiles) const {
    int64_t n = unit_width(unit);
    loops.finish(acc, n, p.reduced_numel);
    const ConvertTable& c = converts();
    RegClass to = reg_class(p.out_dtype);
    const void* from = acc;
    if (to != p.cls) {
      c.convert[static_cast<int>(p.cls)][static_cast<int>(to)](tiles, acc, n);
      from = tiles;
    }
    char* out =
        static_cast<char*>(p.out) + unit * width * static_cast<int64_t>(itemsize(p.out_dtype));
    c.store[static_cast<int>(p.out_dtype)](out, from, n);
  }

  template <class F>
  void with_scratch(int64_t count, F f) const {
    size_t bytes = scratch_bytes(count);
    bool on_stack = bytes <= kStackScratch;
    Scratch heap(on_stack ? 0 : bytes, failure);
    void* memory = on_stack ? alloca(bytes) : heap.get();
    if (!memory) return;
    char* aligned = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(memory) + 63) & ~63ull);
    f(aligned, aligned + 3 * tile_bytes());
  }

  // Whole units [begin, end).
  void run_units(int64_t begin, int64_t end) const {
    with_scratch(leaves, [&](char* tiles, char* stack) {
      for (int64_t u = begin; u < end; ++u) {
        if (p.reduced_numel == 0)
          set_init(stack, unit_width(u));
        else
          tree(leaves, unit_width(u), stack, stack,
               [&](int64_t i, void* acc) { leaf(u, i, acc, tiles); });
        finish(u, stack, tiles);
      }
    });
  }

  // Pieces [begin, end) of chunks of leaves, into partials[unit][chunk].
  void run_chunks(int64_t begin, int64_t end, int64_t chunks, int64_t chunk_leaves,
                  char* partials) const {
    with_scratch(chunk_leaves, [&](char* tiles, char* stack) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t unit = i / chunks, first = i % chunks * chunk_leaves;
        tree(std::min(chunk_leaves, leaves - first), unit_width(unit), stack,
             partials + i * width * 8,
             [&](int64_t k, void* acc) { leaf(unit, first + k, acc, tiles); });
      }
    });
  }

  void join_chunks(int64_t chunks, const char* partials) const {
    with_scratch(chunks, [&](char* tiles, char* stack) {
      for (int64_t u = 0; u < units; ++u) {
        int64_t n = unit_width(u);
        tree(chunks, n, stack, stack, [&](int64_t i, void* acc) {
          std::memcpy(acc, partials + (u * chunks + i) * width * 8,
                      static_cast<size_t>(n) * acc_size);
        });
        finish(u, stack, tiles);
      }
    });
  }
};

}  // namespace

Status run_reduce(Exec, const ReduceProgram* program) noexcept {
  const ReduceProgram& p = *program;
  if (p.kept_numel == 0) return {};
  const ReduceBody::Loops& loops = p.body->loops[g_isa][static_cast<int>(p.cls)];
  if (!loops.run) return {Code::kUnsupported, "this reduction is not defined on this dtype"};
  RegClass in_cls = reg_class(p.in_dtype);
  OutOfScratch failure;
  Reducer r{.p = p, .loops = loops, .failure = failure};
  r.load = is_register_form(p.in_dtype) ? nullptr : converts().load[static_cast<int>(p.in_dtype)];
  r.convert = in_cls == p.cls
                  ? nullptr
                  : converts().convert[static_cast<int>(in_cls)][static_cast<int>(p.cls)];
  r.item = itemsize(p.in_dtype);
  r.acc_size = reg_size(p.cls);
  r.columns =
      p.kept_numel > 1 && (p.reduced_numel <= kFewReduced ||
                           inner_stride(p.kept_ndim, p.kept_sizes, p.in_kept_strides) <
                               inner_stride(p.reduced_ndim, p.reduced_sizes, p.in_reduced_strides));
  r.width = r.columns ? std::min(kTile, p.kept_numel) : 1;
  r.leaf_elements = r.columns ? kColumnLeaf : loops::kReduceBlock;
  if (!r.columns)
    r.leaf_elements = std::min(r.leaf_elements, std::max<int64_t>(p.reduced_numel, 1));
  r.leaves = (p.reduced_numel + r.leaf_elements - 1) / r.leaf_elements;
  r.units = (p.kept_numel + r.width - 1) / r.width;
  r.dense = r.columns ? is_dense(p.kept_ndim, p.kept_sizes, p.in_kept_strides)
                      : is_dense(p.reduced_ndim, p.reduced_sizes, p.in_reduced_strides);
  int64_t total = p.kept_numel * p.reduced_numel;
  int64_t unit_elements = r.width * p.reduced_numel;
  if (total <= kSerialElements || num_threads() == 1 || in_parallel()) {
    r.run_units(0, r.units);
    return failure.status("reduction");
  }
  int64_t chunk_leaves = static_cast<int64_t>(std::bit_ceil(
      static_cast<uint64_t>(std::max<int64_t>(1, kChunkElements / (r.leaf_elements * r.width)))));
  int64_t chunks = (r.leaves + chunk_leaves - 1) / chunk_leaves;
  if (r.units >= 4 * num_threads() || chunks == 1) {
    int64_t grain = std::max<int64_t>(1, kSerialElements / 2 / std::max<int64_t>(unit_elements, 1));
    parallel_for(0, r.units, grain, [&](int64_t b, int64_t e) { r.run_units(b, e); });
    return failure.status("reduction");
  }
  size_t bytes = static_cast<size_t>(r.units * chunks * r.width) * 8;
  Scratch scratch(bytes, failure);
  char* partials = static_cast<char*>(scratch.get());
  if (!partials) return failure.status("reduction");
  parallel_for(0, r.units * chunks, 1,
               [&](int64_t b, int64_t e) { r.run_chunks(b, e, chunks, chunk_leaves, partials); });
  r.join_chunks(chunks, partials);
  return failure.status("reduction");
}

}  // namespace tessera::cpu
