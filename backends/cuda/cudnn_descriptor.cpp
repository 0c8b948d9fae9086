#include "cudnn_descriptor.h"

namespace tessera::cuda {

CudnnDescriptor& CudnnDescriptor::operator=(CudnnDescriptor&& o) noexcept {
  if (this != &o) {
    reset();
    api_ = o.api_;
    name_ = o.name_;
    descriptor_ = o.descriptor_;
    o.descriptor_ = nullptr;
  }
  return *this;
}

Status CudnnDescriptor::check(cudnnStatus_t r, const char* doing, const char* what) const {
  if (r == CUDNN_STATUS_SUCCESS) return ok();
  char last[512] = "";
  api_->cudnnGetLastErrorString(last, sizeof last);
  // Codes of 3000 and above but below 4000: it is not made for this.
  return fail(CUDNN_STATUS_CATEGORY(static_cast<int>(r)) == CUDNN_STATUS_NOT_SUPPORTED
                  ? Code::kUnsupported
                  : Code::kFailed,
              "cuDNN: %s %s %s of the %s descriptor (%s)", api_->cudnnGetErrorString(r), doing,
              what, name_, last);
}

Status CudnnDescriptor::create(const CudnnApi& api, cudnnBackendDescriptorType_t type,
                               const char* name) {
  reset();
  api_ = &api;
  name_ = name;
  return check(api.cudnnBackendCreateDescriptor(type, &descriptor_), "in", "creation");
}

Status CudnnDescriptor::set(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type,
                            int64_t count, const void* values, const char* what) {
  return check(api_->cudnnBackendSetAttribute(descriptor_, attribute, type, count, values),
               "in setting", what);
}

Status CudnnDescriptor::get(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type,
                            int64_t room, int64_t* found, void* values, const char* what) const {
  return check(api_->cudnnBackendGetAttribute(descriptor_, attribute, type, room, found, values),
               "in reading", what);
}

Status CudnnDescriptor::set_part(cudnnBackendAttributeName_t attribute, const CudnnDescriptor& part,
                                 const char* what) {
  cudnnBackendDescriptor_t d = part.get();
  return set(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &d, what);
}

Status CudnnDescriptor::finalize() {
  return check(api_->cudnnBackendFinalize(descriptor_), "in", "finalisation");
}

void CudnnDescriptor::reset() {
  if (descriptor_) api_->cudnnBackendDestroyDescriptor(descriptor_);
  descriptor_ = nullptr;
}

cudnnDataType_t cudnn_data_type(DType t) {
  switch (t) {
    case DType::kFloat16:
      return CUDNN_DATA_HALF;
    case DType::kBFloat16:
      return CUDNN_DATA_BFLOAT16;
    case DType::kFloat64:
      return CUDNN_DATA_DOUBLE;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

}  // namespace tessera::cuda
