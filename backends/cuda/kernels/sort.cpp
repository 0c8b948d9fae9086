// sort and topk, and tensors as rows of elements.
#include "select.h"

namespace tessera::cuda {
namespace {

// 32 lines by 32 places through shared memory: neighbouring lanes are neighbouring lines in the
// tensor and neighbouring places in the rows.
constexpr char kLinesText[] = R"(
struct Params { B* lines; B* rows; int64_t n, stride, num_lines, across; Walk<1> walk; };
extern "C" __global__ void __launch_bounds__(256) move_lines(const __grid_constant__ Params p) {
  __shared__ B tile[32][33];
  const int x = threadIdx.x & 31, y = threadIdx.x / 32;
  const int64_t line0 = blockIdx.x / p.across * 32, place0 = blockIdx.x % p.across * 32;
  const int64_t line = line0 + x, place = place0 + x;
  const int64_t begin = line < p.num_lines ? offset(p.walk, line) : 0;
  if constexpr (GATHER) {
    for (int k = y; k < 32; k += 8)
      if (line < p.num_lines && place0 + k < p.n)
        tile[k][x] = p.lines[begin + (place0 + k) * p.stride];
    __syncthreads();
    for (int k = y; k < 32; k += 8)
      if (line0 + k < p.num_lines && place < p.n) p.rows[(line0 + k) * p.n + place] = tile[x][k];
  } else {
    for (int k = y; k < 32; k += 8)
      if (line0 + k < p.num_lines && place < p.n) tile[x][k] = p.rows[(line0 + k) * p.n + place];
    __syncthreads();
    for (int k = y; k < 32; k += 8)
      if (line < p.num_lines && place0 + k < p.n)
        p.lines[begin + (place0 + k) * p.stride] = tile[k][x];
  }
})";
constexpr TextKernel kMoveLines{"move_lines", kLinesText};

Status move_lines(Device& d, CUstream stream, bool gather, const Lines& l, void* lines, void* rows,
                  int64_t bytes) {
  struct {
    void *lines, *rows;
    int64_t n, stride, num_lines, across;
    Walk<1> walk;
  } p{lines, rows, l.n, l.stride, l.lines, (l.n + 31) / 32, l.walk};
  const int64_t blocks = (l.lines + 31) / 32 * p.across;
  return launch_text(d, stream, kMoveLines, {def_bytes("B", bytes), def("GATHER", gather ? 1 : 0)},
                     {blocks, 256}, &p);
}

// Sorted lines of the tensor, `keep` of each into the two outputs.
Status sort_lines(Device& d, CUstream stream, const KernelArgs& args, int64_t dim, bool descending,
                  const char* name) {
  const KernelTensor &self = args.inputs[0], &values = args.outputs[0], &indices = args.outputs[1];
  if (values.numel == 0) return ok();
  DenseLines in(d, stream);
  TS_TRY(check_sortable(self, self.ndim ? self.sizes[dim] : 1, name));
  TS_TRY(in.take(self, dim));
  Lines to_values, to_indices;
  TS_TRY(make_lines(values, dim, &to_values));
  TS_TRY(make_lines(indices, dim, &to_indices));
  const int64_t keep = to_values.n, bytes = static_cast<int64_t>(itemsize(self.dtype));
  Scratch dense_values(d, stream), dense_indices(d, stream);
  SortRows s{self.dtype,
             in.rows(),
             in.n(),
             descending,
             in.data(),
             values.data,
             static_cast<int64_t*>(indices.data),
             keep};
  if (!to_values.side_by_side) {
    TS_TRY(dense_values.take(static_cast<size_t>(values.numel * bytes)));
    s.values = part<void>(dense_values, 0);
  }
  if (!to_indices.side_by_side) {
    TS_TRY(dense_indices.take(static_cast<size_t>(indices.numel) * 8));
    s.indices = part<int64_t>(dense_indices, 0);
  }
  // Few of a long line are selected.
  const bool few = s.n > kShortRow && keep <= kShortRow && keep * 4 <= s.n;
  TS_TRY(few ? select_rows(d, stream, s, Select::kFirst) : sort_rows(d, stream, s));
  if (!to_values.side_by_side)
    TS_TRY(scatter_lines(d, stream, to_values, s.values, values.data, bytes));
  if (!to_indices.side_by_side)
    TS_TRY(scatter_lines(d, stream, to_indices, s.indices, indices.data, 8));
  return ok();
}

// ints: dimension, descending. Outputs: values, indices.
Status run_sort(Device& d, CUstream stream, const KernelArgs& args) {
  return sort_lines(d, stream, args, args.ints[0], args.ints[1] != 0, "sort()");
}
// ints: dimension, k, largest.
Status run_topk(Device& d, CUstream stream, const KernelArgs& args) {
  return sort_lines(d, stream, args, args.ints[0], args.ints[2] != 0, "topk()");
}

TS_CUDA_KERNEL("sort", run_sort)
TS_CUDA_KERNEL("topk", run_topk)

}  // namespace

Status make_lines(const KernelTensor& t, int64_t dim, Lines* out) {
  if (t.ndim == 0) return ok();
  const int along = static_cast<int>(dim);
  out->n = t.sizes[along];
  out->stride = t.strides[along];
  for (int i = 0; i < t.ndim; ++i)
    if (i != along) TS_TRY(out->walk.add(t.sizes[i], {t.strides[i]}));
  out->lines = out->walk.numel();
  out->side_by_side =
      (out->n == 1 || out->stride == 1) &&
      (out->walk.nd == 0 || (out->walk.nd == 1 && out->walk.strides[0][0] == out->n));
  return ok();
}

Status gather_lines(Device& d, CUstream stream, const Lines& from, const void* in, void* rows,
                    int64_t bytes) {
  return move_lines(d, stream, true, from, const_cast<void*>(in), rows, bytes);
}
Status scatter_lines(Device& d, CUstream stream, const Lines& to, const void* rows, void* out,
                     int64_t bytes) {
  return move_lines(d, stream, false, to, out, const_cast<void*>(rows), bytes);
}

Status DenseLines::take(const KernelTensor& t, int64_t dim) {
  TS_TRY(make_lines(t, dim, &lines_));
  data_ = t.data;
  if (lines_.side_by_side) return ok();
  const int64_t bytes = static_cast<int64_t>(itemsize(t.dtype));
  TS_TRY(room_.take(static_cast<size_t>(t.numel * bytes)));
  data_ = part<void>(room_, 0);
  return gather_lines(device_, stream_, lines_, t.data, part<void>(room_, 0), bytes);
}

Status check_sortable(const KernelTensor& t, int64_t n, const char* name) {
  if (tessera::is_complex(t.dtype))
    return fail(Code::kUnsupported, "%s: not implemented for complex numbers", name);
  if (n >= int64_t{1} << 32)
    return fail(Code::kUnsupported, "%s: not implemented for more than 2^32 elements", name);
  return ok();
}

Status sort_rows(Device& d, CUstream stream, const SortRows& s) {
  return s.n <= kTinyRow    ? sort_short_rows(d, stream, s)
         : s.n <= kShortRow ? sort_block_rows(d, stream, s)
                            : sort_long_rows(d, stream, s);
}

}  // namespace tessera::cuda
