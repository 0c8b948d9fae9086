#include "cudnn_plan.h"

#include <algorithm>

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

Status CudnnDescriptor::finalize() {
  return check(api_->cudnnBackendFinalize(descriptor_), "in", "finalisation");
}

void CudnnDescriptor::reset() {
  if (descriptor_) api_->cudnnBackendDestroyDescriptor(descriptor_);
  descriptor_ = nullptr;
}

namespace {

cudnnDataType_t data_type(DType t) {
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

Status make_tensor(const CudnnApi& api, const CudnnConv& c, const CudnnTensor& t, int64_t id,
                   const char* name, CudnnDescriptor* out) {
  const cudnnDataType_t type = data_type(c.dtype);
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

Status set_part(CudnnDescriptor* of, cudnnBackendAttributeName_t attribute,
                const CudnnDescriptor& part, const char* what) {
  cudnnBackendDescriptor_t d = part.get();
  return of->set(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &d, what);
}

// A graph of the one operation. `parts` gets all it is made of, the graph last.
Status make_graph(const CudnnApi& api, cudnnHandle_t handle, const CudnnConv& c,
                  std::vector<CudnnDescriptor>* parts) {
  parts->clear();
  parts->resize(6);
  CudnnDescriptor *p = parts->data(), &operation = p[4], &graph = p[5];
  TS_TRY(make_tensor(api, c, c.x, kCudnnX, "input tensor", &p[0]));
  TS_TRY(make_tensor(api, c, c.w, kCudnnW, "weight tensor", &p[1]));
  TS_TRY(make_tensor(api, c, c.y, kCudnnY, "output tensor", &p[2]));
  TS_TRY(make_convolution(api, c, &p[3]));
  const OperationNames& o = kOperations[static_cast<int>(c.kind)];
  TS_TRY(operation.create(api, o.type, o.name));
  TS_TRY(set_part(&operation, o.x, p[0], "the input"));
  TS_TRY(set_part(&operation, o.w, p[1], "the weight"));
  TS_TRY(set_part(&operation, o.y, p[2], "the output"));
  TS_TRY(set_part(&operation, o.convolution, p[3], "the convolution"));
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
  TS_TRY(set_part(&graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, operation, "the operation"));
  return graph.finalize();
}

// Engine configurations that a heuristic proposes, the best first.
Status propose(const CudnnApi& api, const CudnnDescriptor& graph, cudnnBackendHeurMode_t mode,
               std::vector<CudnnDescriptor>* out) {
  out->clear();
  CudnnDescriptor heuristic;
  TS_TRY(heuristic.create(api, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "heuristic"));
  TS_TRY(set_part(&heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph, "the graph"));
  TS_TRY(heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode, "the mode"));
  TS_TRY(heuristic.finalize());
  int64_t count = 0;
  TS_TRY(heuristic.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count,
                       nullptr, "the number of results"));
  out->resize(static_cast<size_t>(std::max<int64_t>(count, 0)));
  std::vector<cudnnBackendDescriptor_t> raw;
  for (CudnnDescriptor& config : *out) {
    TS_TRY(config.create(api, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "engine configuration"));
    raw.push_back(config.get());
  }
  if (raw.empty()) return ok();
  int64_t found = 0;
  TS_TRY(heuristic.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &found,
                       raw.data(), "the results"));
  out->resize(static_cast<size_t>(std::clamp<int64_t>(found, 0, count)));
  return ok();
}

// What its engine does to numbers keeps to the limits?
Status is_allowed(const CudnnApi& api, const CudnnConv& c, const CudnnDescriptor& config,
                  const CudnnLimits& limits, bool* allowed) {
  CudnnDescriptor engine;
  TS_TRY(engine.create(api, CUDNN_BACKEND_ENGINE_DESCRIPTOR, "engine"));
  cudnnBackendDescriptor_t raw = engine.get();
  int64_t count = 0;
  TS_TRY(config.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &raw,
                    "the engine"));
  constexpr int64_t kNotes = CUDNN_NUMERICAL_NOTE_TYPE_COUNT;
  cudnnBackendNumericalNote_t notes[kNotes];
  TS_TRY(engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, kNotes, &count,
                    notes, "the numerical notes"));
  count = std::clamp<int64_t>(count, 0, kNotes);
  auto has = [&](cudnnBackendNumericalNote_t note) {
    return std::find(notes, notes + count, note) != notes + count;
  };
  *allowed = !has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) &&
             !has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) &&
             !(limits.deterministic && has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) &&
             !(c.dtype == DType::kFloat32 && !limits.tf32 && has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
  return ok();
}

Status make_plan(const CudnnApi& api, cudnnHandle_t handle, const CudnnDescriptor& config,
                 CudnnPlan* out) {
  TS_TRY(out->plan.create(api, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "execution plan"));
  TS_TRY(
      out->plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle, "the handle"));
  TS_TRY(set_part(&out->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config, "the engine"));
  TS_TRY(out->plan.finalize());
  int64_t count = 0;
  return out->plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count,
                       &out->workspace, "the workspace");
}

}  // namespace

Status cudnn_plans(const CudnnApi& api, cudnnHandle_t handle, const CudnnConv& conv,
                   const CudnnLimits& limits, int64_t wanted, std::vector<CudnnPlan>* out,
                   std::string* why) {
  out->clear();
  *why = "no engine keeps to the limits";
  for (cudnnBackendHeurMode_t mode :
       {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK}) {
    auto graph = std::make_shared<std::vector<CudnnDescriptor>>();
    std::vector<CudnnDescriptor> configs;
    TS_TRY(make_graph(api, handle, conv, graph.get()));
    if (Status s = propose(api, graph->back(), mode, &configs); !s.ok()) {
      *why = s.message;
      continue;
    }
    for (CudnnDescriptor& config : configs) {
      if (static_cast<int64_t>(out->size()) >= wanted) break;
      bool allowed = false;
      CudnnPlan plan;
      Status s = is_allowed(api, conv, config, limits, &allowed);
      if (s.ok() && !allowed) continue;
      if (s.ok()) s = make_plan(api, handle, config, &plan);
      if (!s.ok()) {
        *why = s.message;
        continue;
      }
      if (plan.workspace > limits.workspace) {
        *why = "its engines need more workspace than is allowed";
        continue;
      }
      plan.graph = graph;
      plan.config = std::move(config);
      out->push_back(std::move(plan));
    }
    if (!out->empty()) return ok();
  }
  return ok();
}

Status run_cudnn(const CudnnApi& api, cudnnHandle_t handle, const CudnnPlan& plan, const void* x,
                 const void* w, const void* y, void* workspace) {
  const int64_t names[] = {kCudnnX, kCudnnW, kCudnnY};
  const void* data[] = {x, w, y};
  CudnnDescriptor pack;
  TS_TRY(pack.create(api, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "variant pack"));
  TS_TRY(pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, names, "the names"));
  TS_TRY(pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, data, "the data"));
  TS_TRY(pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace,
                  "the workspace"));
  TS_TRY(pack.finalize());
  cudnnStatus_t r = api.cudnnBackendExecute(handle, plan.plan.get(), pack.get());
  if (r == CUDNN_STATUS_SUCCESS) return ok();
  char last[512] = "";
  api.cudnnGetLastErrorString(last, sizeof last);
  return fail(Code::kFailed, "cuDNN: %s in running a convolution (%s)", api.cudnnGetErrorString(r),
              last);
}

}  // namespace tessera::cuda
