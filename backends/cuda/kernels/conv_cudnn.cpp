// Convolutions by cuDNN: plans kept by shape, and the settings obeyed.
#include <algorithm>
#include <bit>
#include <unordered_map>

#include "../cudnn_conv.h"
#include "../cudnn_handle.h"
#include "../graphs.h"
#include "../hash.h"
#include "../kernels.h"
#include "../text.h"
#include "conv_tiles.h"
#include "tessera/ops/conv/settings.h"

namespace tessera::cuda {
namespace {

// cuDNN adds no bias: as PyTorch, a sum rounded after the convolution was. V elements at once, of
// one channel (`inner` vectors each) or (LAST) of as many channels.
constexpr TextKernel kBias{"conv_bias", R"(
typedef Vec<T::S, V> Values;
struct Params { Values* out; const T::S* bias; int64_t n, channels, inner; };
TS_FN int64_t divided(int64_t a, int64_t b) {
  return (a | b) >> 31 == 0 ? (int64_t)((unsigned)a / (unsigned)b) : a / b;
}
extern "C" __global__ void __launch_bounds__(256) conv_bias(const __grid_constant__ Params p) {
  const int64_t row = LAST ? p.channels / V : p.channels;
  for (int64_t i = thread(); i < p.n; i += threads()) {
    const int64_t q = LAST ? i : divided(i, p.inner), at = q - divided(q, row) * row;
    Values x = p.out[i];
    #pragma unroll
    for (int v = 0; v < V; ++v)
      x.v[v] = T::st(T::ld(x.v[v]) + T::ld(p.bias[LAST ? at * V + v : at]));
    p.out[i] = x;
  }
})"};

struct Found {
  CudnnPlan plan;
  bool possible = false;
  std::string why;
};

using Plans = std::unordered_map<Hash128, Found, HashOfHash>;
// Under the mutex of the device's handle. Leaked: the driver may be gone before destructors run.
Plans& plans_of(const Device& d) {
  static Plans* all = new Plans[kMaxDevices];
  return all[d.ordinal];
}
// A program that never repeats a shape must not fill memory with plans.
constexpr size_t kMaxPlans = 2048;
// Layouts that cuDNN's kernels do not take are copied into workspace, whole; where that is not to
// be had, less will do.
constexpr int64_t kMaxWorkspace = int64_t{8} << 30, kSmallWorkspace = int64_t{64} << 20;
constexpr int64_t kSmall = int64_t{1} << 32;  // among the flags of a plan's key

Status refused(const char* why) { return cudnn_refuses("a convolution", why); }

// Channels lie side by side in one of them. Only dimensions that are longer than one tell.
bool channels_last(const ConvCall& c) {
  for (const KernelTensor* t : {&c.input, &c.output, &c.weight})
    for (int d = 2; t->sizes[1] > 1 && d < 5; ++d)
      if (t->sizes[d] > 1 && t->strides[1] < t->strides[d] && t->strides[1] == 1) return true;
  return false;
}

// Strides of dimensions of size one are what cuDNN knows layouts by; ours may be anything.
CudnnTensor tensor_of(const KernelTensor& t, int spatial, bool last) {
  CudnnTensor out{};
  const int n = spatial + 2;
  for (int d = 0; d < n; ++d) {
    const int from = d < 2 ? d : d + 3 - spatial;
    out.sizes[d] = t.sizes[from];
    out.strides[d] = t.strides[from];
  }
  int64_t usual[5], step = last ? out.sizes[1] : 1;
  for (int d = n - 1; d >= 2; --d) {
    usual[d] = step;
    step *= out.sizes[d];
  }
  usual[1] = last ? 1 : step;
  usual[0] = last ? step : step * out.sizes[1];
  bool same = true;
  for (int d = 0; d < n; ++d) same &= out.sizes[d] == 1 || out.strides[d] == usual[d];
  if (same) std::copy_n(usual, n, out.strides);
  const auto address = reinterpret_cast<uintptr_t>(t.data);
  out.alignment = int64_t{1} << std::min(std::countr_zero(address | 64), 6);
  return out;
}

CudnnConv conv_of(const ConvCall& c) {
  CudnnConv out{};
  out.kind = c.kind == ConvKind::kForward         ? CudnnConv::Kind::kForward
             : c.kind == ConvKind::kBackwardInput ? CudnnConv::Kind::kBackwardData
                                                  : CudnnConv::Kind::kBackwardFilter;
  out.dtype = c.output.dtype;
  const bool flat = c.input.sizes[2] == 1 && c.output.sizes[2] == 1 && c.weight.sizes[2] == 1 &&
                    c.padding[0] == 0;
  out.spatial = flat ? 2 : 3;
  const bool last = channels_last(c);
  out.x = tensor_of(c.input, out.spatial, last);
  out.w = tensor_of(c.weight, out.spatial, last);
  out.y = tensor_of(c.output, out.spatial, last);
  for (int d = 0; d < out.spatial; ++d) {
    const int from = d + 3 - out.spatial;
    out.stride[d] = c.stride[from];
    out.padding[d] = c.padding[from];
    out.dilation[d] = c.dilation[from];
  }
  return out;
}

constexpr int64_t kOfPlans = conv::kBenchmark | conv::kDeterministic | conv::kAllowTf32 | kSmall;

Hash128 key_of(const CudnnConv& c, int64_t flags) {
  Hasher h(12);
  h.add(static_cast<uint64_t>(c.kind) | static_cast<uint64_t>(c.dtype) << 8 |
        static_cast<uint64_t>(c.spatial) << 16 | static_cast<uint64_t>(flags & kOfPlans) << 24);
  for (const CudnnTensor* t : {&c.x, &c.w, &c.y}) {
    h.add(static_cast<uint64_t>(t->alignment));
    for (int d = 0; d < 5; ++d) {
      h.add(static_cast<uint64_t>(t->sizes[d]));
      h.add(static_cast<uint64_t>(t->strides[d]));
    }
  }
  for (int d = 0; d < 3; ++d)
    for (int64_t v : {c.stride[d], c.padding[d], c.dilation[d]}) h.add(static_cast<uint64_t>(v));
  return h.finish();
}

Status run_plan(Device& d, CUstream stream, const CudnnApi& api, const CudnnHandle& s,
                const CudnnPlan& plan, const ConvCall& c) {
  Scratch workspace(d, stream);
  if (plan.workspace > 0) TS_TRY(workspace.take(static_cast<size_t>(plan.workspace)));
  const CudnnData data[] = {
      {kCudnnX, c.input.data}, {kCudnnW, c.weight.data}, {kCudnnY, c.output.data}};
  return run_cudnn(api, s.handle, plan, data, reinterpret_cast<void*>(workspace.address()),
                   "a convolution");
}

// Milliseconds of the best of a few runs; negative if it cannot run.
float time_plan(Device& d, CUstream stream, const CudnnApi& api, const CudnnHandle& s,
                const CudnnPlan& plan, const ConvCall& c) {
  const DriverApi& cu = driver();
  CUevent begin = nullptr, end = nullptr;
  float best = -1;
  if (cu.cuEventCreate(&begin, CU_EVENT_DEFAULT) == CUDA_SUCCESS &&
      cu.cuEventCreate(&end, CU_EVENT_DEFAULT) == CUDA_SUCCESS &&
      run_plan(d, stream, api, s, plan, c).ok()) {  // the first one loads kernels
    for (int i = 0; i < 3; ++i) {
      float ms = 0;
      cu.cuEventRecord(begin, stream);
      if (!run_plan(d, stream, api, s, plan, c).ok()) break;
      cu.cuEventRecord(end, stream);
      if (cu.cuEventSynchronize(end) != CUDA_SUCCESS) break;
      if (cu.event_elapsed(&ms, begin, end) == CUDA_SUCCESS && (best < 0 || ms < best)) best = ms;
    }
  }
  if (begin) cu.cuEventDestroy(begin);
  if (end) cu.cuEventDestroy(end);
  return best;
}

// The engine that a heuristic likes best may want hundreds of megabytes for a convolution of two.
int64_t fair_workspace(const ConvCall& c) {
  const int64_t elements = c.input.numel + c.weight.numel + c.output.numel;
  return std::max(int64_t{32} << 20, 2 * elements * static_cast<int64_t>(itemsize(c.output.dtype)));
}

void find_plan(Device& d, CUstream stream, const CudnnApi& api, const CudnnHandle& s,
               const CudnnConv& c, const ConvCall& call, Found* out) {
  // Nothing runs, and nothing can be timed, while the stream is captured.
  const bool timed = (call.flags & conv::kBenchmark) && !is_capturing(stream);
  const int64_t wanted = !timed ? 1 : call.benchmark_limit <= 0 ? INT32_MAX : call.benchmark_limit;
  CudnnLimits limits{(call.flags & conv::kDeterministic) != 0,
                     c.dtype != DType::kFloat32 || (call.flags & conv::kAllowTf32) != 0, 0};
  const int64_t most = call.flags & kSmall ? kSmallWorkspace : kMaxWorkspace;
  std::vector<CudnnPlan> plans;
  auto graph = [&](CudnnParts* parts) { return cudnn_conv_graph(api, s.handle, c, parts); };
  for (int64_t workspace : {timed ? most : std::min(most, fair_workspace(call)), most}) {
    if (!plans.empty() || workspace == limits.workspace) break;
    limits.workspace = workspace;
    Status made = cudnn_plans(api, s.handle, graph, limits, wanted, &plans, &out->why);
    if (!made.ok()) out->why = made.message;
  }
  if (plans.empty()) return;
  size_t chosen = 0;
  float best = -1;
  for (size_t i = 0; plans.size() > 1 && i < plans.size(); ++i) {
    const float ms = time_plan(d, stream, api, s, plans[i], call);
    if (ms >= 0 && (best < 0 || ms < best)) {
      best = ms;
      chosen = i;
    }
  }
  // Those that were timed and not chosen may still be running.
  if (plans.size() > 1) driver().cuStreamSynchronize(stream);
  out->plan = std::move(plans[chosen]);
  out->possible = true;
}

Status add_bias(Device& d, CUstream stream, const ConvCall& c) {
  const KernelTensor& out = c.output;
  const bool last = out.sizes[1] > 1 && out.strides[1] < out.strides[4];
  const int64_t inner = last ? 1 : out.sizes[2] * out.sizes[3] * out.sizes[4];
  int64_t v = 16 / static_cast<int64_t>(itemsize(out.dtype));
  if ((last ? out.sizes[1] : inner) % v || reinterpret_cast<uintptr_t>(out.data) % 16) v = 1;
  struct {
    void* out;
    const void* bias;
    int64_t n, channels, inner;
  } p{out.data, c.bias, out.numel / v, out.sizes[1], inner / (last ? 1 : v)};
  return launch_text(d, stream, kBias, {def("T", out.dtype), def("V", v), def("LAST", last)},
                     {fill_blocks(d, p.n), 256}, &p);
}

}  // namespace

Status conv_by_cudnn(Device& d, CUstream stream, const ConvCall& c, bool* done) {
  *done = false;
  const DType t = c.output.dtype;
  if (!(c.flags & conv::kVendorLibrary) || cudnn_use() == CudnnUse::kNever || !is_floating(t))
    return ok();
  if (c.input.numel == 0 || c.output.numel == 0 || c.weight.numel == 0) return ok();
  const char* why = nullptr;
  const CudnnApi* api = cudnn_api(&why);
  if (!api) return refused(why);
  if (std::max({c.input.numel, c.output.numel, c.weight.numel}) > INT32_MAX)
    return refused("a tensor has more elements than 32 bits count");
  CudnnHandle& s = cudnn_handle(d);
  Plans& plans = plans_of(d);
  std::lock_guard lock(s.mutex);
  TS_TRY(open_cudnn(*api, s, stream));
  if (!s.handle) return refused(s.broken.c_str());
  if (plans.size() >= kMaxPlans) {
    TS_TRY(check(d, driver().cuCtxSynchronize(), "forgetting plans of convolutions"));
    plans.clear();
  }
  const CudnnConv conv = conv_of(c);
  ConvCall with = c;
  for (int64_t less : {int64_t{0}, kSmall}) {
    with.flags |= less;
    auto [it, fresh] = plans.try_emplace(key_of(conv, with.flags));
    Found& found = it->second;
    if (fresh) find_plan(d, stream, *api, s, conv, with, &found);
    if (!found.possible) return refused(found.why.c_str());
    Status ran = run_plan(d, stream, *api, s, found.plan, c);
    *done = ran.ok();
    if (*done) break;
    if (ran.code != Code::kOutOfMemory) return ran;
  }
  if (!*done) return refused("there is no memory for its workspace");
  return c.bias ? add_bias(d, stream, c) : ok();
}

bool conv_must_be_cudnn() { return cudnn_use() == CudnnUse::kMust; }

}  // namespace tessera::cuda
