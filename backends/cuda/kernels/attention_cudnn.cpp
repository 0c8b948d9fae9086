// Fused attention by cuDNN. Three kernels (see tessera/ops/attention/fused.cpp):
//   attention_support   nothing is computed: is there a plan? Tensors have shapes and no data.
//   attention_forward   out, stats = of queries, keys, values
//   attention_backward  dq, dk, dv = of gradient, queries, keys, values, out, stats
// Plans are kept by shape, refusals too.
#include <algorithm>
#include <limits>
#include <unordered_map>

#include "../cudnn_attention.h"
#include "../cudnn_handle.h"
#include "../graphs.h"
#include "../hash.h"
#include "../kernels.h"
#include "tessera/ops/conv/settings.h"

namespace tessera::cuda {
namespace {

struct Found {
  CudnnPlan plan;
  bool possible = false;
  std::string why;
};
// Guarded by the handle's mutex. Leaked: the driver may be gone before destructors run.
using Plans = std::unordered_map<Hash128, Found, HashOfHash>;
Plans& plans_of(const Device& d) {
  static Plans* all = new Plans[kMaxDevices];
  return all[d.ordinal];
}
// A program that never repeats a shape must not fill memory with plans.
constexpr size_t kMaxPlans = 1024;
constexpr int64_t kMaxWorkspace = int64_t{8} << 30;
constexpr size_t kOldestVersion = 91000;
// Older ones compute lengths wrong that are no multiple of a tile, unless they are told in other
// ways.
constexpr size_t kVersionOfAnyLength = 91600;
constexpr int64_t kTile = 128;

// Strides of dimensions of size one may be anything; here they are what a dense tensor has.
void read_strides(const KernelTensor& t, int64_t (&to)[4]) {
  int64_t step = 1;
  for (int d = 3; d >= 0; --d) {
    to[d] = t.sizes[d] == 1 ? step : t.strides[d];
    step = std::max(step, to[d] * t.sizes[d]);
  }
}

CudnnAttention describe(const KernelTensor& q, const KernelTensor& k, const KernelTensor& v,
                        const KernelTensor& out, const KernelArgs& args) {
  CudnnAttention a{};
  a.dtype = q.dtype;
  a.causal = args.ints[0] != 0;
  a.batch = q.sizes[0];
  a.heads = q.sizes[1];
  a.kv_heads = k.sizes[1];
  a.queries = q.sizes[2];
  a.keys = k.sizes[2];
  a.width = q.sizes[3];
  a.value_width = v.sizes[3];
  read_strides(q, a.q);
  read_strides(k, a.k);
  read_strides(v, a.v);
  read_strides(out, a.out);
  return a;
}
CudnnAttention describe_backward(CudnnAttention a, const KernelTensor& dq, const KernelTensor& dk,
                                 const KernelTensor& dv, const KernelArgs& args) {
  a.backward = true;
  a.deterministic = args.ints[1] & conv::kDeterministic;
  read_strides(dq, a.dq);
  read_strides(dk, a.dk);
  read_strides(dv, a.dv);
  return a;
}

Hash128 key_of(const CudnnAttention& a) {
  Hasher h(13);
  h.add(static_cast<uint64_t>(a.dtype) | uint64_t{a.backward} << 8 | uint64_t{a.causal} << 9 |
        uint64_t{a.deterministic} << 10);
  for (int64_t n : {a.batch, a.heads, a.kv_heads, a.queries, a.keys, a.width, a.value_width})
    h.add(static_cast<uint64_t>(n));
  for (const int64_t(*s)[4] : {&a.q, &a.k, &a.v, &a.out, &a.dq, &a.dk, &a.dv})
    for (int64_t n : *s) h.add(static_cast<uint64_t>(n));
  return h.finish();
}

// The library and a handle that is turned to the stream, or in *why the reason that there is none.
// The handle's mutex is held.
Status ready(CudnnHandle& h, CUstream stream, const CudnnApi** api, std::string* why) {
  const char* missing = nullptr;
  *api = cudnn_use() == CudnnUse::kNever ? nullptr : cudnn_api(&missing);
  if (!*api) {
    *why = missing ? missing : "TESSERA_CUDNN=0";
    return ok();
  }
  if ((*api)->cudnnGetVersion() < kOldestVersion) {
    *why = "this version of cuDNN is too old";
    *api = nullptr;
    return ok();
  }
  TS_TRY(open_cudnn(**api, h, stream));
  if (h.handle) return ok();
  *why = h.broken;
  *api = nullptr;
  return ok();
}

// A found plan is good until the next call.
Status find_plan(Device& d, const CudnnApi& api, CudnnHandle& h, const CudnnAttention& a,
                 Found** out) {
  Plans& plans = plans_of(d);
  const Hash128 key = key_of(a);
  if (auto it = plans.find(key); it != plans.end()) {
    *out = &it->second;
    return ok();
  }
  if (plans.size() >= kMaxPlans && !is_capturing(h.stream)) {
    TS_TRY(check(d, driver().cuCtxSynchronize(), "forgetting plans of attention"));
    plans.clear();
  }
  Found& found = plans[key];
  *out = &found;
  if (api.cudnnGetVersion() < kVersionOfAnyLength &&
      (a.queries % kTile != 0 || a.keys % kTile != 0)) {
    found.why = "lengths that are no multiple of 128 need cuDNN 9.16";
    return ok();
  }
  // What is deterministic is so by its graph: engines carry no note of it.
  const CudnnLimits limits{false, true, kMaxWorkspace};
  auto graph = [&](CudnnParts* parts) { return cudnn_attention_graph(api, h.handle, a, parts); };
  std::vector<CudnnPlan> made;
  Status s = cudnn_plans(api, h.handle, graph, limits, 1, &made, &found.why);
  if (!s.ok()) found.why = s.message;
  found.possible = !made.empty();
  if (found.possible) found.plan = std::move(made[0]);
  return ok();
}

Status refused(const std::string& why) {
  TS_TRY(cudnn_refuses("attention", why.c_str()));
  return fail(Code::kUnsupported, "fused attention: %s", why.c_str());
}

// Inputs: queries, keys, values, out; where a gradient is wanted also those of the first three.
Status run_support(Device& d, CUstream stream, const KernelArgs& args) {
  CudnnHandle& h = cudnn_handle(d);
  std::lock_guard lock(h.mutex);
  const CudnnApi* api = nullptr;
  std::string why;
  TS_TRY(ready(h, stream, &api, &why));
  if (!api) return refused(why);
  const KernelTensor* in = args.inputs;
  const CudnnAttention a = describe(in[0], in[1], in[2], in[3], args);
  Found* found = nullptr;
  TS_TRY(find_plan(d, *api, h, a, &found));
  if (!found->possible) return refused("forward: " + found->why);
  if (args.num_inputs < 7) return ok();
  TS_TRY(find_plan(d, *api, h, describe_backward(a, in[4], in[5], in[6], args), &found));
  return found->possible ? ok() : refused("backward: " + found->why);
}

// Runs the plan of `a`, which the support kernel said there is; `extra` bytes of scratch are handed
// to `data`, which fills in what the plan is given.
template <class F>
Status run_plan(Device& d, CUstream stream, const CudnnAttention& a, size_t extra, F data) {
  CudnnHandle& h = cudnn_handle(d);
  std::lock_guard lock(h.mutex);
  const CudnnApi* api = nullptr;
  std::string why;
  TS_TRY(ready(h, stream, &api, &why));
  if (!api) return refused(why);
  Found* found = nullptr;
  TS_TRY(find_plan(d, *api, h, a, &found));
  if (!found->possible) return refused(found->why);
  Scratch own(d, stream), workspace(d, stream);
  if (extra > 0) TS_TRY(own.take(extra));
  if (found->plan.workspace > 0) TS_TRY(workspace.take(static_cast<size_t>(found->plan.workspace)));
  std::vector<CudnnData> given;
  data(own.as<char>(), &given);
  return run_cudnn(*api, h.handle, found->plan, given, reinterpret_cast<void*>(workspace.address()),
                   "attention");
}

Status check_alignment(const KernelArgs& args) {
  for (int i = 0; i < args.num_inputs + args.num_outputs; ++i) {
    const void* p =
        i < args.num_inputs ? args.inputs[i].data : args.outputs[i - args.num_inputs].data;
    if (reinterpret_cast<uintptr_t>(p) % 16)
      return fail(Code::kUnsupported, "fused attention: memory is not aligned to 16 bytes");
  }
  return ok();
}

Status run_forward(Device& d, CUstream stream, const KernelArgs& args) {
  TS_TRY(check_alignment(args));
  const KernelTensor *in = args.inputs, *out = args.outputs;
  const CudnnAttention a = describe(in[0], in[1], in[2], out[0], args);
  const float scale = static_cast<float>(args.doubles[0]),
              hidden = -std::numeric_limits<float>::infinity();
  return run_plan(d, stream, a, 0, [&](char*, std::vector<CudnnData>* given) {
    *given = {{kAttentionQ, in[0].data},      {kAttentionK, in[1].data},
              {kAttentionV, in[2].data},      {kAttentionOut, out[0].data},
              {kAttentionStats, out[1].data}, {kAttentionScale, &scale}};
    if (a.causal) given->push_back({kAttentionHidden, &hidden});
  });
}

Status run_backward(Device& d, CUstream stream, const KernelArgs& args) {
  TS_TRY(check_alignment(args));
  const KernelTensor *in = args.inputs, *out = args.outputs;
  const CudnnAttention a =
      describe_backward(describe(in[1], in[2], in[3], in[4], args), out[0], out[1], out[2], args);
  const float scale = static_cast<float>(args.doubles[0]), one = 1,
              hidden = -std::numeric_limits<float>::infinity();
  // Row sums, then sums of the gradients of queries.
  const size_t rows = static_cast<size_t>(a.batch * a.heads * a.queries) * sizeof(float),
               padded = (rows + 255) / 256 * 256;
  const size_t sums = a.deterministic ? 0 : rows * static_cast<size_t>(a.width);
  return run_plan(d, stream, a, padded + sums, [&](char* own, std::vector<CudnnData>* given) {
    *given = {
        {kAttentionGrad, in[0].data}, {kAttentionQ, in[1].data},   {kAttentionK, in[2].data},
        {kAttentionV, in[3].data},    {kAttentionOut, in[4].data}, {kAttentionStats, in[5].data},
        {kAttentionDq, out[0].data},  {kAttentionDk, out[1].data}, {kAttentionDv, out[2].data},
        {kAttentionScale, &scale},    {kAttentionOne, &one},       {kAttentionRowSums, own}};
    if (a.causal) given->push_back({kAttentionHidden, &hidden});
    if (!a.deterministic) given->push_back({kAttentionDqSums, own + padded});
  });
}

TS_CUDA_KERNEL("attention_support", run_support)
TS_CUDA_KERNEL("attention_forward", run_forward)
TS_CUDA_KERNEL("attention_backward", run_backward)

}  // namespace
}  // namespace tessera::cuda
