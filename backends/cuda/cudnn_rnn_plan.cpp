#include "cudnn_rnn_plan.h"

#include "cudnn_descriptor.h"

namespace tessera::cuda {

using rnn::Mode;

Status cudnn_rnn_failed(const CudnnRnnApi& api, cudnnStatus_t r, const char* what) {
  if (r == CUDNN_STATUS_SUCCESS) return ok();
  char last[512] = "";
  api.cudnnGetLastErrorString(last, sizeof last);
  return fail(
      CUDNN_STATUS_CATEGORY(static_cast<int>(r)) == CUDNN_STATUS_NOT_SUPPORTED ? Code::kUnsupported
                                                                               : Code::kFailed,
      "cuDNN: %s in %s of a recurrent network (%s)", api.cudnnGetErrorString(r), what, last);
}

namespace {

cudnnRNNMode_t cell(Mode m) {
  return m == Mode::kTanh   ? CUDNN_RNN_TANH
         : m == Mode::kReLU ? CUDNN_RNN_RELU
         : m == Mode::kLSTM ? CUDNN_LSTM
                            : CUDNN_GRU;
}

// Kernels that keep the weights on the chip from step to step, where they are known to be there and
// to be faster. They take sequences of one length only. Forward and backward use the same ones, as
// what is reserved between them is theirs.
cudnnRNNAlgo_t algorithm(const Device& d, const CudnnRnn& n) {
  if (!n.persistent || n.packed || n.projection > 0 || n.dtype == DType::kFloat64)
    return CUDNN_RNN_ALGO_STANDARD;
  const bool simple = n.mode == Mode::kTanh || n.mode == Mode::kReLU;
  // Gradients of simple networks in both directions come out wrong in float16 (cuDNN 9.14, H200).
  if (simple && n.dtype == DType::kFloat16) return CUDNN_RNN_ALGO_STANDARD;
  const int small = simple ? (n.train ? 256 : 384) : (n.train ? 128 : 192);
  if (n.hidden <= small) return CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H;
  const bool large_gpu = d.arch >= 80 && d.arch != 86 && d.multiprocessors >= 98;
  if (n.dtype == DType::kFloat16 && large_gpu && n.mode != Mode::kGRU && n.layers == 1 &&
      !n.both_ways && n.hidden <= 1024 && n.hidden % 128 == 0 && n.input % 128 == 0 &&
      n.batch % 8 == 0 && n.batch <= 128 && !(simple && n.batch >= 96 && n.hidden >= 896))
    return CUDNN_RNN_ALGO_PERSIST_STATIC;
  return CUDNN_RNN_ALGO_STANDARD;
}

cudnnMathType_t math_type(const CudnnRnn& n) {
  if (n.dtype == DType::kFloat16) return CUDNN_TENSOR_OP_MATH;
  return n.dtype == DType::kFloat32 && !n.tf32 ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH;
}

// Biases are two always, as everything in cuDNN takes them: without any they are zeros.
cudnnStatus_t describe_network(const Device& d, const CudnnRnnApi& api, cudnnHandle_t handle,
                               const CudnnRnn& n, CudnnRnnPlan* out) {
  cudnnStatus_t r =
      out->dropout.create(api.cudnnCreateDropoutDescriptor, api.cudnnDestroyDropoutDescriptor);
  // No dropout needs no state.
  if (r == CUDNN_STATUS_SUCCESS)
    r = api.cudnnSetDropoutDescriptor(out->dropout.get(), handle, 0, nullptr, 0, 0);
  if (r == CUDNN_STATUS_SUCCESS)
    r = out->rnn.create(api.cudnnCreateRNNDescriptor, api.cudnnDestroyRNNDescriptor);
  if (r != CUDNN_STATUS_SUCCESS) return r;
  const cudnnRNNAlgo_t algo = algorithm(d, n);
  out->persistent = algo != CUDNN_RNN_ALGO_STANDARD;
  return api.cudnnSetRNNDescriptor_v8(
      out->rnn.get(), algo, cell(n.mode), CUDNN_RNN_DOUBLE_BIAS,
      n.both_ways ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT,
      cudnn_data_type(n.dtype), n.dtype == DType::kFloat64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT,
      math_type(n), n.input, n.hidden, n.out(), n.layers, out->dropout.get(),
      n.packed ? CUDNN_RNN_PADDED_IO_DISABLED : CUDNN_RNN_PADDED_IO_ENABLED);
}

cudnnStatus_t describe_data(const CudnnRnnApi& api, const CudnnRnn& n, int size,
                            CudnnOwned<cudnnRNNDataDescriptor_t>* out) {
  cudnnStatus_t r =
      out->create(api.cudnnCreateRNNDataDescriptor, api.cudnnDestroyRNNDataDescriptor);
  if (r != CUDNN_STATUS_SUCCESS) return r;
  return api.cudnnSetRNNDataDescriptor(
      out->get(), cudnn_data_type(n.dtype),
      n.packed ? CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED : CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED,
      n.steps, n.batch, size, n.lengths.data(), nullptr);
}

cudnnStatus_t describe_state(const CudnnRnnApi& api, const CudnnRnn& n, int size,
                             CudnnOwned<cudnnTensorDescriptor_t>* out) {
  cudnnStatus_t r = out->create(api.cudnnCreateTensorDescriptor, api.cudnnDestroyTensorDescriptor);
  if (r != CUDNN_STATUS_SUCCESS) return r;
  const int sizes[] = {n.layers * n.directions(), n.batch, size},
            strides[] = {n.batch * size, size, 1};
  return api.cudnnSetTensorNdDescriptor(out->get(), cudnn_data_type(n.dtype), 3, sizes, strides);
}

// Looks up where matrices and biases lie. A weight of ours is the matrices of all gates, one below
// the other, and cuDNN keeps them so too.
class PlaceFinder {
 public:
  PlaceFinder(const CudnnRnnApi& api, cudnnHandle_t handle, const CudnnRnn& n, CudnnRnnPlan* plan,
              char* space)
      : api_(api), handle_(handle), n_(n), plan_(plan), space_(space) {}

  Status run() {
    for (auto* t : {&matrix_, &bias_}) {
      cudnnStatus_t r =
          t->create(api_.cudnnCreateTensorDescriptor, api_.cudnnDestroyTensorDescriptor);
      if (r != CUDNN_STATUS_SUCCESS) return cudnn_rnn_failed(api_, r, "the weights");
    }
    const int gates = static_cast<int>(rnn::gates_of(n_.mode));
    for (int part = 0; part < n_.layers * n_.directions(); ++part) {
      const int columns = part < n_.directions() ? n_.input : n_.out() * n_.directions();
      TS_TRY(add(part, 0, gates, false, n_.hidden, columns));
      TS_TRY(add(part, gates, gates, false, n_.hidden, n_.out()));
      if (n_.has_biases) {
        TS_TRY(add(part, 0, gates, true, n_.hidden, 1));
        TS_TRY(add(part, gates, gates, true, n_.hidden, 1));
      }
      if (n_.projection > 0) TS_TRY(add(part, 2 * gates, 1, false, n_.projection, n_.hidden));
    }
    return ok();
  }

 private:
  Status add(int part, int first, int count, bool bias, int64_t rows, int64_t columns) {
    const int64_t bytes = rows * columns * static_cast<int64_t>(itemsize(n_.dtype));
    int64_t begin = -1;
    for (int id = first; id < first + count; ++id) {
      void *m = nullptr, *b = nullptr;
      cudnnStatus_t r =
          api_.cudnnGetRNNWeightParams(handle_, plan_->rnn.get(), part, plan_->weights, space_, id,
                                       matrix_.get(), &m, bias_.get(), &b);
      if (r != CUDNN_STATUS_SUCCESS) return cudnn_rnn_failed(api_, r, "finding a weight");
      const void* at = bias ? b : m;
      cudnnDataType_t type;
      int dims = 0, sizes[8] = {}, strides[8] = {};
      r = api_.cudnnGetTensorNdDescriptor((bias ? bias_ : matrix_).get(), 3, &type, &dims, sizes,
                                          strides);
      if (r != CUDNN_STATUS_SUCCESS) return cudnn_rnn_failed(api_, r, "measuring a weight");
      int64_t numel = 1;
      for (int i = 0; i < dims && i < 3; ++i) numel *= sizes[i];
      const int64_t offset = at ? static_cast<const char*>(at) - space_ : -1;
      if (begin < 0) begin = offset;
      if (offset < 0 || numel != rows * columns || offset != begin + (id - first) * bytes ||
          offset + bytes > static_cast<int64_t>(plan_->weights))
        return fail(Code::kUnsupported,
                    "cuDNN lays the weights of a recurrent network out unlike "
                    "it is known to");
    }
    plan_->places.push_back({begin, bytes * count});
    return ok();
  }

  const CudnnRnnApi& api_;
  cudnnHandle_t handle_;
  const CudnnRnn& n_;
  CudnnRnnPlan* plan_;
  char* space_;
  CudnnOwned<cudnnTensorDescriptor_t> matrix_, bias_;
};

}  // namespace

Status make_cudnn_rnn_plan(Device& d, CUstream stream, const CudnnRnnApi& api, cudnnHandle_t handle,
                           const CudnnRnn& n, CudnnRnnPlan* out) {
  *out = {};
  auto tried = [&](cudnnStatus_t r, const char* what) { return cudnn_rnn_failed(api, r, what); };
  TS_TRY(tried(describe_network(d, api, handle, n, out), "the description"));
  TS_TRY(tried(describe_data(api, n, n.input, &out->x), "the input"));
  TS_TRY(tried(describe_data(api, n, n.out() * n.directions(), &out->y), "the output"));
  TS_TRY(tried(describe_state(api, n, n.out(), &out->h), "the state"));
  if (n.mode == Mode::kLSTM) TS_TRY(tried(describe_state(api, n, n.hidden, &out->c), "the cells"));
  TS_TRY(tried(
      api.cudnnGetRNNTempSpaceSizes(handle, out->rnn.get(),
                                    n.train ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE,
                                    out->x.get(), &out->workspace, &out->reserve),
      "the workspace"));
  TS_TRY(tried(api.cudnnGetRNNWeightSpaceSize(handle, out->rnn.get(), &out->weights),
               "the size of the weights"));
  Scratch space(d, stream);  // only its addresses are asked about
  TS_TRY(space.take(out->weights));
  return PlaceFinder(api, handle, n, out, space.as<char>()).run();
}

}  // namespace tessera::cuda
