#include "cudnn_conv.h"

namespace tessera::cuda {
namespace {

Status make_tensor(const CudnnApi& api, const CudnnConv& c, const CudnnTensor& t, int64_t id,
                   const char* name, CudnnDescriptor* out) {
  const cudnnDataType_t type = cudnn_data_type(c.dtype);
  const int64_t dims = c.spatial + 2;
  TS_TRY(out->create(api, CUDNN_BACKEND_TENSOR_DESCRIPTOR, name));
  TS_TRY(out->set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type, "the dtype"));
  TS_TRY(out->set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, dims, t.sizes, "the sizes"));
  TS_TRY(out->set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, dims, t.strides, "the strides"));
  TS_TRY(out->set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id, "the name"));
  TS_TRY(out->set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &t.alignment,
                  "the alignment"));
  return out->finalize();
}

Status make_convolution(const CudnnApi& api, const CudnnConv& c, CudnnDescriptor* out) {
  const cudnnDataType_t type = c.dtype == DType::kFloat64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const int64_t n = c.spatial;
  TS_TRY(out->create(api, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "convolution"));
  TS_TRY(out->set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type,
                  "the compute type"));
  TS_TRY(out->set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode,
                  "the mode"));
  TS_TRY(out->set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &n,
                  "the number of dimensions"));
  TS_TRY(
      out->set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, n, c.padding, "the padding"));
  TS_TRY(out->set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, n, c.padding,
                  "the padding behind"));
  TS_TRY(
      out->set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, n, c.stride, "the stride"));
  TS_TRY(
      out->set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, n, c.dilation, "the dilation"));
  return out->finalize();
}

// The attributes of one of the three operations.
struct OperationNames {
  cudnnBackendDescriptorType_t type;
  const char* name;
  cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
};
constexpr OperationNames kOperations[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, "forward operation",
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, "backward data operation",
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, "backward filter operation",
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

}  // namespace

Status cudnn_conv_graph(const CudnnApi& api, cudnnHandle_t handle, const CudnnConv& c,
                        CudnnParts* parts) {
  parts->clear();
  parts->resize(6);
  CudnnDescriptor *p = parts->data(), &operation = p[4], &graph = p[5];
  TS_TRY(make_tensor(api, c, c.x, kCudnnX, "input tensor", &p[0]));
  TS_TRY(make_tensor(api, c, c.w, kCudnnW, "weight tensor", &p[1]));
  TS_TRY(make_tensor(api, c, c.y, kCudnnY, "output tensor", &p[2]));
  TS_TRY(make_convolution(api, c, &p[3]));
  const OperationNames& o = kOperations[static_cast<int>(c.kind)];
  TS_TRY(operation.create(api, o.type, o.name));
  TS_TRY(operation.set_part(o.x, p[0], "the input"));
  TS_TRY(operation.set_part(o.w, p[1], "the weight"));
  TS_TRY(operation.set_part(o.y, p[2], "the output"));
  TS_TRY(operation.set_part(o.convolution, p[3], "the convolution"));
  const float one_f = 1, zero_f = 0;
  const double one_d = 1, zero_d = 0;
  const bool f64 = c.dtype == DType::kFloat64;
  const cudnnBackendAttributeType_t number = f64 ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT;
  TS_TRY(operation.set(o.alpha, number, 1,
                       f64 ? static_cast<const void*>(&one_d) : static_cast<const void*>(&one_f),
                       "alpha"));
  TS_TRY(operation.set(o.beta, number, 1,
                       f64 ? static_cast<const void*>(&zero_d) : static_cast<const void*>(&zero_f),
                       "beta"));
  TS_TRY(operation.finalize());
  TS_TRY(graph.create(api, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "operation graph"));
  TS_TRY(graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle, "the handle"));
  TS_TRY(graph.set_part(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation, "the operation"));
  return graph.finalize();
}

}  // namespace tessera::cuda
