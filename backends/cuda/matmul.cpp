// Matrix products: [B, M, K] x [B, K, N] -> [B, M, N], with an optional bias [N].
#include <algorithm>

#include "group.h"
#include "kernel.h"
#include "kernel_texts.h"
#include "kernels.h"
#include "matmul_plan.h"

namespace tessera::cuda {
namespace {

// An operand of [B, R, C] with its strides; two-dimensional ones have a batch of one.
struct Matrix {
  const void* data;
  int64_t batch, rows, columns;
  int64_t batch_stride, row_stride, column_stride;
};

bool read_matrix(const KernelTensor& t, Matrix* m) {
  if (t.ndim != 2 && t.ndim != 3) return false;
  int o = t.ndim - 2;
  *m = {t.data,       o ? t.sizes[0] : 1, t.sizes[o], t.sizes[o + 1], o ? t.strides[0] : 0,
        t.strides[o], t.strides[o + 1]};
  return true;
}

// As cuBLASLt takes it; false if neither its rows nor its columns are dense runs.
bool view_of(const Matrix& m, MatrixView* v) {
  v->data = m.data;
  v->batch_stride = m.batch_stride;
  if ((m.columns == 1 || m.column_stride == 1) && (m.rows == 1 || m.row_stride >= m.columns)) {
    v->transposed = false;
    v->ld = m.rows == 1 ? m.columns : m.row_stride;
    return true;
  }
  if ((m.rows == 1 || m.row_stride == 1) && (m.columns == 1 || m.column_stride >= m.rows)) {
    v->transposed = true;
    v->ld = m.columns == 1 ? m.rows : m.column_stride;
    return true;
  }
  return false;
}

// Into a dense copy, when cuBLASLt cannot read it where it lies.
Status pack(Device& d, CUstream stream, DType dtype, Matrix* m, Scratch* scratch) {
  // A batch that is one matrix repeated is packed once.
  int64_t batch = m->batch_stride == 0 ? 1 : m->batch;
  int64_t sizes[] = {batch, m->rows, m->columns};
  int64_t strides[] = {m->batch_stride, m->row_stride, m->column_stride};
  int64_t numel = batch * m->rows * m->columns;
  TS_TRY(scratch->take(static_cast<size_t>(numel) * itemsize(dtype)));
  void* to = reinterpret_cast<void*>(scratch->address());
  TS_TRY(copy_strided(d, stream, to, m->data, dtype, 3, sizes, strides));
  m->data = to;
  m->row_stride = m->columns;
  m->column_stride = 1;
  m->batch_stride = batch == 1 ? 0 : m->rows * m->columns;
  return ok();
}

Status add_bias(Device& d, CUstream stream, const KernelTensor& out, const KernelTensor& bias) {
  Hasher h(static_cast<uint64_t>(d.ordinal) << 8 | 8);
  h.add(static_cast<uint64_t>(out.dtype));
  const Kernel* k = nullptr;
  TS_TRY(get_kernel(d, h.finish(), "bias_add", "matmul", &k,
                    [&] { return bias_add_text(out.dtype); }));
  uint64_t words[] = {reinterpret_cast<uintptr_t>(out.data), reinterpret_cast<uintptr_t>(bias.data),
                      static_cast<uint64_t>(out.numel),
                      static_cast<uint64_t>(out.sizes[out.ndim - 1]),
                      static_cast<uint64_t>(bias.ndim > 0 ? bias.strides[bias.ndim - 1] : 0)};
  return launch(d, stream, *k, {fill_blocks(d, out.numel), 256}, words, "launching a bias");
}

// For dtypes and shapes that cuBLASLt does not take.
Status run_tiled(Device& d, CUstream stream, DType dtype, const Matrix& a, const Matrix& b,
                 void* out, int64_t batch) {
  Hasher h(static_cast<uint64_t>(d.ordinal) << 8 | 9);
  h.add(static_cast<uint64_t>(dtype));
  const Kernel* k = nullptr;
  TS_TRY(get_kernel(d, h.finish(), "matmul", "matmul", &k, [&] { return matmul_text(dtype); }));
  int64_t blocks = ((a.rows + 15) / 16) * ((b.columns + 15) / 16);
  // The second dimension of a grid holds 65535 blocks.
  for (int64_t first = 0; first < batch; first += 65535) {
    auto at = [&](const void* p, int64_t elements) {
      return reinterpret_cast<uintptr_t>(p) +
             static_cast<uintptr_t>(elements * static_cast<int64_t>(itemsize(dtype)));
    };
    uint64_t words[] = {
        at(out, first * a.rows * b.columns),    at(a.data, first * a.batch_stride),
        at(b.data, first * b.batch_stride),     static_cast<uint64_t>(a.rows),
        static_cast<uint64_t>(b.columns),       static_cast<uint64_t>(a.columns),
        static_cast<uint64_t>(a.batch_stride),  static_cast<uint64_t>(a.row_stride),
        static_cast<uint64_t>(a.column_stride), static_cast<uint64_t>(b.batch_stride),
        static_cast<uint64_t>(b.row_stride),    static_cast<uint64_t>(b.column_stride)};
    Grid grid{blocks, 256, std::min<int64_t>(batch - first, 65535)};
    TS_TRY(launch(d, stream, *k, grid, words, "launching a matrix product"));
  }
  return ok();
}

}  // namespace

Status run_matmul(Device& d, CUstream stream, const KernelArgs& args) {
  if (args.num_inputs < 2 || args.num_outputs != 1)
    return fail(Code::kInvalid, "matmul(): wrong number of arguments");
  const KernelTensor& out = args.outputs[0];
  const KernelTensor* bias = args.num_inputs > 2 ? &args.inputs[2] : nullptr;
  DType dtype = out.dtype;
  Matrix a, b;
  if (!read_matrix(args.inputs[0], &a) || !read_matrix(args.inputs[1], &b) ||
      args.inputs[0].dtype != dtype || args.inputs[1].dtype != dtype ||
      (bias && bias->dtype != dtype))
    return fail(Code::kUnsupported, "matmul(): operands must be matrices of one dtype");
  if (out.numel == 0) return ok();
  int64_t batch = out.ndim == 3 ? out.sizes[0] : 1;
  if (a.columns == 0) {
    TS_TRY(check(d,
                 driver().cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(out.data), 0,
                                          static_cast<size_t>(out.numel) * itemsize(dtype), stream),
                 "clearing a matrix"));
    return bias ? add_bias(d, stream, out, *bias) : ok();
  }
  if (a.batch == 1) a.batch_stride = 0;
  if (b.batch == 1) b.batch_stride = 0;
  if (a.rows == 1) a.row_stride = a.batch_stride;
  // One matrix b for all: the batch is more rows of a.
  if (batch > 1 && b.batch_stride == 0 && a.batch_stride == a.rows * a.row_stride) {
    a.rows *= batch;
    batch = a.batch = 1;
    a.batch_stride = 0;
  }
  if (!is_floating(dtype) && !is_complex(dtype)) {
    TS_TRY(run_tiled(d, stream, dtype, a, b, out.data, batch));
    return bias ? add_bias(d, stream, out, *bias) : ok();
  }
  a.batch = b.batch = batch;
  Scratch packed_a(d, stream), packed_b(d, stream);
  const bool tf32 = args.num_ints > 0 && args.ints[0] != 0;
  MatmulShape shape{dtype, false, tf32, batch, a.rows, b.columns, a.columns, {}, {}, out.data};
  if (!view_of(a, &shape.a)) {
    TS_TRY(pack(d, stream, dtype, &a, &packed_a));
    view_of(a, &shape.a);
  }
  if (!view_of(b, &shape.b)) {
    TS_TRY(pack(d, stream, dtype, &b, &packed_b));
    view_of(b, &shape.b);
  }
  shape.bias = bias && dtype != DType::kFloat64 && !is_complex(dtype) &&
               (bias->ndim == 0 || bias->strides[bias->ndim - 1] == 1);
  bool unsupported = false;
  if (shape.bias) {
    TS_TRY(run_cublaslt(d, stream, shape, bias->data, &unsupported));
    if (!unsupported) return ok();
    shape.bias = false;
  }
  TS_TRY(run_cublaslt(d, stream, shape, nullptr, &unsupported));
  if (unsupported) TS_TRY(run_tiled(d, stream, dtype, a, b, out.data, batch));
  return bias ? add_bias(d, stream, out, *bias) : ok();
}

TS_CUDA_KERNEL("matmul", run_matmul)

}  // namespace tessera::cuda
