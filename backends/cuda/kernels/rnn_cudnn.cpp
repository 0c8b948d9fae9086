// Recurrent networks by cuDNN: plans kept by shape, weights brought into its one space.
#include <algorithm>
#include <unordered_map>

#include "../cudnn_handle.h"
#include "../cudnn_rnn_plan.h"
#include "../hash.h"
#include "../kernels.h"
#include "../text.h"
#include "tessera/ops/conv/settings.h"
#include "tessera/ops/rnn/cudnn_call.h"

namespace tessera::cuda {
namespace {

// Many pieces of memory at once: a row of blocks each.
constexpr int kPieces = 64;
constexpr TextKernel kMove{"rnn_move", R"(
struct Piece { const char* from; char* to; int64_t bytes; };
struct Params { Piece pieces[64]; };
template <class V>
TS_FN void move(const Piece& q) {
  const V* from = (const V*)q.from;
  V* to = (V*)q.to;
  const int64_t n = q.bytes / (int64_t)sizeof(V), step = (int64_t)gridDim.x * 256;
  for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < n; i += step) to[i] = from[i];
}
extern "C" __global__ void __launch_bounds__(256) rnn_move(const __grid_constant__ Params p) {
  const Piece q = p.pieces[blockIdx.y];
  if (((uint64_t)q.from | (uint64_t)q.to | (uint64_t)q.bytes) % 16 == 0) move<V16>(q);
  else move<V2>(q);
})"};
struct Piece {
  const void* from;
  void* to;
  int64_t bytes;
};

Status move_pieces(Device& d, CUstream stream, const std::vector<Piece>& all) {
  for (size_t first = 0; first < all.size(); first += kPieces) {
    struct {
      Piece pieces[kPieces];
    } p{};
    const size_t n = std::min(all.size() - first, size_t{kPieces});
    int64_t longest = 0;
    for (size_t i = 0; i < n; ++i) {
      p.pieces[i] = all[first + i];
      longest = std::max(longest, p.pieces[i].bytes);
    }
    const int64_t blocks = std::min<int64_t>((longest / 16 + 1023) / 1024 + 1, 512);
    TS_TRY(launch_text(d, stream, kMove, {def_bytes("V16", 16), def_bytes("V2", 2)},
                       {blocks, 256, static_cast<int64_t>(n)}, &p));
  }
  return ok();
}

struct Found {
  CudnnRnnPlan plan;
  bool possible = false;
  std::string why;
};
struct State {
  std::unordered_map<Hash128, Found, HashOfHash> plans;
  bool persistent = true;  // such kernels have not failed yet
};
// Under the mutex of the device's handle. Leaked: the driver may be gone before destructors run.
State& state(const Device& d) {
  static State* all = new State[kMaxDevices];
  return all[d.ordinal];
}
// Packed sequences have a plan for each set of lengths: they must not fill memory.
constexpr size_t kMaxPlans = 512;

bool read_network(const KernelArgs& args, CudnnRnn* out) {
  const int64_t* v = args.ints;
  const int64_t parts = v[rnn::kLayers] * (v[rnn::kBothWays] ? 2 : 1);
  const int64_t widest =
      std::max(v[rnn::kInputSize], v[rnn::kHiddenSize] * (v[rnn::kBothWays] ? 2 : 1));
  // It counts elements of states and data in 32 bits.
  for (int64_t factors[][3] = {{v[rnn::kSteps], v[rnn::kBatch], widest},
                               {parts, v[rnn::kBatch], v[rnn::kHiddenSize]}};
       auto& f : factors) {
    int64_t n = 1;
    for (int64_t x : f)
      if (__builtin_mul_overflow(n, x, &n) || n > INT32_MAX) return false;
  }
  auto number = [&](int i) { return static_cast<int>(v[i]); };
  out->dtype = static_cast<DType>(v[rnn::kDType]);
  out->mode = static_cast<rnn::Mode>(v[rnn::kMode]);
  out->has_biases = v[rnn::kHasBiases];
  out->both_ways = v[rnn::kBothWays];
  out->layers = number(rnn::kLayers);
  out->input = number(rnn::kInputSize);
  out->hidden = number(rnn::kHiddenSize);
  out->projection = number(rnn::kProjectionSize);
  out->steps = number(rnn::kSteps);
  out->batch = number(rnn::kBatch);
  out->train = v[rnn::kTrain];
  out->tf32 = v[rnn::kFlags] & conv::kAllowTf32;
  out->packed = v[rnn::kPacked] > 0;
  out->lengths.assign(static_cast<size_t>(out->batch), out->packed ? 0 : out->steps);
  for (int64_t t = 0; t < v[rnn::kPacked]; ++t)
    for (int64_t i = 0; i < v[rnn::kFirstBatch + t]; ++i) ++out->lengths[static_cast<size_t>(i)];
  return true;
}

Hash128 key_of(const KernelArgs& args) {
  Hasher h(13);
  for (int i = rnn::kMode; i < args.num_ints; ++i) {
    if (i == rnn::kHasGradH || i == rnn::kHasGradC) continue;
    h.add(static_cast<uint64_t>(i == rnn::kFlags ? args.ints[i] & conv::kAllowTf32 : args.ints[i]));
  }
  return h.finish();
}

// The plan, with the handle held.
struct Session {
  const CudnnRnnApi* api = nullptr;
  CudnnHandle* handle = nullptr;
  std::unique_lock<std::mutex> lock;
  Found* found = nullptr;
  std::string why;  // there is no plan
};

// Fails only for want of memory, which is no property of the network.
Status find_plan(Device& d, CUstream stream, const KernelArgs& args, Session* s, Found* out) {
  CudnnRnn net;
  *out = {};
  if (!read_network(args, &net)) {
    out->why = "it has more elements than 32 bits count";
    return ok();
  }
  for (bool persistent : {true, false}) {
    net.persistent = persistent && state(d).persistent;
    Status made = make_cudnn_rnn_plan(d, stream, *s->api, s->handle->handle, net, &out->plan);
    if (made.code == Code::kOutOfMemory) return made;
    out->possible = made.ok();
    out->why = made.ok() ? "" : made.message;
    if (made.ok() || !out->plan.persistent) break;
  }
  return ok();
}

Status open(Device& d, CUstream stream, const KernelArgs& args, Session* s) {
  const char* why = "it is turned off";
  const CudnnApi* graph = cudnn_use() == CudnnUse::kNever ? nullptr : cudnn_api(&why);
  s->api = graph ? cudnn_rnn_api(&why) : nullptr;
  if (!s->api) {
    s->why = why;
    return ok();
  }
  s->handle = &cudnn_handle(d);
  s->lock = std::unique_lock(s->handle->mutex);
  TS_TRY(open_cudnn(*graph, *s->handle, stream));
  if (!s->handle->handle) {
    s->why = s->handle->broken;
    return ok();
  }
  auto& plans = state(d).plans;
  if (plans.size() >= kMaxPlans) {
    TS_TRY(check(d, driver().cuCtxSynchronize(), "forgetting plans of recurrent networks"));
    plans.clear();
  }
  auto [it, fresh] = plans.try_emplace(key_of(args));
  if (fresh) {
    Status found = find_plan(d, stream, args, s, &it->second);
    if (!found.ok()) {
      plans.erase(it);
      return found;
    }
  }
  if (it->second.possible)
    s->found = &it->second;
  else
    s->why = it->second.why;
  return ok();
}

Status open_certain(Device& d, CUstream stream, const KernelArgs& args, Session* s) {
  TS_TRY(open(d, stream, args, s));
  return s->found ? ok()
                  : fail(Code::kUnsupported, "cuDNN does not take a recurrent network: %s",
                         s->why.c_str());
}

Status plan_kernel(Device& d, CUstream stream, const KernelArgs& args) {
  auto* reply = reinterpret_cast<rnn::PlanReply*>(args.ints[rnn::kReply]);
  Session s;
  TS_TRY(open(d, stream, args, &s));
  *reply = {};
  if (!s.found) return cudnn_refuses("a recurrent network", s.why.c_str());
  *reply = {true, static_cast<int64_t>(s.found->plan.reserve),
            static_cast<int64_t>(s.found->plan.weights)};
  return ok();
}

Status forward_kernel(Device& d, CUstream stream, const KernelArgs& args) {
  const bool lstm = static_cast<rnn::Mode>(args.ints[rnn::kMode]) == rnn::Mode::kLSTM,
             train = args.ints[rnn::kTrain];
  const int states = lstm ? 2 : 1;
  Session s;
  TS_TRY(open_certain(d, stream, args, &s));
  const KernelTensor *out = args.outputs, *in = args.inputs, &space = out[1 + states];
  auto run = [&]() -> Status {
    const CudnnRnnPlan& p = s.found->plan;
    const KernelTensor* reserve = train ? &out[2 + states] : nullptr;
    if (static_cast<int64_t>(p.weights) > space.numel ||
        (reserve && static_cast<int64_t>(p.reserve) > reserve->numel))
      return fail(Code::kFailed, "a recurrent network was given too little memory");
    if (!args.ints[rnn::kHasBiases])  // cuDNN has them even so
      TS_TRY(check(
          d,
          driver().cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(space.data), 0, p.weights, stream),
          "clearing biases"));
    std::vector<Piece> pieces;
    for (size_t i = 0; i < p.places.size(); ++i)
      pieces.push_back({in[1 + static_cast<size_t>(states) + i].data,
                        static_cast<char*>(space.data) + p.places[i].offset, p.places[i].bytes});
    TS_TRY(move_pieces(d, stream, pieces));
    Scratch workspace(d, stream);
    if (p.workspace > 0) TS_TRY(workspace.take(p.workspace));
    return cudnn_rnn_failed(
        *s.api,
        s.api->cudnnRNNForward(s.handle->handle, p.rnn.get(),
                               train ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE, nullptr,
                               p.x.get(), in[0].data, p.y.get(), out[0].data, p.h.get(), in[1].data,
                               out[1].data, p.c.get(), lstm ? in[2].data : nullptr,
                               lstm ? out[2].data : nullptr, p.weights, space.data, p.workspace,
                               workspace.as<void>(), reserve ? p.reserve : 0,
                               reserve ? reserve->data : nullptr),
        "running");
  };
  Status ran = run();
  if (ran.code != Code::kUnsupported) return ran;
  // Not all limits are told beforehand. The caller goes step by step then; later calls know.
  s.why = ran.message;
  if (s.found->plan.persistent) {
    state(d).persistent = false;
    TS_TRY(find_plan(d, stream, args, &s, s.found));
  } else {
    s.found->possible = false;
    s.found->why = s.why;
  }
  TS_TRY(cudnn_refuses("a recurrent network", s.why.c_str()));
  return fail(Code::kUnsupported, "%s", s.why.c_str());
}

Status backward_kernel(Device& d, CUstream stream, const KernelArgs& args) {
  const bool lstm = static_cast<rnn::Mode>(args.ints[rnn::kMode]) == rnn::Mode::kLSTM;
  const size_t states = lstm ? 2 : 1;
  Session s;
  TS_TRY(open_certain(d, stream, args, &s));
  const CudnnRnnPlan& p = s.found->plan;
  const KernelTensor *out = args.outputs, *in = args.inputs;
  const KernelTensor &reserve = out[args.num_outputs - 1], &x = in[0], &hx = in[1],
                     &y = in[1 + states], &dy = in[2 + states], &space = in[3 + states];
  if (static_cast<int64_t>(p.reserve) > reserve.numel ||
      static_cast<int64_t>(p.weights) > space.numel)
    return fail(Code::kFailed, "the gradient of a recurrent network was given too little memory");
  size_t next = 4 + states;
  const void* dhy = args.ints[rnn::kHasGradH] ? in[next++].data : nullptr;  // null: zeros
  const void* dcy = args.ints[rnn::kHasGradC] ? in[next++].data : nullptr;
  Scratch workspace(d, stream);
  if (p.workspace > 0) TS_TRY(workspace.take(p.workspace));
  TS_TRY(cudnn_rnn_failed(
      *s.api,
      s.api->cudnnRNNBackwardData_v8(s.handle->handle, p.rnn.get(), nullptr, p.y.get(), y.data,
                                     dy.data, p.x.get(), out[0].data, p.h.get(), hx.data, dhy,
                                     out[1].data, p.c.get(), lstm ? in[2].data : nullptr, dcy,
                                     lstm ? out[2].data : nullptr, p.weights, space.data,
                                     p.workspace, workspace.as<void>(), p.reserve, reserve.data),
      "the gradient"));
  const size_t first = 1 + states;
  if (static_cast<size_t>(args.num_outputs) == first + 1) return ok();  // none of the weights
  Scratch gradients(d, stream);
  TS_TRY(gradients.take(p.weights));
  // It adds to what is there.
  TS_TRY(check(d, driver().cuMemsetD8Async(gradients.address(), 0, p.weights, stream),
               "clearing gradients"));
  TS_TRY(cudnn_rnn_failed(
      *s.api,
      s.api->cudnnRNNBackwardWeights_v8(s.handle->handle, p.rnn.get(), CUDNN_WGRAD_MODE_ADD,
                                        nullptr, p.x.get(), x.data, p.h.get(), hx.data, p.y.get(),
                                        y.data, p.weights, gradients.as<void>(), p.workspace,
                                        workspace.as<void>(), p.reserve, reserve.data),
      "the gradient of the weights"));
  std::vector<Piece> pieces;
  for (size_t i = 0; i < p.places.size(); ++i)
    pieces.push_back(
        {gradients.as<char>() + p.places[i].offset, out[first + i].data, p.places[i].bytes});
  return move_pieces(d, stream, pieces);
}

TS_CUDA_KERNEL("cudnn_rnn_plan", plan_kernel)
TS_CUDA_KERNEL("cudnn_rnn_forward", forward_kernel)
TS_CUDA_KERNEL("cudnn_rnn_backward", backward_kernel)

}  // namespace
}  // namespace tessera::cuda
