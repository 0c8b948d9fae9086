#include "matmul_plan.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "data_type.h"
#include "graphs.h"
#include "hash.h"
#include "kernels.h"

namespace tessera::cuda {
namespace {

struct Plan {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulAlgo_t algorithm;
  size_t workspace = 0;
  bool possible = false;
};

struct State {
  // Held during a launch too: the bias address is part of the plan's descriptor.
  std::mutex mutex;
  cublasLtHandle_t handle = nullptr;
  std::unordered_map<Hash128, Plan, HashOfHash> plans;
  std::unordered_map<CUstream, CUdeviceptr> workspaces;
};
// Leaked: the driver may be gone before destructors run.
State& state(const Device& d) {
  static State* all = new State[kMaxDevices];
  return all[d.ordinal];
}

// What products are summed and scaled in.
bool in_double(DType t) { return t == DType::kFloat64 || t == DType::kComplex128; }
cudaDataType_t scale_type(DType t) {
  if (is_complex(t)) return data_type(t);
  return in_double(t) ? CUDA_R_64F : CUDA_R_32F;
}

cublasComputeType_t compute_type(const MatmulShape& s) {
  if (in_double(s.dtype)) return CUBLAS_COMPUTE_64F;
  const bool single = s.dtype == DType::kFloat32 || s.dtype == DType::kComplex64;
  return s.tf32 && single ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

uint32_t alignment_of(const void* p) {
  uintptr_t v = reinterpret_cast<uintptr_t>(p);
  return v == 0 ? 256 : 1u << std::min(std::countr_zero(v), 8);
}

Status lt(cublasStatus_t r, const CublasLtApi& api, const char* what) {
  if (r == CUBLAS_STATUS_SUCCESS) return ok();
  return fail(Code::kFailed, "cuBLASLt: %s in %s", api.cublasLtGetStatusString(r), what);
}

Hash128 key_of(const MatmulShape& s, const void* bias) {
  Hasher h(7);
  h.add(static_cast<uint64_t>(s.dtype) | uint64_t{s.bias} << 8 | uint64_t{s.a.transposed} << 9 |
        uint64_t{s.b.transposed} << 10 | uint64_t{s.tf32} << 11 |
        uint64_t{alignment_of(s.a.data)} << 16 | uint64_t{alignment_of(s.b.data)} << 28 |
        uint64_t{alignment_of(s.out)} << 40 | uint64_t{s.bias ? alignment_of(bias) : 0} << 52);
  for (int64_t v : {s.batch, s.m, s.n, s.k, s.a.ld, s.a.batch_stride, s.b.ld, s.b.batch_stride})
    h.add(static_cast<uint64_t>(v));
  return h.finish();
}

Status make_layout(const CublasLtApi& api, cublasLtMatrixLayout_t* out, DType t, int64_t rows,
                   int64_t columns, int64_t ld, int64_t batch, int64_t stride) {
  TS_TRY(lt(api.cublasLtMatrixLayoutCreate(out, data_type(t), static_cast<uint64_t>(rows),
                                           static_cast<uint64_t>(columns), ld),
            api, "a matrix layout"));
  if (batch == 1) return ok();
  int32_t count = static_cast<int32_t>(batch);
  TS_TRY(lt(api.cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                                 sizeof count),
            api, "a batch count"));
  return lt(api.cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                 &stride, sizeof stride),
            api, "a batch stride");
}

// cuBLASLt thinks in columns: the row-major product a b is its product b' a', where each operand's
// memory is read as the transpose of what we call it. So b comes first, and "rows" are our columns.
Status describe(const CublasLtApi& api, const MatmulShape& s, const void* bias, Plan* p) {
  TS_TRY(lt(api.cublasLtMatmulDescCreate(&p->operation, compute_type(s), scale_type(s.dtype)), api,
            "a descriptor"));
  auto set = [&](cublasLtMatmulDescAttributes_t a, const auto& v) {
    return lt(api.cublasLtMatmulDescSetAttribute(p->operation, a, &v, sizeof v), api,
              "a descriptor's attribute");
  };
  cublasOperation_t op_b = s.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  cublasOperation_t op_a = s.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  TS_TRY(set(CUBLASLT_MATMUL_DESC_TRANSA, op_b));
  TS_TRY(set(CUBLASLT_MATMUL_DESC_TRANSB, op_a));
  if (s.bias) {
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    TS_TRY(set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue));
    TS_TRY(set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
  }
  TS_TRY(make_layout(api, &p->a, s.dtype, s.b.transposed ? s.k : s.n, s.b.transposed ? s.n : s.k,
                     s.b.ld, s.batch, s.b.batch_stride));
  TS_TRY(make_layout(api, &p->b, s.dtype, s.a.transposed ? s.m : s.k, s.a.transposed ? s.k : s.m,
                     s.a.ld, s.batch, s.a.batch_stride));
  return make_layout(api, &p->c, s.dtype, s.n, s.m, s.n, s.batch, s.m * s.n);
}

Status choose_algorithm(const CublasLtApi& api, cublasLtHandle_t handle, const MatmulShape& s,
                        Plan* p) {
  cublasLtMatmulPreference_t preference;
  TS_TRY(lt(api.cublasLtMatmulPreferenceCreate(&preference), api, "a preference"));
  auto set = [&](cublasLtMatmulPreferenceAttributes_t a, const auto& v) {
    api.cublasLtMatmulPreferenceSetAttribute(preference, a, &v, sizeof v);
  };
  size_t workspace = kMatmulWorkspace;
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
  // Parts of a split sum are added in the compute type: never in 16 bits.
  uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(s.b.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(s.a.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(s.out));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(s.out));
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  cublasStatus_t r = api.cublasLtMatmulAlgoGetHeuristic(handle, p->operation, p->a, p->b, p->c,
                                                        p->c, preference, 1, &found, &count);
  api.cublasLtMatmulPreferenceDestroy(preference);
  p->possible = r == CUBLAS_STATUS_SUCCESS && count > 0 && found.state == CUBLAS_STATUS_SUCCESS;
  p->algorithm = found.algo;
  p->workspace = found.workspaceSize;
  return ok();
}

// A program that never repeats a shape must not fill memory with plans.
constexpr size_t kMaxPlans = 4096;

void destroy(const CublasLtApi& api, Plan& p) {
  if (p.operation) api.cublasLtMatmulDescDestroy(p.operation);
  for (cublasLtMatrixLayout_t layout : {p.a, p.b, p.c})
    if (layout) api.cublasLtMatrixLayoutDestroy(layout);
}

Status workspace_of(Device& d, State& s, CUstream stream, CUdeviceptr* out) {
  auto it = s.workspaces.find(stream);
  if (it == s.workspaces.end()) {
    CUdeviceptr memory = 0;
    TS_TRY(
        check(d, driver().cuMemAlloc(&memory, kMatmulWorkspace), "a matrix product's workspace"));
    it = s.workspaces.emplace(stream, memory).first;
  }
  *out = it->second;
  return ok();
}

}  // namespace

Status run_cublaslt(Device& d, CUstream stream, const MatmulShape& shape, const void* bias,
                    bool* unsupported) {
  const char* why = nullptr;
  const CublasLtApi* api = cublaslt_api(&why);
  if (!api) return fail(Code::kFailed, "matrix products on CUDA need cuBLASLt: %s", why);
  State& s = state(d);
  std::lock_guard lock(s.mutex);
  if (!s.handle) TS_TRY(lt(api->cublasLtCreate(&s.handle), *api, "starting it"));
  if (s.plans.size() >= kMaxPlans) {
    for (auto& [key, plan] : s.plans) destroy(*api, plan);
    s.plans.clear();
  }
  auto [it, fresh] = s.plans.try_emplace(key_of(shape, bias));
  Plan& p = it->second;
  if (fresh) {
    Status made = describe(*api, shape, bias, &p);
    if (made.ok()) made = choose_algorithm(*api, s.handle, shape, &p);
    if (!made.ok()) {
      destroy(*api, p);
      s.plans.erase(it);
      return made;
    }
  }
  *unsupported = !p.possible;
  if (!p.possible) return ok();
  if (shape.bias)
    TS_TRY(lt(api->cublasLtMatmulDescSetAttribute(p.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                  &bias, sizeof bias),
              *api, "the bias"));
  CUdeviceptr workspace = 0;
  // A graph has room of its own: it may run at any time, on any stream.
  Scratch of_graph(d, stream);
  if (p.workspace > 0 && is_capturing(stream)) {
    TS_TRY(of_graph.take(p.workspace));
    workspace = of_graph.address();
  } else if (p.workspace > 0) {
    TS_TRY(workspace_of(d, s, stream, &workspace));
  }
  // Of complex numbers the imaginary part too.
  const float one_f[2] = {1, 0}, zero_f[2] = {0, 0};
  const double one_d[2] = {1, 0}, zero_d[2] = {0, 0};
  const bool f64 = in_double(shape.dtype);
  const void* alpha = f64 ? static_cast<const void*>(one_d) : one_f;
  const void* beta = f64 ? static_cast<const void*>(zero_d) : zero_f;
  return lt(api->cublasLtMatmul(s.handle, p.operation, alpha, shape.b.data, p.a, shape.a.data, p.b,
                                beta, shape.out, p.c, shape.out, p.c, &p.algorithm,
                                reinterpret_cast<void*>(workspace), p.workspace,
                                reinterpret_cast<cudaStream_t>(stream)),
            *api, "a matrix product");
}

namespace {

void forget_workspace(Device& d, CUstream stream) {
  State& s = state(d);
  std::lock_guard lock(s.mutex);
  auto it = s.workspaces.find(stream);
  if (it == s.workspaces.end()) return;
  driver().cuMemFree(it->second);
  s.workspaces.erase(it);
}
TS_CUDA_AT_STREAM_END(forget_workspace)

}  // namespace

}  // namespace tessera::cuda
