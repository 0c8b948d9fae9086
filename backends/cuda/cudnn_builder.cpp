#include "cudnn_builder.h"

namespace tessera::cuda {

CudnnDescriptor& CudnnGraphBuilder::create(cudnnBackendDescriptorType_t type, const char* what) {
  parts_.emplace_back();
  if (status_.ok()) status_ = parts_.back().create(api_, type, what);
  return parts_.back();
}

void CudnnGraphBuilder::set(CudnnDescriptor& d, cudnnBackendAttributeName_t name,
                            cudnnBackendAttributeType_t type, int64_t count, const void* values,
                            const char* what) {
  if (status_.ok()) status_ = d.set(name, type, count, values, what);
}

void CudnnGraphBuilder::part(CudnnDescriptor& d, cudnnBackendAttributeName_t name,
                             cudnnBackendDescriptor_t value, const char* what) {
  set(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value, what);
}

cudnnBackendDescriptor_t CudnnGraphBuilder::done(CudnnDescriptor& d) {
  if (status_.ok()) status_ = d.finalize();
  return d.get();
}

CudnnGraphBuilder::Tensor CudnnGraphBuilder::tensor(int64_t name, const char* what,
                                                    const CudnnShape& s, cudnnDataType_t type,
                                                    bool is_virtual, bool by_value) {
  // Vectors of 16 bytes: what fused kernels load.
  const int64_t alignment = by_value ? 4 : 16;
  const bool yes = true;
  CudnnDescriptor& d = create(CUDNN_BACKEND_TENSOR_DESCRIPTOR, what);
  set(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type, "the dtype");
  set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, s.sizes, "the sizes");
  set(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, s.strides, "the strides");
  set(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &name, "the name");
  set(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment, "the alignment");
  if (is_virtual)
    set(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &yes, "having no memory");
  if (by_value) set(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &yes, "being a value");
  return done(d);
}

CudnnGraphBuilder::Tensor CudnnGraphBuilder::matmul(const char* what, Tensor a, Tensor b,
                                                    Tensor to) {
  const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  CudnnDescriptor& how = create(CUDNN_BACKEND_MATMUL_DESCRIPTOR, what);
  set(how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute, "the compute type");
  cudnnBackendDescriptor_t made = done(how);
  CudnnDescriptor& d = create(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, what);
  part(d, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a, "the first factor");
  part(d, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b, "the second factor");
  part(d, CUDNN_ATTR_OPERATION_MATMUL_CDESC, to, "the product");
  part(d, CUDNN_ATTR_OPERATION_MATMUL_DESC, made, "the kind");
  operations_.push_back(done(d));
  return to;
}

CudnnGraphBuilder::Tensor CudnnGraphBuilder::reduce(const char* what, cudnnReduceTensorOp_t how,
                                                    Tensor x, Tensor to) {
  const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  CudnnDescriptor& kind = create(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, what);
  set(kind, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &how, "the mode");
  set(kind, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute, "the compute type");
  cudnnBackendDescriptor_t made = done(kind);
  CudnnDescriptor& d = create(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, what);
  part(d, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x, "the operand");
  part(d, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, to, "the result");
  part(d, CUDNN_ATTR_OPERATION_REDUCTION_DESC, made, "the kind");
  operations_.push_back(done(d));
  return to;
}

CudnnGraphBuilder::Tensor CudnnGraphBuilder::reshape(const char* what, Tensor x, Tensor to) {
  CudnnDescriptor& d = create(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, what);
  part(d, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x, "the operand");
  part(d, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, to, "the result");
  operations_.push_back(done(d));
  return to;
}

CudnnGraphBuilder::Tensor CudnnGraphBuilder::pointwise(const char* what, cudnnPointwiseMode_t mode,
                                                       Tensor x, Tensor to, Also also) {
  CudnnDescriptor& how = create(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, what);
  set(how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode, "the mode");
  set(how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &also.compute,
      "the compute type");
  if (also.axis >= 0)
    set(how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &also.axis, "the axis");
  cudnnBackendDescriptor_t made = done(how);
  CudnnDescriptor& d = create(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, what);
  part(d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, made, "the kind");
  part(d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x, "the operand");
  if (also.b) part(d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, also.b, "the second operand");
  if (also.t) part(d, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, also.t, "the condition");
  part(d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to, "the result");
  operations_.push_back(done(d));
  return to;
}

Status CudnnGraphBuilder::finish(cudnnHandle_t handle) {
  CudnnDescriptor& graph = create(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "operation graph");
  set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle, "the handle");
  set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
      static_cast<int64_t>(operations_.size()), operations_.data(), "the operations");
  done(graph);
  return status_;
}

}  // namespace tessera::cuda
