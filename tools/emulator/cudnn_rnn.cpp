// The recurrent networks of cuDNN's stand-in: descriptors, and the checks that cuDNN makes.
#include "cudnn_rnn.h"

#include <algorithm>

#include "library.h"

namespace emulator {

size_t bytes_of(cudnnDataType_t t) {
  return t == CUDNN_DATA_DOUBLE ? 8 : t == CUDNN_DATA_FLOAT ? 4 : 2;
}

namespace {

constexpr size_t kWorkspace = 768;

size_t aligned(size_t n) { return (n + 63) / 64 * 64; }

// Walks through all groups of equal matrices in the order they lie: those of all parts, then all
// biases. f(part, first id, count, bias, rows, columns, offset) returns true to stop.
template <class F>
size_t walk(const cudnnRNNStruct& r, F f) {
  size_t at = 0;
  auto group = [&](int part, int first, int count, bool bias, int rows, int columns) {
    if (f(part, first, count, bias, rows, columns, at)) return true;
    at += aligned(static_cast<size_t>(count) * static_cast<size_t>(rows) *
                  static_cast<size_t>(columns) * bytes_of(r.type));
    return false;
  };
  const int g = r.gates();
  for (int part = 0; part < r.parts(); ++part) {
    if (group(part, 0, g, false, r.hidden, r.columns(part))) return at;
    if (group(part, g, g, false, r.hidden, r.out)) return at;
    if (r.projects() && group(part, 2 * g, 1, false, r.out, r.hidden)) return at;
  }
  for (int part = 0; part < r.parts(); ++part)
    for (int first : {0, g})
      if (group(part, first, g, true, r.hidden, 1)) return at;
  return at;
}

// A device's memory of that many elements; null where that is allowed.
bool has(const void* p, cudnnDataType_t t, int64_t numel) {
  return on_device(p, static_cast<size_t>(numel) * bytes_of(t));
}
bool has_or_null(const void* p, cudnnDataType_t t, int64_t numel) { return !p || has(p, t, numel); }

bool one_length(const cudnnRNNDataStruct& d) {
  return std::all_of(d.lengths.begin(), d.lengths.end(), [&](int n) { return n == d.steps; });
}

cudnnStatus_t check_data(const cudnnRNNStruct& r, const cudnnRNNDataStruct* d, int size) {
  if (!r.ready || !d || !d->ready || d->type != r.type || d->size != size)
    return CUDNN_STATUS_BAD_PARAM;
  if (d->layout != CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED && !r.padded)
    return CUDNN_STATUS_BAD_PARAM;
  if (r.algo != CUDNN_RNN_ALGO_STANDARD && !one_length(*d)) return CUDNN_STATUS_NOT_SUPPORTED;
  return CUDNN_STATUS_SUCCESS;
}

bool is_state(const cudnnTensorStruct* t, const cudnnRNNStruct& r, int batch, int size) {
  return t && t->type == r.type && t->sizes == std::vector<int>{r.parts(), batch, size} &&
         t->strides == std::vector<int>{batch * size, size, 1};
}

struct Spaces {
  size_t weights, workspace, reserve;
  const void *work, *kept;
};

// What all three calls have in common.
cudnnStatus_t check(const cudnnRNNStruct& r, cudnnRNNDataDescriptor_t x, cudnnRNNDataDescriptor_t y,
                    cudnnTensorDescriptor_t h, cudnnTensorDescriptor_t c, bool needs_c,
                    const Spaces& s, bool train, RnnProblem* p) {
  for (cudnnStatus_t st : {check_data(r, x, r.input), check_data(r, y, r.out * r.directions)})
    if (st != CUDNN_STATUS_SUCCESS) return st;
  if (x->batch != y->batch || x->steps != y->steps || x->lengths != y->lengths ||
      x->layout != y->layout || !is_state(h, r, x->batch, r.out))
    return CUDNN_STATUS_BAD_PARAM;
  if (needs_c && r.mode == CUDNN_LSTM && !is_state(c, r, x->batch, r.hidden))
    return CUDNN_STATUS_BAD_PARAM;
  p->net = r;
  p->data = *x;
  if (s.weights != rnn_weight_bytes(r) || s.workspace < kWorkspace ||
      !on_device(s.work, s.workspace))
    return CUDNN_STATUS_BAD_PARAM;
  if (train && (s.reserve < p->reserve_bytes() || !on_device(s.kept, s.reserve)))
    return CUDNN_STATUS_BAD_PARAM;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t queue(cudnnHandle_t handle, void* workspace, const RnnProblem& p,
                    void (*run)(const RnnProblem&)) {
  return enqueue(handle->stream,
                 [=] {
                   std::memset(workspace, 0xff, kWorkspace);
                   run(p);
                 })
             ? CUDNN_STATUS_SUCCESS
             : CUDNN_STATUS_EXECUTION_FAILED;
}

}  // namespace

RnnPlace rnn_place(const cudnnRNNStruct& r, int part, int id, bool bias) {
  RnnPlace out{};
  walk(r, [&](int p, int first, int count, bool b, int rows, int columns, size_t at) {
    if (p != part || b != bias || id < first || id >= first + count) return false;
    out = {at + static_cast<size_t>(id - first) * static_cast<size_t>(rows) *
                    static_cast<size_t>(columns) * bytes_of(r.type),
           rows, columns};
    return true;
  });
  return out;
}

size_t rnn_weight_bytes(const cudnnRNNStruct& r) {
  return walk(r, [](int, int, int, bool, int, int, size_t) { return false; });
}

}  // namespace emulator

using namespace emulator;

#define NEW_AND_DELETE(Name, Struct)                      \
  cudnnStatus_t cudnnCreate##Name(cudnn##Name##_t* out) { \
    *out = new Struct{};                                  \
    return CUDNN_STATUS_SUCCESS;                          \
  }                                                       \
  cudnnStatus_t cudnnDestroy##Name(cudnn##Name##_t d) {   \
    delete d;                                             \
    return CUDNN_STATUS_SUCCESS;                          \
  }
NEW_AND_DELETE(TensorDescriptor, cudnnTensorStruct)
NEW_AND_DELETE(DropoutDescriptor, cudnnDropoutStruct)
NEW_AND_DELETE(RNNDescriptor, cudnnRNNStruct)
NEW_AND_DELETE(RNNDataDescriptor, cudnnRNNDataStruct)

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t t, cudnnDataType_t type, int dims,
                                         const int* sizes, const int* strides) {
  if (!t || dims < 3 || dims > CUDNN_DIM_MAX) return CUDNN_STATUS_BAD_PARAM;
  for (int i = 0; i < dims; ++i)
    if (sizes[i] <= 0 || strides[i] <= 0) return CUDNN_STATUS_BAD_PARAM;
  *t = {type, {sizes, sizes + dims}, {strides, strides + dims}};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t t, int room,
                                         cudnnDataType_t* type, int* dims, int* sizes,
                                         int* strides) {
  *type = t->type;
  *dims = static_cast<int>(t->sizes.size());
  std::copy_n(t->sizes.data(), std::min(room, *dims), sizes);
  std::copy_n(t->strides.data(), std::min(room, *dims), strides);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t d, cudnnHandle_t handle,
                                        float probability, void* states, size_t,
                                        unsigned long long) {
  if (!d || !handle || probability < 0 || probability > 1 || (probability > 0 && !states))
    return CUDNN_STATUS_BAD_PARAM;
  *d = {true, probability};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t r, cudnnRNNAlgo_t algo,
                                       cudnnRNNMode_t mode, cudnnRNNBiasMode_t biases,
                                       cudnnDirectionMode_t direction, cudnnRNNInputMode_t input,
                                       cudnnDataType_t type, cudnnDataType_t math,
                                       cudnnMathType_t math_type, int32_t input_size,
                                       int32_t hidden, int32_t projection, int32_t layers,
                                       cudnnDropoutDescriptor_t dropout, uint32_t flags) {
  if (!r || input_size <= 0 || hidden <= 0 || layers <= 0 || projection <= 0 ||
      projection > hidden || (projection < hidden && mode != CUDNN_LSTM) ||
      (dropout && !dropout->ready) || flags > CUDNN_RNN_PADDED_IO_ENABLED)
    return CUDNN_STATUS_BAD_PARAM;
  const bool wide = type == CUDNN_DATA_DOUBLE;
  if ((type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_HALF && type != CUDNN_DATA_BFLOAT16 &&
       !wide) ||
      math != (wide ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT))
    return CUDNN_STATUS_NOT_SUPPORTED;
  if (math_type == CUDNN_FMA_MATH ? type != CUDNN_DATA_FLOAT
                                  : math_type == CUDNN_TENSOR_OP_MATH && type != CUDNN_DATA_HALF)
    return CUDNN_STATUS_NOT_SUPPORTED;
  if (algo != CUDNN_RNN_ALGO_STANDARD && (projection < hidden || wide))
    return CUDNN_STATUS_NOT_SUPPORTED;
  // The stand-in has no others.
  if (biases != CUDNN_RNN_DOUBLE_BIAS || input != CUDNN_LINEAR_INPUT ||
      (dropout && dropout->probability > 0))
    return CUDNN_STATUS_NOT_SUPPORTED;
  *r = {true,   algo,       mode,   direction == CUDNN_BIDIRECTIONAL ? 2 : 1, type, input_size,
        hidden, projection, layers, flags == CUDNN_RNN_PADDED_IO_ENABLED};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t d, cudnnDataType_t type,
                                        cudnnRNNDataLayout_t layout, int steps, int batch, int size,
                                        const int* lengths, void*) {
  if (!d || steps <= 0 || batch <= 0 || size <= 0 || !lengths) return CUDNN_STATUS_BAD_PARAM;
  const bool packed = layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
  for (int i = 0; i < batch; ++i)
    if (lengths[i] > steps || lengths[i] < (packed ? 1 : 0) ||
        (packed && i > 0 && lengths[i] > lengths[i - 1]))
      return CUDNN_STATUS_BAD_PARAM;
  if (packed && lengths[0] != steps) return CUDNN_STATUS_BAD_PARAM;
  *d = {true, type, layout, steps, batch, size, {lengths, lengths + batch}};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t r,
                                        cudnnForwardMode_t mode, cudnnRNNDataDescriptor_t x,
                                        size_t* workspace, size_t* reserve) {
  if (!handle || !r) return CUDNN_STATUS_BAD_PARAM;
  if (cudnnStatus_t st = check_data(*r, x, r->input); st != CUDNN_STATUS_SUCCESS) return st;
  RnnProblem p{*r, *x};
  *workspace = kWorkspace;
  if (reserve) *reserve = mode == CUDNN_FWD_MODE_TRAINING ? p.reserve_bytes() : 0;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t r,
                                         size_t* bytes) {
  if (!handle || !r || !r->ready) return CUDNN_STATUS_BAD_PARAM;
  *bytes = rnn_weight_bytes(*r);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t r, int32_t part,
                                      size_t bytes, const void* space, int32_t id,
                                      cudnnTensorDescriptor_t matrix, void** matrix_at,
                                      cudnnTensorDescriptor_t bias, void** bias_at) {
  if (!handle || !r || !r->ready || part < 0 || part >= r->parts() || id < 0 ||
      id > 2 * r->gates() - (r->projects() ? 0 : 1) || bytes != rnn_weight_bytes(*r) ||
      !on_device(space, bytes))
    return CUDNN_STATUS_BAD_PARAM;
  char* base = const_cast<char*>(static_cast<const char*>(space));
  const RnnPlace m = rnn_place(*r, part, id, false);
  if (matrix) *matrix = {r->type, {1, m.rows, m.columns}, {m.rows * m.columns, m.columns, 1}};
  if (matrix_at) *matrix_at = base + m.offset;
  const bool biased = id < 2 * r->gates();
  const RnnPlace b = biased ? rnn_place(*r, part, id, true) : RnnPlace{};
  if (bias) *bias = {r->type, {1, b.rows, b.columns}, {b.rows, 1, 1}};
  if (bias_at) *bias_at = biased ? base + b.offset : nullptr;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t r, cudnnForwardMode_t mode,
                              const int32_t*, cudnnRNNDataDescriptor_t x, const void* px,
                              cudnnRNNDataDescriptor_t y, void* py, cudnnTensorDescriptor_t h,
                              const void* hx, void* hy, cudnnTensorDescriptor_t c, const void* cx,
                              void* cy, size_t weight_bytes, const void* weights, size_t work_bytes,
                              void* work, size_t reserve_bytes, void* reserve) {
  const bool train = mode == CUDNN_FWD_MODE_TRAINING;
  // Limits that show only here, as cuDNN has some: of persistent kernels, and of all.
  if ((x->batch == 7 && r->algo != CUDNN_RNN_ALGO_STANDARD) || x->batch == 11)
    return CUDNN_STATUS_NOT_SUPPORTED;
  RnnProblem p;
  if (cudnnStatus_t st = check(*r, x, y, h, c, true,
                               {weight_bytes, work_bytes, reserve_bytes, work, reserve}, train, &p);
      st != CUDNN_STATUS_SUCCESS)
    return st;
  const int64_t rows = p.rows(), states = int64_t{r->parts()} * x->batch;
  if (!has(px, r->type, rows * x->size) || !has(py, r->type, rows * y->size) ||
      !has_or_null(hx, r->type, states * r->out) || !has_or_null(hy, r->type, states * r->out) ||
      !has_or_null(cx, r->type, states * r->hidden) ||
      !has_or_null(cy, r->type, states * r->hidden) || !on_device(weights, weight_bytes))
    return CUDNN_STATUS_BAD_PARAM;
  p.x = px;
  p.y = py;
  p.hx = hx;
  p.hy = hy;
  p.cx = cx;
  p.cy = cy;
  p.weights = weights;
  p.reserve = train ? reserve : nullptr;
  return queue(handle, work, p, rnn_forward);
}

cudnnStatus_t cudnnRNNBackwardData_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t r, const int32_t*,
                                      cudnnRNNDataDescriptor_t y, const void* py, const void* dy,
                                      cudnnRNNDataDescriptor_t x, void* dx,
                                      cudnnTensorDescriptor_t h, const void* hx, const void* dhy,
                                      void* dhx, cudnnTensorDescriptor_t c, const void* cx,
                                      const void* dcy, void* dcx, size_t weight_bytes,
                                      const void* weights, size_t work_bytes, void* work,
                                      size_t reserve_bytes, void* reserve) {
  RnnProblem p;
  if (cudnnStatus_t st = check(*r, x, y, h, c, true,
                               {weight_bytes, work_bytes, reserve_bytes, work, reserve}, true, &p);
      st != CUDNN_STATUS_SUCCESS)
    return st;
  const int64_t rows = p.rows(), states = int64_t{r->parts()} * x->batch;
  if (!has(py, r->type, rows * y->size) || !has(dy, r->type, rows * y->size) ||
      !has(dx, r->type, rows * x->size) || !on_device(weights, weight_bytes))
    return CUDNN_STATUS_BAD_PARAM;
  for (const void* s : {hx, dhy, static_cast<const void*>(dhx)})
    if (!has_or_null(s, r->type, states * r->out)) return CUDNN_STATUS_BAD_PARAM;
  for (const void* s : {cx, dcy, static_cast<const void*>(dcx)})
    if (!has_or_null(s, r->type, states * r->hidden)) return CUDNN_STATUS_BAD_PARAM;
  p.dy = dy;
  p.dx = dx;
  p.hx = hx;
  p.dhy = dhy;
  p.dhx = dhx;
  p.cx = cx;
  p.dcy = dcy;
  p.dcx = dcx;
  p.weights = weights;
  p.reserve = reserve;
  return queue(handle, work, p, rnn_backward_data);
}

cudnnStatus_t cudnnRNNBackwardWeights_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t r,
                                         cudnnWgradMode_t mode, const int32_t*,
                                         cudnnRNNDataDescriptor_t x, const void* px,
                                         cudnnTensorDescriptor_t h, const void* hx,
                                         cudnnRNNDataDescriptor_t y, const void* py,
                                         size_t weight_bytes, void* dweights, size_t work_bytes,
                                         void* work, size_t reserve_bytes, void* reserve) {
  if (mode != CUDNN_WGRAD_MODE_ADD) return CUDNN_STATUS_NOT_SUPPORTED;
  RnnProblem p;
  if (cudnnStatus_t st = check(*r, x, y, h, nullptr, false,
                               {weight_bytes, work_bytes, reserve_bytes, work, reserve}, true, &p);
      st != CUDNN_STATUS_SUCCESS)
    return st;
  const int64_t rows = p.rows(), states = int64_t{r->parts()} * x->batch;
  if (!has(px, r->type, rows * x->size) || !has(py, r->type, rows * y->size) ||
      !has_or_null(hx, r->type, states * r->out) || !on_device(dweights, weight_bytes))
    return CUDNN_STATUS_BAD_PARAM;
  p.x = px;
  p.hx = hx;
  p.dweights = dweights;
  p.reserve = reserve;
  return queue(handle, work, p, rnn_backward_weights);
}
