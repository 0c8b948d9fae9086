// Groups and kernels on the virtual GPU, with the real CPU loops behind it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tessera/driver/backend.h"

namespace tessera {
namespace {

const Backend* open_virtual() {
  const char* before = std::getenv("TESSERA_VIRTUAL_GPU");
  const std::string kept = before ? before : "";
  setenv("TESSERA_VIRTUAL_GPU", "2x64MiB", 1);
  const Backend* b = find_backend("virtual");
  const char* why = "";
  const int count = b ? b->device_count(&why) : 0;
  before ? setenv("TESSERA_VIRTUAL_GPU", kept.c_str(), 1) : unsetenv("TESSERA_VIRTUAL_GPU");
  return count > 0 ? b : nullptr;
}

const PointwiseBody& multiply_add() {
  static const PointwiseBody body = [] {
    PointwiseBody b{};
    b.name = "multiply_add";
    b.text = "return a * b + s0;";
    b.sources = "tt";
    b.result = 't';
    b.num_scalars = 1;
    for (auto& isa : b.tiles)
      isa[static_cast<int>(RegClass::kF32)] = [](void* out, const void* const* in, const Imm* s,
                                                 int64_t n) {
        for (int64_t i = 0; i < n; ++i)
          static_cast<float*>(out)[i] =
              static_cast<const float*>(in[0])[i] * static_cast<const float*>(in[1])[i] + s->f32;
      };
    return b;
  }();
  return body;
}

// out = x * y + s. Everything the launch is described with is gone when this returns.
Status launch(const Backend* b, Exec exec, float* out, float* x, float* y, float s, int64_t n) {
  auto size = std::make_unique<int64_t>(n), stride = std::make_unique<int64_t>(1);
  auto imm = std::make_unique<Imm>();
  imm->f32 = s;
  auto cls = std::make_unique<RegClass>(RegClass::kF32);
  std::vector<Operand> inputs{{x, DType::kFloat32, stride.get()},
                              {y, DType::kFloat32, stride.get()}};
  auto instr = std::make_unique<Instr>();
  *instr = {.kind = Instr::Kind::kBody,
            .cls = RegClass::kF32,
            .result_cls = RegClass::kF32,
            .round_to = DType::kFloat32,
            .num_sources = 2,
            .num_scalars = 1,
            .first_scalar = 0,
            .body = &multiply_add(),
            .sources = {{SourceKind::kInput, 0}, {SourceKind::kInput, 1}}};
  auto output = std::make_unique<GroupOutput>(GroupOutput{{out, DType::kFloat32, stride.get()}, 0});
  auto p = std::make_unique<GroupProgram>(GroupProgram{.ndim = 1,
                                                       .sizes = size.get(),
                                                       .numel = n,
                                                       .num_inputs = 2,
                                                       .inputs = inputs.data(),
                                                       .num_instrs = 1,
                                                       .instrs = instr.get(),
                                                       .num_outputs = 1,
                                                       .outputs = output.get(),
                                                       .num_immediates = 1,
                                                       .immediates = imm.get(),
                                                       .immediate_cls = cls.get()});
  return b->run_group(exec, p.get());
}

// One stream's worth: x = x * 1 + 1, many times, on n elements. Returns what x[i] came to, or -1.
float count_up(const Backend* b, int64_t n, int times) {
  StreamHandle s = nullptr;
  if (!b->stream_create(0, 0, &s).ok()) return -1;
  void* memory = nullptr;
  if (!b->allocate(0, static_cast<size_t>(2 * n) * sizeof(float), &memory).ok()) return -1;
  float* x = static_cast<float*>(memory);
  std::vector<float> host(static_cast<size_t>(n), 0), ones(static_cast<size_t>(n), 1);
  const size_t bytes = static_cast<size_t>(n) * sizeof(float);
  bool ok = b->copy({0, s}, CopyKind::kHostToDevice, x, host.data(), bytes, false).ok() &&
            b->copy({0, s}, CopyKind::kHostToDevice, x + n, ones.data(), bytes, false).ok();
  for (int i = 0; ok && i < times; ++i) ok = launch(b, {0, s}, x, x, x + n, 1, n).ok();
  ok = ok && b->copy({0, s}, CopyKind::kDeviceToHost, host.data(), x, bytes, false).ok();
  ok = ok && b->stream_destroy(0, s).ok() && b->deallocate(0, memory).ok();
  for (float v : host) ok = ok && v == host[0];
  return ok ? host[0] : -1;
}

TEST(VirtualLaunchTest, GroupsRunInOrderOnEachStream) {
  const Backend* b = open_virtual();
  ASSERT_NE(b, nullptr);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([=] { EXPECT_EQ(count_up(b, 1000 + 100000 * t, 300), 300); });
  for (auto& t : threads) t.join();
}

TEST(VirtualLaunchTest, AWrongIndexIsReportedOnce) {
  const Backend* b = open_virtual();
  ASSERT_NE(b, nullptr);
  void* memory = nullptr;
  ASSERT_TRUE(b->allocate(0, 4096, &memory).ok());
  float* x = static_cast<float*>(memory);
  auto* index = reinterpret_cast<int64_t*>(x + 64);
  const int64_t far = 5, size = 3, one = 1, dim = 0;
  ASSERT_TRUE(b->copy({0, nullptr}, CopyKind::kHostToDevice, index, &far, sizeof far, false).ok());
  KernelTensor out{x + 128, DType::kFloat32, 1, &one, &one, 1};
  KernelTensor in[] = {{x, DType::kFloat32, 1, &size, &one, 3},
                       {index, DType::kInt64, 1, &one, &one, 1}};
  KernelArgs args{1, &out, 2, in, 1, &dim, 0, nullptr};
  ASSERT_TRUE(b->run_kernel({0, nullptr}, "index_select", &args).ok());
  Status status = b->stream_synchronize(0, nullptr);
  EXPECT_EQ(status.code, Code::kInvalid);
  EXPECT_NE(std::strstr(status.message, "5"), nullptr) << status.message;
  EXPECT_TRUE(b->stream_synchronize(0, nullptr).ok());
  EXPECT_EQ(b->run_kernel({0, nullptr}, "no_such_kernel", &args).code, Code::kUnsupported);
  EXPECT_TRUE(b->deallocate(0, memory).ok());
}

// The loops' own threads must reach protected memory too, and process exit find nothing amiss.
TEST(VirtualLaunchTest, ProtectedMemoryIsReachedByTheLoops) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto body = [] {
    setenv("TESSERA_VIRTUAL_PROTECT", "1", 1);
    const Backend* b = open_virtual();
    exit(b && count_up(b, 1000000, 20) == 20 ? 0 : 1);
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), "");
}

TEST(VirtualLaunchTest, ExitWhileKernelsRun) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto body = [] {
    const Backend* b = open_virtual();
    void* memory = nullptr;
    constexpr int64_t n = 2000000;
    if (!b || !b->allocate(0, 3 * n * sizeof(float), &memory).ok()) exit(1);
    float* x = static_cast<float*>(memory);
    for (int i = 0; i < 1000; ++i)
      if (!launch(b, {0, nullptr}, x, x + n, x + 2 * n, 1, n).ok()) exit(1);
    exit(0);
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tessera
