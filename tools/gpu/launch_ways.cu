// What a launch costs the host and the device, by each way that the driver has.
//   nvcc -O2 -std=c++17 -arch=native launch_ways.cu -o launch_ways -lcuda && ./launch_ways
// host: the calls alone, bursts of 16 on an idle device. rate: 200 launches until the last is done.
#include <cuda.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#define DO(call)                                                  \
  do {                                                            \
    if (CUresult r = call; r != CUDA_SUCCESS) {                   \
      const char* text = nullptr;                                 \
      cuGetErrorString(r, &text);                                 \
      std::fprintf(stderr, "%s: %s\n", #call, text ? text : "?"); \
      std::exit(1);                                               \
    }                                                             \
  } while (0)

template <int kWords>
struct Params {
  unsigned long long words[kWords];
};
// What Tessera's kernel for a + b of 16 x 16 does, a pointer per tensor and a size.
template <int kWords>
__global__ void add(Params<kWords> p) {
  const float* a = reinterpret_cast<const float*>(p.words[0]);
  const float* b = reinterpret_cast<const float*>(p.words[1]);
  float* out = reinterpret_cast<float*>(p.words[2]);
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < p.words[3]) out[i] = a[i] + b[i];
}
__global__ void add_after(Params<4> p) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  const float* a = reinterpret_cast<const float*>(p.words[0]);
  const float* b = reinterpret_cast<const float*>(p.words[1]);
  float* out = reinterpret_cast<float*>(p.words[2]);
  const unsigned i = threadIdx.x;
  if (i < p.words[3]) out[i] = a[i] + b[i];
}
template <int kWhich>
__global__ void add_also(Params<4> p) {
  const float* a = reinterpret_cast<const float*>(p.words[0]);
  const float* b = reinterpret_cast<const float*>(p.words[1]);
  float* out = reinterpret_cast<float*>(p.words[2]);
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < p.words[3]) out[i] = kWhich == 0 ? a[i] + b[i] : a[i] * b[i] + kWhich;
}
__global__ void wait_a_while(Params<4> p) {
  const long long begin = clock64();
  while (clock64() - begin < static_cast<long long>(p.words[0])) {
  }
}
__global__ void nothing(Params<4>) {}

using Clock = std::chrono::steady_clock;
using Call = std::function<void(CUstream)>;

static double us(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::micro>(to - from).count();
}
static double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
  return v[v.size() / 2];
}

static void measure(const char* name, CUstream stream, const Call& call) {
  for (int i = 0; i < 300; ++i) call(stream);
  DO(cuStreamSynchronize(stream));
  std::vector<double> host, rate, one;
  for (int round = 0; round < 60; ++round) {
    auto begin = Clock::now();
    for (int i = 0; i < 16; ++i) call(stream);
    auto end = Clock::now();
    DO(cuStreamSynchronize(stream));
    host.push_back(us(begin, end) / 16);
  }
  for (int round = 0; round < 30; ++round) {
    auto begin = Clock::now();
    for (int i = 0; i < 200; ++i) call(stream);
    DO(cuStreamSynchronize(stream));
    rate.push_back(us(begin, Clock::now()) / 200);
  }
  for (int round = 0; round < 60; ++round) {
    auto begin = Clock::now();
    call(stream);
    DO(cuStreamSynchronize(stream));
    one.push_back(us(begin, Clock::now()));
  }
  std::printf("%-44s host %5.2f  rate %5.2f  one and wait %6.2f us\n", name, median(host),
              median(rate), median(one));
}

template <class F>
static CUfunction function(F* f) {
  cudaFunction_t out;
  if (cudaGetFuncBySymbol(&out, reinterpret_cast<const void*>(f)) != cudaSuccess) std::exit(1);
  return reinterpret_cast<CUfunction>(out);
}

template <int kWords>
static void plain(const char* name, CUstream stream, CUdeviceptr memory, unsigned threads = 128) {
  Params<kWords> p{};
  p.words[0] = memory;
  p.words[1] = memory + 4096;
  p.words[2] = memory + 8192;
  p.words[3] = 256;
  CUfunction f = function(add<kWords>);
  measure(name, stream, [&, f](CUstream s) {
    void* arguments[] = {&p};
    DO(cuLaunchKernel(f, 256 / threads, 1, 1, threads, 1, 1, 0, s, arguments, nullptr));
  });
}

// One kernel, launched plainly or as the only node of a graph whose function, grid and arguments
// are set anew.
struct Work {
  CUfunction f;
  unsigned blocks, threads;
  Params<4> p;
};
static void launch_plainly(CUstream s, Work& w) {
  void* arguments[] = {&w.p};
  DO(cuLaunchKernel(w.f, w.blocks, 1, 1, w.threads, 1, 1, 0, s, arguments, nullptr));
}
struct Again {
  CUgraph graph;
  CUgraphNode node;
  CUgraphExec exec;
  static CUDA_KERNEL_NODE_PARAMS params(Work& w, void** arguments) {
    CUDA_KERNEL_NODE_PARAMS k{};
    k.func = w.f;
    k.gridDimX = w.blocks;
    k.blockDimX = w.threads;
    k.gridDimY = k.gridDimZ = k.blockDimY = k.blockDimZ = 1;
    k.kernelParams = arguments;
    return k;
  }
  explicit Again(Work& w) {
    void* arguments[] = {&w.p};
    const CUDA_KERNEL_NODE_PARAMS k = params(w, arguments);
    DO(cuGraphCreate(&graph, 0));
    DO(cuGraphAddKernelNode(&node, graph, nullptr, 0, &k));
    DO(cuGraphInstantiate(&exec, graph, 0));
  }
  void launch(CUstream s, Work& w) {
    void* arguments[] = {&w.p};
    const CUDA_KERNEL_NODE_PARAMS k = params(w, arguments);
    DO(cuGraphExecKernelNodeSetParams(exec, node, &k));
    DO(cuGraphLaunch(exec, s));
  }
};

// Each launch depends on the one before it; nothing is waited for in between.
static bool right(CUstream stream, CUdeviceptr memory) {
  const int kSteps = 5000, kCells = 200;
  std::vector<float> all(kCells + 2, 0.f);
  all[kCells] = 1.f;  // what is added
  DO(cuMemcpyHtoD(memory, all.data(), all.size() * 4));
  Work w{function(add<4>), 1, 32, {{memory, memory + kCells * 4, memory, 1}}};
  Again again(w);
  for (int i = 0; i < kSteps; ++i) {
    w.p.words[0] = memory + (i % kCells) * 4;
    w.p.words[2] = memory + ((i + 1) % kCells) * 4;
    w.f = i % 3 ? function(add<4>) : function(add_also<0>);
    w.threads = 32 + i % 5 * 32;
    again.launch(stream, w);
    if (i % 7 == 0) launch_plainly(stream, w);
  }
  DO(cuStreamSynchronize(stream));
  DO(cuMemcpyDtoH(all.data(), memory, all.size() * 4));
  return all[kSteps % kCells] == float(kSteps);
}

static void compare_graphs(CUstream stream, CUdeviceptr memory) {
  std::printf("graph launches in order, with what was set: %s\n",
              right(stream, memory) ? "ok" : "WRONG");
  std::vector<Work> works;
  for (CUfunction f : {function(add_also<0>), function(add_also<1>), function(add_also<2>),
                       function(add_also<3>), function(add_also<4>), function(add_also<5>),
                       function(add_also<6>), function(add_also<7>)}) {
    const unsigned threads = 32 << works.size() % 4;
    works.push_back({f, 256 / threads, threads, {{memory, memory + 4096, memory + 8192, 256}}});
  }
  Work spin{function(wait_a_while), 2, 128, {{16000}}};  // cycles: 8 us at 2 GHz
  CUdeviceptr large;
  DO(cuMemAlloc(&large, size_t{512} << 20));
  Work copy{function(add<4>),
            (128u << 20) / 4 / 128,
            128,
            {{large, large, large + (256u << 20), (128u << 20) / 4}}};

  size_t before, after, total;
  DO(cuMemGetInfo(&before, &total));
  auto begin = Clock::now();
  std::vector<Again> graphs;
  for (int i = 0; i < 64; ++i) graphs.emplace_back(works[i % 8]);
  const double make = us(begin, Clock::now()) / 64;
  DO(cuMemGetInfo(&after, &total));
  std::printf("a graph of 1 takes %.1f us to make and %.1f KiB of the device\n", make,
              (before - after) / 64 / 1024.);

  int turn = 0;
  auto next = [&]() -> Work& { return works[++turn % 8]; };
  measure("8 kernels in turns", stream, [&](CUstream s) { launch_plainly(s, next()); });
  measure("8 kernels in turns, one graph", stream,
          [&](CUstream s) { graphs[0].launch(s, next()); });
  measure("8 kernels in turns, a graph each", stream, [&](CUstream s) {
    Work& w = next();
    graphs[turn % 8].launch(s, w);
  });
  measure("8 kernels in turns, 64 graphs", stream, [&](CUstream s) {
    Work& w = next();
    graphs[turn % 64].launch(s, w);
  });
  measure("2 kernels in turns, one graph", stream,
          [&](CUstream s) { graphs[0].launch(s, works[++turn % 2]); });
  measure("same kernel, blocks change, one graph", stream, [&](CUstream s) {
    Work w = works[0];
    w.blocks = 1 + ++turn % 8;
    graphs[0].launch(s, w);
  });
  measure("graph and plain launch in turns (one each)", stream, [&](CUstream s) {
    if (++turn % 2)
      graphs[0].launch(s, works[0]);
    else
      launch_plainly(s, works[1]);
  });
  measure("3 by graph, one plain, in turns", stream, [&](CUstream s) {
    if (++turn % 4)
      graphs[turn % 4].launch(s, works[turn % 4]);
    else
      launch_plainly(s, works[4]);
  });
  measure("8 us of work", stream, [&](CUstream s) { launch_plainly(s, spin); });
  measure("8 us of work, graph", stream, [&](CUstream s) { graphs[0].launch(s, spin); });
  measure("8 us of work, graph and plain in turns", stream, [&](CUstream s) {
    if (++turn % 2)
      graphs[0].launch(s, spin);
    else
      launch_plainly(s, spin);
  });
  measure("256 MB copied", stream, [&](CUstream s) { launch_plainly(s, copy); });
  measure("256 MB copied, graph", stream, [&](CUstream s) { graphs[0].launch(s, copy); });
  CUevent event;
  DO(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  measure("plain launch and an event", stream, [&](CUstream s) {
    launch_plainly(s, works[0]);
    DO(cuEventRecord(event, s));
  });
  measure("graph and an event", stream, [&](CUstream s) {
    graphs[0].launch(s, works[0]);
    DO(cuEventRecord(event, s));
  });
  measure("plain launch and 64 bytes cleared", stream, [&](CUstream s) {
    launch_plainly(s, works[0]);
    DO(cuMemsetD8Async(memory + 16384, 0, 64, s));
  });
  measure("graph and 64 bytes cleared", stream, [&](CUstream s) {
    graphs[0].launch(s, works[0]);
    DO(cuMemsetD8Async(memory + 16384, 0, 64, s));
  });
}

int main() {
  cudaFree(nullptr);
  CUdeviceptr memory;
  DO(cuMemAlloc(&memory, 1 << 20));
  CUstream stream, high, blocking;
  int least, greatest;
  DO(cuCtxGetStreamPriorityRange(&least, &greatest));
  DO(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0));
  DO(cuStreamCreateWithPriority(&high, CU_STREAM_NON_BLOCKING, greatest));
  DO(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  Params<4> p{{memory, memory + 4096, memory + 8192, 256}};
  void* arguments[] = {&p};

  CUfunction empty = function(nothing), after = function(add_after), add4 = function(add<4>);
  measure("empty", stream, [&](CUstream s) {
    DO(cuLaunchKernel(empty, 1, 1, 1, 32, 1, 1, 0, s, arguments, nullptr));
  });
  plain<4>("add, 32 bytes", stream, memory);
  plain<32>("add, 256 bytes", stream, memory);
  plain<128>("add, 1 KiB", stream, memory);
  plain<500>("add, 4000 bytes", stream, memory);
  plain<4>("add, one block of 256", stream, memory, 256);
  plain<4>("add, high priority", high, memory);
  plain<4>("add, blocking stream", blocking, memory);
  plain<4>("add, legacy stream", nullptr, memory);
  plain<4>("add, per-thread stream", CU_STREAM_PER_THREAD, memory);
  measure("add, arguments as a buffer", stream, [&](CUstream s) {
    size_t bytes = sizeof p;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &p, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    DO(cuLaunchKernel(add4, 2, 1, 1, 128, 1, 1, 0, s, nullptr, extra));
  });
  measure("add, cuLaunchKernelEx", stream, [&](CUstream s) {
    CUlaunchConfig c{2, 1, 1, 128, 1, 1, 0, s, nullptr, 0};
    DO(cuLaunchKernelEx(&c, add4, arguments, nullptr));
  });
  measure("add, before the last has ended", stream, [&](CUstream s) {
    CUlaunchAttribute early{};
    early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    early.value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig c{1, 1, 1, 256, 1, 1, 0, s, &early, 1};
    DO(cuLaunchKernelEx(&c, after, arguments, nullptr));
  });
  measure("add, other memory domain", stream, [&](CUstream s) {
    CUlaunchAttribute domain{};
    domain.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
    domain.value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    CUlaunchConfig c{2, 1, 1, 128, 1, 1, 0, s, &domain, 1};
    DO(cuLaunchKernelEx(&c, add4, arguments, nullptr));
  });

  CUDA_KERNEL_NODE_PARAMS node_params{};
  node_params.func = add4;
  node_params.gridDimX = 2;
  node_params.gridDimY = node_params.gridDimZ = node_params.blockDimY = node_params.blockDimZ = 1;
  node_params.blockDimX = 128;
  node_params.kernelParams = arguments;
  for (int nodes : {1, 2, 4, 16}) {
    CUgraph graph;
    DO(cuGraphCreate(&graph, 0));
    std::vector<CUgraphNode> all(nodes);
    for (int i = 0; i < nodes; ++i)
      DO(cuGraphAddKernelNode(&all[i], graph, i ? &all[i - 1] : nullptr, i ? 1 : 0, &node_params));
    CUgraphExec exec;
    DO(cuGraphInstantiate(&exec, graph, 0));
    char name[64];
    std::snprintf(name, sizeof name, "a graph of %d", nodes);
    measure(name, stream, [&](CUstream s) { DO(cuGraphLaunch(exec, s)); });
    std::snprintf(name, sizeof name, "a graph of %d, arguments set", nodes);
    measure(name, stream, [&](CUstream s) {
      for (CUgraphNode n : all) DO(cuGraphExecKernelNodeSetParams(exec, n, &node_params));
      DO(cuGraphLaunch(exec, s));
    });
    DO(cuGraphExecDestroy(exec));
    DO(cuGraphDestroy(graph));
  }
  compare_graphs(stream, memory);
  plain<4>("add, 32 bytes, again", stream, memory);
}
