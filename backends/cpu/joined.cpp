// Pointwise work before and after a kernel over rows.
//
// Note [Rows that stay in the cache]
// A block of rows at a time: the work before it into a buffer, the kernel from there, the work
// after it from the kernel's output. What passes between them is as if it had been stored, in the
// same dtype, so every part computes the bits it computes alone. A reduction has its leaves made
// one by one instead.
#include "joined.h"

#include <algorithm>
#include <optional>

#include "reduce.h"
#include "reduce_tree.h"
#include "scratch.h"
#include "thread_pool.h"
#include "vm.h"

namespace tessera::cpu {

namespace {

constexpr int kMostOperands = 64;
constexpr int kMostTensors = 12, kMostInts = 16;
constexpr int64_t kBlockBytes = 64 * 1024;
// A longer row would not stay in the cache.
constexpr size_t kLongestRow = 512 * 1024;

// A pointwise program over part of its rows: as one run where every operand is one.
class Piece {
 public:
  explicit Piece(const GroupProgram& g) : whole_(g), program_(g) {
    std::copy_n(g.inputs, g.num_inputs, inputs_);
    std::copy_n(g.outputs, g.num_outputs, outputs_);
    program_.inputs = inputs_;
    program_.outputs = outputs_;
    program_.sizes = sizes_;
    each([&](Operand& o, const Operand&) {
      one_run_ &= o.strides[1] == 1 && o.strides[0] == g.sizes[1];
    });
    if (!one_run_) return;
    static constexpr int64_t kOne = 1;
    each([](Operand& o, const Operand&) { o.strides = &kOne; });
    program_.ndim = 1;
  }
  bool one_run() const { return one_run_; }

  // Of `rows` rows from `row` on, `cols` elements from `col` on; what has no address is at `given`.
  Status run(int64_t row, int64_t rows, int64_t col, int64_t cols, void* given) {
    sizes_[0] = one_run_ ? rows * cols : rows;
    sizes_[1] = cols;
    program_.numel = rows * cols;
    each([&](Operand& o, const Operand& from) {
      const int64_t at = row * from.strides[0] + col * from.strides[1];
      o.data = !from.data ? given
                          : static_cast<char*>(from.data) +
                                at * static_cast<int64_t>(itemsize(from.dtype));
    });
    return run_group({0, nullptr}, &program_);
  }

 private:
  template <class F>
  void each(F f) {
    for (int i = 0; i < whole_.num_inputs; ++i) f(inputs_[i], whole_.inputs[i]);
    for (int i = 0; i < whole_.num_outputs; ++i) f(outputs_[i].to, whole_.outputs[i].to);
  }
  const GroupProgram& whole_;
  GroupProgram program_;
  Operand inputs_[kMostOperands];
  GroupOutput outputs_[kMostOperands];
  int64_t sizes_[2];
  bool one_run_ = true;
};

size_t row_bytes(const KernelTensor& t, int64_t rows) {
  return static_cast<size_t>(t.numel / rows) * itemsize(t.dtype);
}

// The kernel on a block of rows; a failure stops nothing, the last one is told.
struct Blocks {
  const JoinedProgram& p;
  KernelFn kernel;
  int64_t blocks;
  OutOfScratch failure;
  std::atomic<bool> failed{false};
  Status first_failure;

  void note(Status s) {
    if (!s.ok() && !failed.exchange(true)) first_failure = s;
  }

  void run(int64_t begin, int64_t end) {
    const KernelArgs& a = *p.args;
    const int64_t rows = p.rows.rows, most = (rows + blocks - 1) / blocks;
    const KernelTensor &x = a.inputs[p.rows.in], &y = a.outputs[p.rows.out];
    const size_t x_bytes = p.before ? row_bytes(x, rows) * static_cast<size_t>(most) : 0;
    const size_t y_bytes = y.data ? 0 : row_bytes(y, rows) * static_cast<size_t>(most);
    const size_t y_at = (x_bytes + 63) & ~size_t{63};
    Scratch scratch(y_at + y_bytes, failure);
    char* room = static_cast<char*>(scratch.get());
    if (!room && y_at + y_bytes > 0) return;
    std::optional<Piece> before, after;
    if (p.before) before.emplace(*p.before);
    if (p.after) after.emplace(*p.after);
    for (int64_t b = begin; b < end; ++b) {
      const int64_t row = rows * b / blocks, count = rows * (b + 1) / blocks - row;
      if (before) note(before->run(row, count, 0, p.rows.n, room));
      run_kernel(row, count, room, room + y_at);
      if (after) {
        const size_t bytes = row_bytes(y, rows);
        char* made =
            y.data ? static_cast<char*>(y.data) + static_cast<size_t>(row) * bytes : room + y_at;
        note(after->run(row, count, 0, y.numel / rows, made));
      }
    }
  }

  void run_kernel(int64_t row, int64_t count, void* x, void* y) {
    const KernelArgs& a = *p.args;
    const int64_t rows = p.rows.rows;
    KernelTensor tensors[kMostTensors];
    int64_t sizes[kMostTensors][2], ints[kMostInts];
    int n = 0;
    auto place = [&](const KernelTensor& from, bool by_rows, void* instead) {
      KernelTensor& t = tensors[n] = from;
      if (by_rows) {
        sizes[n][0] = count;
        sizes[n][1] = from.numel / rows;
        t.sizes = sizes[n];
        t.numel = count * sizes[n][1];
        t.data = instead ? instead
                         : static_cast<char*>(from.data) +
                               static_cast<size_t>(row) * row_bytes(from, rows);
      }
      ++n;
    };
    for (int i = 0; i < a.num_outputs; ++i)
      place(a.outputs[i], true, i == p.rows.out && !a.outputs[i].data ? y : nullptr);
    for (int i = 0; i < a.num_inputs; ++i)
      place(a.inputs[i], (p.rows.whole >> i & 1) != 0, i == p.rows.in && p.before ? x : nullptr);
    std::copy_n(a.ints, a.num_ints, ints);
    if (p.rows.rows_at >= 0) ints[p.rows.rows_at] = count;
    KernelArgs args = a;
    args.outputs = tensors;
    args.inputs = tensors + a.num_outputs;
    args.ints = ints;
    note(kernel(args));
  }
};

Status join_kernel(const JoinedProgram& p) {
  KernelFn kernel = find_kernel(p.kernel);
  if (!kernel) return fail(Code::kUnsupported, "the cpu backend has no kernel %s", p.kernel);
  const int64_t bytes = static_cast<int64_t>(row_bytes(p.args->inputs[p.rows.in], p.rows.rows));
  // Two rows at least: what is done with a single one may be done another way.
  const int64_t rows = std::max<int64_t>(2, kBlockBytes / std::max<int64_t>(bytes, 1));
  Blocks b{p, kernel, std::max<int64_t>(1, p.rows.rows / rows)};
  parallel_for(0, b.blocks, 1, [&](int64_t begin, int64_t end) { b.run(begin, end); });
  if (!b.first_failure.ok()) return b.first_failure;
  return b.failure.status(p.kernel);
}

// Elements of the operand of a reduction, as they are asked for.
void make_elements(const void* ctx, int64_t first, int64_t n, void* to) {
  const GroupProgram& g = *static_cast<const GroupProgram*>(ctx);
  Piece piece(g);
  const int64_t row = g.sizes[1];
  const int64_t item = static_cast<int64_t>(itemsize(g.outputs[0].to.dtype));
  if (piece.one_run()) {
    piece.run(first / row, 1, first % row, n, to);
    return;
  }
  for (int64_t done = 0; done < n;) {
    const int64_t at = (first + done) % row, count = std::min(n - done, row - at);
    piece.run((first + done) / row, 1, at, count, static_cast<char*>(to) + done * item);
    done += count;
  }
}

Status join_reduction(const JoinedProgram& p) {
  ReduceProgram r = *p.reduce;
  OutOfScratch failure;
  Scratch results(r.out ? 0 : static_cast<size_t>(r.kept_numel) * itemsize(r.out_dtype), failure);
  if (!r.out) r.out = results.get();
  if (!r.out) return failure.status(p.kernel);
  Status status = run_reduce(r, p.before ? make_elements : nullptr, p.before);
  if (!status.ok() || !p.after) return status;
  return Piece(*p.after).run(0, p.rows.rows, 0, 1, r.out);
}

}  // namespace

bool can_join(const JoinedProgram* program) noexcept {
  const JoinedProgram& p = *program;
  for (const GroupProgram* g : {p.before, p.after})
    if (g && std::max(g->num_inputs, g->num_outputs) > kMostOperands) return false;
  if (p.reduce) return !p.before || can_make(p.rows.rows, p.rows.n);
  if (p.rows.across) return false;
  const KernelArgs& a = *p.args;
  return a.num_inputs + a.num_outputs <= kMostTensors && a.num_ints <= kMostInts &&
         row_bytes(a.inputs[p.rows.in], p.rows.rows) <= kLongestRow;
}

Status run_joined(Exec, const JoinedProgram* program) noexcept {
  return program->reduce ? join_reduction(*program) : join_kernel(*program);
}

}  // namespace tessera::cpu
