// Note [The CPU's reduction]
// What is reduced is walked in the order it lies in memory. The results are made in units:
//   rows     where the reduced elements are the denser ones: a unit is one result, or a few where
//            they are short. Its leaves are at most kReduceBlock elements of one dense run, reduced
//            by lanes; runs that are short or strided are gathered, kReduceBlock elements a leaf.
//   columns  where neighbouring results are the denser ones, or few elements are reduced: a unit is
//            a run of results. A leaf is kColumnLeaf elements of each, taken one after the other.
// Which of the two, and what is a leaf, follow from sizes and strides alone; how many results are
// in a unit does not change any of them. A result's leaves are combined pairwise by a binary
// counter over their numbers; threads take aligned powers of two of leaves, which are whole
// subtrees, so splitting the work changes no result.
#include "reduce_tree.h"

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

constexpr int64_t kColumnLeaf = 64;
// So few elements are always taken neighbour by neighbour.
constexpr int64_t kFewReduced = 32;
// Runs from this length on are leaves of their own where they are not one with the next.
constexpr int64_t kLongRun = 256;
// Results of a unit of columns: their accumulators stay in the first-level cache.
constexpr int64_t kColumnBytes = 16 * 1024;
constexpr int64_t kGatheredColumns = 512;
// Rows of columns that are gathered or converted at a time.
constexpr int64_t kRowsAtOnce = 8;
// Leaves that are read where they lie, an equal stride apart, are reduced so many at a time.
constexpr int64_t kLeavesAtOnce = 16;
constexpr int64_t kSerialElements = 64 * 1024;
constexpr int64_t kChunkElements = 64 * 1024;
constexpr size_t kStackScratch = 96 * 1024;

struct Walk {
  int n = 0;
  int64_t sizes[kMaxDims], strides[kMaxDims];

  int64_t numel() const {
    int64_t all = 1;
    for (int d = 0; d < n; ++d) all *= sizes[d];
    return all;
  }
  // Of point number `linear` in row-major order of the first `dims` dimensions.
  int64_t offset(int64_t linear, int dims) const {
    int64_t at = 0;
    for (int d = dims - 1; d > 0; --d) {
      at += linear % sizes[d] * strides[d];
      linear /= sizes[d];
    }
    return dims > 0 ? at + linear * strides[0] : 0;
  }
  // The shortest stride of a dimension that is really walked.
  int64_t shortest() const {
    int64_t best = INT64_MAX;
    for (int d = 0; d < n; ++d)
      if (strides[d] != 0) best = std::min(best, std::abs(strides[d]));
    return best;
  }
};

// Without dimensions of one element, neighbours joined where they are one run; with any_order as
// they lie in memory, repeated elements outermost.
Walk simplify(int ndim, const int64_t* sizes, const int64_t* strides, bool any_order) {
  Walk w;
  for (int i = 0; i < ndim; ++i) {
    if (sizes[i] == 1) continue;
    int j = w.n++;
    auto before = [&](int64_t s) { return std::abs(s) - 1; };
    if (any_order)
      for (; j > 0 && static_cast<uint64_t>(before(w.strides[j - 1])) <
                          static_cast<uint64_t>(before(strides[i]));
           --j) {
        w.strides[j] = w.strides[j - 1];
        w.sizes[j] = w.sizes[j - 1];
      }
    w.strides[j] = strides[i];
    w.sizes[j] = sizes[i];
  }
  int n = 0;
  for (int i = 0; i < w.n; ++i) {
    if (n > 0 && w.strides[n - 1] == w.strides[i] * w.sizes[i]) {
      w.sizes[n - 1] *= w.sizes[i];
      w.strides[n - 1] = w.strides[i];
    } else {
      w.sizes[n] = w.sizes[i];
      w.strides[n++] = w.strides[i];
    }
  }
  w.n = n;
  return w;
}

struct Reducer {
  const Reduction& p;
  OutOfScratch& failure;
  const ReduceBody::Loops& loops;
  Walk kept, reduced;
  int64_t kept_numel, reduced_numel;
  ConvertFn load = nullptr;     // memory to registers of the input's class; null when already there
  ConvertFn convert = nullptr;  // then to the accumulator's class; null when it is
  int64_t item;
  int64_t reg_bytes;  // of an element at its widest

  bool columns = false;
  // The dimension a unit runs along, its stride in memory and the one in the results.
  int along = -1;
  int64_t along_size = 1, along_stride = 1, out_step = 1;
  int64_t width = 1;     // results of a unit, at most
  int64_t per_line = 1;  // units along that dimension
  int64_t units = 1;
  // Rows: leaves of a run, and the run's length; zero where leaves are gathered.
  int64_t run = 0, leaves_per_run = 1;
  int64_t leaf_size;
  int64_t leaves;
  int64_t tile_elements;

  Reducer(const Reduction& r, OutOfScratch& f)
      : p(r),
        failure(f),
        loops(*r.loops),
        kept(simplify(r.kept_ndim, r.kept_sizes, r.kept_strides, false)),
        reduced(simplify(r.reduced_ndim, r.reduced_sizes, r.reduced_strides, true)),
        kept_numel(kept.numel()),
        reduced_numel(reduced.numel()),
        item(static_cast<int64_t>(itemsize(r.in_dtype))) {
    const RegClass in_cls = reg_class(p.in_dtype);
    const ConvertTable& c = converts();
    if (!is_register_form(p.in_dtype)) load = c.load[static_cast<int>(p.in_dtype)];
    if (in_cls != p.cls)
      convert = p.element_dtype ? c.conversion(in_cls, *p.element_dtype)
                                : c.convert[static_cast<int>(in_cls)][static_cast<int>(p.cls)];
    reg_bytes = static_cast<int64_t>(std::max(reg_size(in_cls), reg_size(p.cls)));
    columns =
        kept_numel > 1 && (reduced_numel <= kFewReduced || kept.shortest() < reduced.shortest());
    columns ? plan_columns() : plan_rows();
  }

  bool ready() const { return !load && !convert; }

  void choose_along(int d) {
    along = d;
    along_size = kept.sizes[d];
    along_stride = kept.strides[d];
    out_step = 1;
    for (int e = d + 1; e < kept.n; ++e) out_step *= kept.sizes[e];
  }

  void plan_columns() {
    int best = kept.n - 1;
    for (int d = kept.n - 1; d >= 0; --d)
      if (kept.strides[d] != 0 &&
          (kept.strides[best] == 0 || std::abs(kept.strides[d]) < std::abs(kept.strides[best])))
        best = d;
    if (kept.sizes[best] < 16)
      for (int d = 0; d < kept.n; ++d)
        if (kept.sizes[d] > kept.sizes[best]) best = d;
    choose_along(best);
    const bool direct = along_stride == 1 && ready();
    width = std::min(along_size,
                     direct ? kColumnBytes / static_cast<int64_t>(p.acc_bytes) : kGatheredColumns);
    leaf_size = kColumnLeaf;
    leaves = (reduced_numel + leaf_size - 1) / leaf_size;
    tile_elements = std::max(width, direct ? 0 : width * rows_at_once());
    per_line = (along_size + width - 1) / width;
    units = kept_numel / along_size * per_line;
  }
  // Few reduced elements are gathered together: a transposed block is moved in one go.
  int64_t rows_at_once() const {
    return reduced_numel <= kFewReduced ? reduced_numel : kRowsAtOnce;
  }

  void plan_rows() {
    const int last = reduced.n - 1;
    const bool dense = reduced.n > 0 && reduced.strides[last] == 1;
    leaf_size = loops::kReduceBlock;
    if (dense && (reduced.n == 1 || reduced.sizes[last] >= kLongRun)) {
      run = reduced.sizes[last];
      leaves_per_run = (run + leaf_size - 1) / leaf_size;
      leaves = run > 0 ? reduced_numel / run * leaves_per_run : 0;
    } else {
      leaves = (reduced_numel + leaf_size - 1) / leaf_size;
    }
    leaf_size = std::min(leaf_size, std::max<int64_t>(reduced_numel, 1));
    if (kept.n > 0) {
      choose_along(kept.n - 1);
      // A result of one leaf takes neighbours along: as many as fill a leaf, and a few where that
      // needs no tile, as long as every thread has units enough.
      if (leaves == 1) {
        width = loops::kReduceBlock / leaf_size;
        if (in_place())
          width = std::max(width, std::min(kLeavesAtOnce, kept_numel / (8 * num_threads())));
        width = std::min(along_size, width);
      }
      per_line = (along_size + width - 1) / width;
      units = kept_numel / along_size * per_line;
    }
    tile_elements = in_place() ? 1 : std::max(leaf_size * width, int64_t{1});
  }
  // Are leaves of rows reduced where they lie in memory?
  bool in_place() const { return run > 0 && ready() && !p.make; }

  int64_t unit_width(int64_t unit) const {
    return std::min(width, along_size - unit % per_line * width);
  }
  // Where a unit's first result lies: in the input, and its number among the results.
  int64_t unit_offset(int64_t unit, int64_t& out) const {
    int64_t line = unit / per_line, at = unit % per_line * width;
    int64_t offset = at * along_stride, scale = 1;
    out = 0;
    for (int d = kept.n - 1; d >= 0; --d) {
      if (d == along) {
        out += at * scale;
      } else {
        const int64_t i = line % kept.sizes[d];
        line /= kept.sizes[d];
        offset += i * kept.strides[d];
        out += i * scale;
      }
      scale *= kept.sizes[d];
    }
    return offset;
  }
  const char* address(int64_t offset) const {
    return static_cast<const char*>(p.in) + offset * item;
  }

  int64_t leaf_count(int64_t leaf) const {
    if (columns || run == 0) return std::min(leaf_size, reduced_numel - leaf * leaf_size);
    return std::min(loops::kReduceBlock, run - leaf % leaves_per_run * loops::kReduceBlock);
  }

  // Tiles: as in memory, as registers of the input's class, as the loops want it.
  char* tile(char* tiles, int which) const { return tiles + which * tile_bytes(); }
  int64_t tile_bytes() const { return (tile_elements * reg_bytes + 63) & ~int64_t{63}; }
  // n dense elements at `from` into place `at` of the tiles; where they are to be found then.
  const char* to_registers(const char* from, int64_t n, int64_t at, char* tiles) const {
    if (load) {
      char* to = tile(tiles, 1) + at * static_cast<int64_t>(reg_size(reg_class(p.in_dtype)));
      load(to, from, n);
      from = to;
    }
    if (convert) {
      char* to = tile(tiles, 2) + at * static_cast<int64_t>(reg_size(p.cls));
      convert(to, from, n);
      from = to;
    }
    return from;
  }

  void column_leaf(int64_t offset, int64_t n, int64_t leaf, void* acc, char* tiles) const {
    const int last = reduced.n - 1;
    int64_t first = leaf * leaf_size, left = leaf_count(leaf), seen = 0;
    while (left > 0) {
      // Rows along the last reduced dimension are a constant stride apart.
      const int64_t size = last >= 0 ? reduced.sizes[last] : 1;
      const int64_t stride = last >= 0 ? reduced.strides[last] : 0;
      const int64_t rows = std::min(left, size - first % size);
      const char* at = address(offset + reduced.offset(first, reduced.n));
      if (along_stride == 1 && ready()) {
        loops.rows(acc, at, n, rows, stride, seen);
      } else {
        for (int64_t r = 0; r < rows; r += rows_at_once()) {
          const int64_t m = std::min(rows_at_once(), rows - r);
          const char* from = at + r * stride * item;
          const void* in = tiles;
          if (along_stride == 1) {
            for (int64_t k = m - 1; k >= 0; --k)
              in = to_registers(from + k * stride * item, n, k * n, tiles);
          } else {
            gather_block(tiles, from, m, n, stride, along_stride, static_cast<size_t>(item));
            in = to_registers(tiles, m * n, 0, tiles);
          }
          loops.rows(acc, in, n, m, n, seen + r);
        }
      }
      first += rows;
      left -= rows;
      seen += rows;
    }
  }

  void row_leaf(int64_t offset, int64_t n, int64_t leaf, void* acc, char* tiles) const {
    const int64_t count = leaf_count(leaf);
    if (p.make) {
      const int64_t at = offset + leaf % leaves_per_run * loops::kReduceBlock;
      if (along_stride == count)
        p.make(p.make_ctx, at, count * n, tiles);
      else
        for (int64_t c = 0; c < n; ++c)
          p.make(p.make_ctx, at + c * along_stride, count, tiles + c * count * item);
      return loops.run(acc, to_registers(tiles, count * n, 0, tiles), count, n, count);
    }
    if (run > 0) {
      const char* at = address(offset + reduced.offset(leaf / leaves_per_run, reduced.n - 1) +
                               leaf % leaves_per_run * loops::kReduceBlock);
      if (ready()) return loops.run(acc, at, count, n, along_stride);
      const char* in = nullptr;
      if (along_stride == count)
        in = to_registers(at, count * n, 0, tiles);
      else
        for (int64_t c = n - 1; c >= 0; --c)
          in = to_registers(at + c * along_stride * item, count, c * count, tiles);
      return loops.run(acc, in, count, n, count);
    }
    int64_t coords[kMaxDims];
    unravel(leaf * leaf_size, reduced.n, reduced.sizes, coords);
    for (int64_t c = 0; c < n; ++c)
      gather_run(tiles + c * count * item, address(offset + c * along_stride), reduced.n,
                 reduced.sizes, reduced.strides, coords, count, static_cast<size_t>(item));
    loops.run(acc, to_registers(tiles, count * n, 0, tiles), count, n, count);
  }

  // How many leaves from number `leaf` on are equally long and an equal stride apart: at most
  // kLeavesAtOnce.
  int64_t equal_leaves(int64_t leaf, int64_t left) const {
    const int64_t runs = reduced.n > 1 ? reduced.sizes[reduced.n - 2] : 1;
    const int64_t together =
        leaves_per_run == 1
            ? runs - leaf % runs
            : std::max<int64_t>(1, run / loops::kReduceBlock - leaf % leaves_per_run);
    return std::min({left, together, kLeavesAtOnce});
  }
  bool batches() const { return !columns && width == 1 && in_place() && leaves > 1; }
  void several_leaves(int64_t offset, int64_t leaf, int64_t count, void* acc) const {
    const char* at = address(offset + reduced.offset(leaf / leaves_per_run, reduced.n - 1) +
                             leaf % leaves_per_run * loops::kReduceBlock);
    loops.run(acc, at, leaf_count(leaf), count,
              leaves_per_run == 1 ? reduced.strides[reduced.n - 2] : loops::kReduceBlock);
  }
  // Number i of n accumulators.
  void take_one(void* to, const char* acc, int64_t i, int64_t n) const {
    const size_t part = p.acc_bytes / static_cast<size_t>(p.acc_parts);
    for (int64_t k = 0; k < p.acc_parts; ++k)
      std::memcpy(static_cast<char*>(to) + static_cast<size_t>(k) * part,
                  acc + static_cast<size_t>(k * n + i) * part, part);
  }

  // Combines count results, made in order by make(i, acc), which returns how many elements are in
  // them, pairwise; the last one stays in acc.
  template <class Make>
  int64_t tree(int64_t count, int64_t n, char* stack, void* acc, Make make) const {
    const int64_t row = stack_row();
    int64_t seen[66];
    int depth = 0;
    auto join = [&] {
      loops.merge(stack + (depth - 2) * row, stack + (depth - 1) * row, n, seen[depth - 2],
                  seen[depth - 1]);
      seen[depth - 2] += seen[depth - 1];
      --depth;
    };
    for (int64_t i = 0; i < count; ++i) {
      seen[depth] = make(i, stack + depth * row);
      ++depth;
      // Number i + 1 ends as many complete pairs as it has trailing zero bits.
      for (uint64_t done = static_cast<uint64_t>(i) + 1; (done & 1) == 0; done >>= 1) join();
    }
    while (depth > 1) join();
    if (acc != stack) std::memcpy(acc, stack, static_cast<size_t>(n) * p.acc_bytes);
    return seen[0];
  }

  int64_t stack_row() const {
    return (width * static_cast<int64_t>(p.acc_bytes) + 63) & ~int64_t{63};
  }
  size_t scratch_bytes(int64_t count) const {
    int64_t levels = std::bit_width(static_cast<uint64_t>(count)) + 1;
    int64_t tiles = std::max(3 * tile_bytes(), width * 16 + 64);
    return static_cast<size_t>(tiles + levels * stack_row() + 64);
  }
  template <class F>
  void with_scratch(int64_t count, F f) const {
    size_t bytes = scratch_bytes(count);
    bool on_stack = bytes <= kStackScratch;
    Scratch heap(on_stack ? 0 : bytes, failure);
    void* memory = on_stack ? alloca(bytes) : heap.get();
    if (!memory) return;
    char* tiles = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(memory) + 63) & ~63ull);
    f(tiles, tiles + std::max(3 * tile_bytes(), (width * 16 + 63) & ~int64_t{63}));
  }

  int64_t reduce_leaves(int64_t offset, int64_t n, int64_t first, int64_t count, char* stack,
                        void* acc, char* tiles) const {
    if (batches()) {
      alignas(64) char batch[kLeavesAtOnce * 16];
      int64_t from = 0, end = 0, length = 0;
      return tree(count, 1, stack, acc, [&](int64_t i, void* to) {
        if (i == end) {
          from = i;
          end = i + equal_leaves(first + i, count - i);
          length = leaf_count(first + i);
          several_leaves(offset, first + i, end - from, batch);
        }
        take_one(to, batch, i - from, end - from);
        return length;
      });
    }
    return tree(count, n, stack, acc, [&](int64_t i, void* to) {
      columns ? column_leaf(offset, n, first + i, to, tiles)
              : row_leaf(offset, n, first + i, to, tiles);
      return leaf_count(first + i);
    });
  }

  // Whole units [begin, end).
  void run_units(int64_t begin, int64_t end) const {
    with_scratch(leaves, [&](char* tiles, char* stack) {
      for (int64_t u = begin; u < end; ++u) {
        const int64_t n = unit_width(u);
        int64_t out, offset = unit_offset(u, out);
        if (reduced_numel == 0)
          loops.rows(stack, tiles, n, 0, 0, 0);
        else
          reduce_leaves(offset, n, 0, leaves, stack, stack, tiles);
        p.finish(p.ctx, stack, n, out, out_step, tiles);
      }
    });
  }

  // Pieces [begin, end) of chunks of leaves, into partials[unit][chunk].
  void run_chunks(int64_t begin, int64_t end, int64_t chunks, int64_t chunk_leaves, char* partials,
                  int64_t* seen) const {
    with_scratch(chunk_leaves, [&](char* tiles, char* stack) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t unit = i / chunks, first = i % chunks * chunk_leaves;
        int64_t out, offset = unit_offset(unit, out);
        seen[i] =
            reduce_leaves(offset, unit_width(unit), first, std::min(chunk_leaves, leaves - first),
                          stack, partials + i * stack_row(), tiles);
      }
    });
  }

  void join_chunks(int64_t begin, int64_t end, int64_t chunks, const char* partials,
                   const int64_t* seen) const {
    with_scratch(chunks, [&](char* tiles, char* stack) {
      for (int64_t u = begin; u < end; ++u) {
        const int64_t n = unit_width(u);
        tree(chunks, n, stack, stack, [&](int64_t i, void* acc) {
          std::memcpy(acc, partials + (u * chunks + i) * stack_row(),
                      static_cast<size_t>(n) * p.acc_bytes);
          return seen[u * chunks + i];
        });
        int64_t out;
        unit_offset(u, out);
        p.finish(p.ctx, stack, n, out, out_step, tiles);
      }
    });
  }

  Status run_all() const {
    const int64_t unit_elements = std::max<int64_t>(1, width * reduced_numel);
    if (kept_numel * reduced_numel <= kSerialElements || num_threads() == 1 || in_parallel()) {
      run_units(0, units);
      return {};
    }
    const int64_t leaf_elements = leaf_size * width;
    const int64_t chunk_leaves = static_cast<int64_t>(
        std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, kChunkElements / leaf_elements))));
    const int64_t chunks = (leaves + chunk_leaves - 1) / chunk_leaves;
    if (units >= 4 * num_threads() || chunks <= 1) {
      parallel_for(0, units, std::max<int64_t>(1, kSerialElements / 2 / unit_elements),
                   [&](int64_t b, int64_t e) { run_units(b, e); });
      return {};
    }
    const size_t partial_bytes = static_cast<size_t>(units * chunks * stack_row());
    Scratch scratch(partial_bytes + static_cast<size_t>(units * chunks) * sizeof(int64_t), failure);
    char* partials = static_cast<char*>(scratch.get());
    if (!partials) return {};
    int64_t* seen = reinterpret_cast<int64_t*>(partials + partial_bytes);
    parallel_for(0, units * chunks, 1, [&](int64_t b, int64_t e) {
      run_chunks(b, e, chunks, chunk_leaves, partials, seen);
    });
    join_chunks(0, units, chunks, partials, seen);
    return {};
  }
};

}  // namespace

void store_results(void* out, DType dtype, const void* from, int64_t n, int64_t at, int64_t step) {
  const int64_t item = static_cast<int64_t>(itemsize(dtype));
  const int64_t reg = static_cast<int64_t>(reg_size(reg_class(dtype)));
  const ConvertFn store = converts().store[static_cast<int>(dtype)];
  char* to = static_cast<char*>(out) + at * item;
  if (step == 1 || n == 1) return store(to, from, n);
  for (int64_t i = 0; i < n; ++i)
    store(to + i * step * item, static_cast<const char*>(from) + i * reg, 1);
}

// By rows, of one run each: see Reducer.
bool can_make(int64_t rows, int64_t n) { return n > kFewReduced || (rows == 1 && n > 1); }

Status run_reduction(const Reduction& reduction, const char* name) noexcept {
  for (int d = 0; d < reduction.kept_ndim; ++d)
    if (reduction.kept_sizes[d] == 0) return {};
  OutOfScratch failure;
  Reducer r(reduction, failure);
  r.run_all();
  return failure.status(name);
}

}  // namespace tessera::cpu
