#include "cudnn_plan.h"

#include <algorithm>

namespace tessera::cuda {
namespace {

// Engine configurations that a heuristic proposes, the best first.
Status propose(const CudnnApi& api, const CudnnDescriptor& graph, cudnnBackendHeurMode_t mode,
               std::vector<CudnnDescriptor>* out) {
  out->clear();
  CudnnDescriptor heuristic;
  TS_TRY(heuristic.create(api, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "heuristic"));
  TS_TRY(heuristic.set_part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph, "the graph"));
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
  if (!out->empty()) return ok();
  char last[512] = "";
  api.cudnnGetLastErrorString(last, sizeof last);
  return fail(Code::kUnsupported, "cuDNN: none of the %lld engines of heuristic mode %d can (%s)",
              static_cast<long long>(count), static_cast<int>(mode), last);
}

// What its engine does to numbers keeps to the limits?
Status is_allowed(const CudnnApi& api, const CudnnDescriptor& config, const CudnnLimits& limits,
                  bool* allowed) {
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
             (limits.tensor_cores || !has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
  return ok();
}

Status make_plan(const CudnnApi& api, cudnnHandle_t handle, const CudnnDescriptor& config,
                 CudnnPlan* out) {
  TS_TRY(out->plan.create(api, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "execution plan"));
  TS_TRY(
      out->plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle, "the handle"));
  TS_TRY(out->plan.set_part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config, "the engine"));
  TS_TRY(out->plan.finalize());
  int64_t count = 0;
  return out->plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count,
                       &out->workspace, "the workspace");
}

}  // namespace

Status cudnn_plans(const CudnnApi& api, cudnnHandle_t handle, const MakeCudnnGraph& make,
                   const CudnnLimits& limits, int64_t wanted, std::vector<CudnnPlan>* out,
                   std::string* why) {
  out->clear();
  *why = "no engine keeps to the limits";
  for (cudnnBackendHeurMode_t mode :
       {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK}) {
    auto graph = std::make_shared<CudnnParts>();
    std::vector<CudnnDescriptor> configs;
    TS_TRY(make(graph.get()));
    if (Status s = propose(api, graph->back(), mode, &configs); !s.ok()) {
      *why = s.message;
      continue;
    }
    for (CudnnDescriptor& config : configs) {
      if (static_cast<int64_t>(out->size()) >= wanted) break;
      bool allowed = false;
      CudnnPlan plan;
      Status s = is_allowed(api, config, limits, &allowed);
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

Status run_cudnn(const CudnnApi& api, cudnnHandle_t handle, const CudnnPlan& plan,
                 std::span<const CudnnData> data, void* workspace, const char* what) {
  std::vector<int64_t> names;
  std::vector<const void*> pointers;
  for (const CudnnData& d : data) {
    names.push_back(d.name);
    pointers.push_back(d.data);
  }
  const auto n = static_cast<int64_t>(data.size());
  CudnnDescriptor pack;
  TS_TRY(pack.create(api, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "variant pack"));
  TS_TRY(
      pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, names.data(), "the names"));
  TS_TRY(pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, pointers.data(),
                  "the data"));
  TS_TRY(pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace,
                  "the workspace"));
  TS_TRY(pack.finalize());
  cudnnStatus_t r = api.cudnnBackendExecute(handle, plan.plan.get(), pack.get());
  if (r == CUDNN_STATUS_SUCCESS) return ok();
  char last[512] = "";
  api.cudnnGetLastErrorString(last, sizeof last);
  return fail(Code::kFailed, "cuDNN: %s in running %s (%s)", api.cudnnGetErrorString(r), what,
              last);
}

}  // namespace tessera::cuda
