// The emulator's own tests: that kernels mean what they mean on a device, and that what must not be
// done is noticed. Linked with the libraries that stand in for CUDA's.
#include <cuda.h>
#include <gtest/gtest.h>
#include <nvrtc.h>

#include <numeric>
#include <string>
#include <vector>

#include "translate.h"

namespace {

// What a kernel that faults loses is the process's one context: each such test has its own process.
class Emulator : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    CUcontext context;
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  }
  static std::vector<char> compile(const std::string& text, std::string* log = nullptr) {
    nvrtcProgram program;
    nvrtcCreateProgram(&program, text.c_str(), "test.cu", 0, nullptr, nullptr);
    const char* options[] = {"--gpu-architecture=sm_90", "--fmad=false"};
    nvrtcResult r = nvrtcCompileProgram(program, 2, options);
    size_t size = 0;
    nvrtcGetProgramLogSize(program, &size);
    std::string said(size, '\0');
    nvrtcGetProgramLog(program, said.data());
    if (log) *log = said;
    std::vector<char> image;
    if (r == NVRTC_SUCCESS) {
      nvrtcGetCUBINSize(program, &size);
      image.resize(size);
      nvrtcGetCUBIN(program, image.data());
    } else if (!log) {
      ADD_FAILURE() << said;
    }
    nvrtcDestroyProgram(&program);
    return image;
  }
  static CUfunction kernel(const std::string& text) {
    std::vector<char> image = compile(text);
    CUmodule module;
    CUfunction f = nullptr;
    if (cuModuleLoadData(&module, image.data()) != CUDA_SUCCESS ||
        cuModuleGetFunction(&f, module, "k") != CUDA_SUCCESS)
      ADD_FAILURE() << "the kernel does not load";
    return f;
  }
  static CUresult run(CUfunction f, unsigned blocks, unsigned threads, CUdeviceptr p, int n,
                      unsigned shared = 0) {
    void* arguments[] = {&p, &n};
    CUresult r =
        cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, shared, nullptr, arguments, nullptr);
    return r == CUDA_SUCCESS ? cuCtxSynchronize() : r;
  }
  static CUdeviceptr memory(size_t bytes) {
    CUdeviceptr p = 0;
    EXPECT_EQ(cuMemAlloc(&p, bytes), CUDA_SUCCESS);
    return p;
  }
  template <class T>
  static std::vector<T> read(CUdeviceptr p, size_t n) {
    std::vector<T> out(n);
    EXPECT_EQ(cuMemcpyDtoHAsync(out.data(), p, n * sizeof(T), nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    return out;
  }
};
using EmulatorDeathTest = Emulator;

const std::string kHead =
    "extern \"C\" __global__ void __launch_bounds__(256) k(int* p, int n) {\n";

TEST_F(Emulator, ThreadsOfBlocksAreNumbered) {
  CUdeviceptr p = memory(1000 * sizeof(int));
  CUfunction f = kernel(kHead + R"(
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] = i * (int)gridDim.x; })");
  EXPECT_EQ(run(f, 4, 256, p, 1000), CUDA_SUCCESS);
  std::vector<int> out = read<int>(p, 1000);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(out[static_cast<size_t>(i)], i * 4);
}

TEST_F(Emulator, SharedMemoryAndBarriers) {
  // Reverses each block through static and through dynamic shared memory.
  CUdeviceptr p = memory(512 * sizeof(int));
  for (const char* declare : {"__shared__ int t[256];", "extern __shared__ int t[];"}) {
    CUfunction f = kernel(kHead + declare + R"(
      int i = threadIdx.x, at = blockIdx.x * 256;
      t[i] = at + i;
      __syncthreads();
      p[at + i] = t[255 - i]; })");
    EXPECT_EQ(run(f, 2, 256, p, 0, 1024), CUDA_SUCCESS);
    std::vector<int> out = read<int>(p, 512);
    for (int i = 0; i < 512; ++i)
      ASSERT_EQ(out[static_cast<size_t>(i)], i / 256 * 256 + 255 - i % 256);
  }
}

TEST_F(Emulator, WarpsShuffleAndVote) {
  CUdeviceptr p = memory(96 * 6 * sizeof(int));
  CUfunction f = kernel(kHead + R"(
    int i = threadIdx.x, *o = p + i * 6, sum = i;
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    o[0] = sum;
    o[1] = __shfl_down_sync(0xffffffffu, i, 3, 8);
    o[2] = __shfl_up_sync(0xffffffffu, i, 1);
    o[3] = (int)__ballot_sync(0xffffffffu, i % 3 == 0);
    if (i % 32 < 16) o[4] = __shfl_sync(0x0000ffffu, i, 5);
    else o[4] = __shfl_sync(0xffff0000u, i, 20);
    o[5] = __syncthreads_count(i < 40); })");
  EXPECT_EQ(run(f, 1, 96, p, 0), CUDA_SUCCESS);
  std::vector<int> out = read<int>(p, 96 * 6);
  for (int i = 0; i < 96; ++i) {
    const int* o = out.data() + i * 6;
    int first = i / 32 * 32, lane = i % 32;
    unsigned ballot = 0;
    for (int l = 0; l < 32; ++l) ballot |= static_cast<unsigned>((first + l) % 3 == 0) << l;
    ASSERT_EQ(o[0], 32 * first + 496);
    ASSERT_EQ(o[1], lane % 8 + 3 < 8 ? i + 3 : i);
    ASSERT_EQ(o[2], lane ? i - 1 : i);
    ASSERT_EQ(static_cast<unsigned>(o[3]), ballot);
    ASSERT_EQ(o[4], first + (lane < 16 ? 5 : 20));
    ASSERT_EQ(o[5], 40);
  }
}

TEST_F(Emulator, AtomicsReturnWhatWasThere) {
  CUdeviceptr p = memory(4 * sizeof(int));
  ASSERT_EQ(cuMemsetD8Async(p, 0, 16, nullptr), CUDA_SUCCESS);
  CUfunction f = kernel(kHead + R"(
    atomicAdd(p, 2);
    atomicMax(p + 1, (int)threadIdx.x);
    atomicAdd((float*)p + 2, 0.5f);
    if (atomicCAS(p + 3, 0, 7) == 0) atomicAdd(p + 3, 1); })");
  EXPECT_EQ(run(f, 2, 64, p, 0), CUDA_SUCCESS);
  EXPECT_EQ(read<int>(p, 2), (std::vector<int>{256, 63}));
  EXPECT_EQ(read<float>(p + 8, 1)[0], 64.0f);
  EXPECT_EQ(read<int>(p + 12, 1)[0], 8);
}

TEST_F(Emulator, EveryHalfSurvivesTheWayThroughFloat) {
  CUdeviceptr p = memory(65536 * sizeof(int));
  CUfunction f = kernel(kHead + R"(
    int i = blockIdx.x * 256 + threadIdx.x;
    unsigned short h = (unsigned short)i, back, up, down;
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(back) : "f"(x));
    bool nan = (h & 0x7fff) > 0x7c00;
    p[i] = nan ? back == 0x7fff : back == h;
    // Halfway to the next goes to the even one; a little more or less to the nearer.
    if ((h & 0x7fff) < 0x7bff) {
      float y;
      asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"((unsigned short)(h + 1)));
      float half = x + (y - x) * 0.5f, off = (y - x) * 0.001f;
      asm("cvt.rn.f16.f32 %0, %1;" : "=h"(back) : "f"(half));
      asm("cvt.rn.f16.f32 %0, %1;" : "=h"(down) : "f"(half - off));
      asm("cvt.rn.f16.f32 %0, %1;" : "=h"(up) : "f"(half + off));
      p[i] &= back == (h & 1 ? h + 1 : h) && down == h && up == h + 1;
    } })");
  EXPECT_EQ(run(f, 256, 256, p, 0), CUDA_SUCCESS);
  std::vector<int> out = read<int>(p, 65536);
  EXPECT_EQ(std::accumulate(out.begin(), out.end(), 0), 65536);
}

TEST_F(Emulator, ErrorsOfTheTextComeWithTheirLine) {
  std::string log;
  EXPECT_TRUE(compile("\n\nextern \"C\" __global__ void k(int* p) { wrong(p); }", &log).empty());
  EXPECT_NE(log.find("test.cu:3"), std::string::npos) << log;
  EXPECT_NE(log.find("wrong"), std::string::npos) << log;
  EXPECT_TRUE(compile("__device__ void f() { asm(\"vote.foo %0;\" :: \"r\"(1)); }", &log).empty());
  EXPECT_NE(log.find("vote_foo_0"), std::string::npos) << log;
}

TEST_F(Emulator, LaunchesAndCopiesAreChecked) {
  CUdeviceptr p = memory(1024);
  CUfunction f = kernel(kHead + "}");
  EXPECT_EQ(run(f, 1, 257, p, 0), CUDA_ERROR_INVALID_VALUE);  // its bounds say 256
  EXPECT_EQ(run(f, 0, 32, p, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(run(f, 1, 32, p, 0, 49 << 10), CUDA_ERROR_INVALID_VALUE);
  char host[2048] = {};
  EXPECT_EQ(cuMemcpyHtoDAsync(p, host, 1025, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoDAsync(p + 1000, host, 24, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(p), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyHtoDAsync(p, host, 1, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Emulator, FreshMemoryIsNotZero) {
  EXPECT_EQ(read<unsigned>(memory(256), 1)[0], 0xffffffffu);
}

// The body's result and what the kernel said, as the status and the output of a process.
void faults(const std::string& body, unsigned threads, CUresult expected, const char* said) {
  EXPECT_EXIT(
      {
        CUcontext context;
        cuDevicePrimaryCtxRetain(&context, 0);
        cuCtxSetCurrent(context);
        struct Run : Emulator {
          static CUresult once(const std::string& text, unsigned threads) {
            CUdeviceptr p = memory(1024);
            CUresult r = run(kernel(text), 1, threads, p, 256);
            return r == CUDA_SUCCESS || cuMemAlloc(&p, 1) == r ? r : CUDA_ERROR_UNKNOWN;  // sticky
          }
          void TestBody() override {}
        };
        std::exit(Run::once(kHead + body + "}", threads) == expected ? 0 : 1);
      },
      testing::ExitedWithCode(0), said);
}

TEST_F(EmulatorDeathTest, FaultsAreADevicesErrors) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  faults("p[threadIdx.x] = 1;", 256, CUDA_SUCCESS, "");
  faults("p[n + threadIdx.x] = 1;", 1, CUDA_ERROR_ILLEGAL_ADDRESS, "not there in kernel k");
  faults("__syncthreads(); p[n] = 1;", 32, CUDA_ERROR_ILLEGAL_ADDRESS, "not there in kernel k");
  faults("*(int4*)(p + 1) = int4{};", 1, CUDA_ERROR_MISALIGNED_ADDRESS, "not aligned");
  faults("if (threadIdx.x) { for (;;) __syncthreads(); } else __syncwarp();", 64,
         CUDA_ERROR_LAUNCH_FAILED, "never come");
  faults("if (threadIdx.x % 2) __syncwarp(); else __syncthreads();", 32, CUDA_ERROR_LAUNCH_FAILED,
         "never come");
  faults("__syncwarp(2u);", 1, CUDA_ERROR_LAUNCH_FAILED, "mask");
}

TEST(Translation, WordsInStringsAndCommentsStay) {
  std::string text = "// asm(\"x\")\nconst char* s = \"__global__ void f() {}\"; /* extern */\n";
  EXPECT_EQ(emulator::translate(text).text, text);
  EXPECT_FALSE(emulator::translate("int a; // __syncthreads()").waits);
  EXPECT_TRUE(emulator::translate("void f() { __syncthreads(); }").waits);
}

}  // namespace
